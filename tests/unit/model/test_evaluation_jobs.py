"""A run evaluated by one process: what it reports alone, it reports as one of several."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from r2n.data.problem import load_problem
from r2n.errors import ConfigError
from r2n.evaluation.ranking import ALONE
from r2n.model import trained as trained_module
from r2n.model.run import prepare_run
from r2n.model.trained import EvaluationOfRun, Trained, evaluate_run
from r2n.model.training import train_in
from tests.toy_problem import write_toy_problem


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluated")
    toy = write_toy_problem(folder / "towns", epochs=2)
    true = [line[:-2] for line in (toy / "test.tsv").read_text().splitlines() if line.endswith("1")]
    (toy / "test.tsv").write_text("\n".join(true) + "\n")  # all true: a ranking
    for _ in train_in(folder / "run", prepare_run(load_problem(toy))):
        pass
    return folder / "run"


@pytest.fixture
def threads() -> Iterator[None]:
    kept = torch.get_num_threads()
    yield
    torch.set_num_threads(kept)


def test_one_job_reports_what_is_reported_without(run: Path, threads: None) -> None:
    asked = EvaluationOfRun(run, kinds=("functional",))
    trained, reports = evaluate_run(asked, jobs=1)
    alone = Trained.load(run)
    assert trained.problem.name == "towns"
    assert reports[0].to_dict() == alone.evaluate("test", baselines=True).to_dict()
    assert [("constraints" in report.protocol) for report in reports] == [False, True]
    trained_module._evaluate_share(ALONE, EvaluationOfRun(run, "valid"))


def test_what_cannot_be_asked_is_refused(run: Path) -> None:
    with pytest.raises(ConfigError, match="no queries 'tset'"):
        evaluate_run(EvaluationOfRun(run, "tset"))
