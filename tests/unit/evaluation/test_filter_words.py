"""A report says whose true atoms were no rivals, and says it as it was done."""

import re

import pytest
import torch

import r2n
from r2n.evaluation.report import Report
from r2n.model.run import Run, prepare_run
from tests.noise_problem import noise_problem

SPLITS = ("train", "valid", "test")
STOPPED = ("training.epochs=2", "training.patience=2", "training.validate_every=1")


def named(report: Report) -> set[str]:
    """The splits that the report names as its filter."""
    return set(re.findall("|".join(SPLITS), str(report.protocol["filter"])))


@pytest.fixture(scope="module")
def trained() -> tuple[Run, list[Report]]:
    """A run that validates, and the reports that were made while it trained."""
    problem, made, init = noise_problem("alike", *STOPPED), [], Report.__init__

    def kept(self: Report, *given: object, **options: object) -> None:
        init(self, *given, **options)  # pyright: ignore[reportArgumentType]
        made.append(self)

    run = prepare_run(problem, problem.options, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Report, "__init__", kept)
        assert all(epoch.valid is not None for epoch in run.trainer)
    return run, made


@pytest.mark.parametrize("split", ["valid", "test"])
def test_a_run_is_evaluated_with_the_true_atoms_of_all_splits(split: str, trained: tuple[Run, list[Report]]) -> None:
    assert named(trained[0].evaluate(split)) == set(SPLITS)


def test_validation_knows_nothing_of_the_test(trained: tuple[Run, list[Report]]) -> None:
    made = trained[1]
    assert [report.split for report in made] == ["valid", "valid"]
    for report in made:
        assert named(report) == {"train", "valid"}


def test_without_evidence_only_the_queries_filter() -> None:
    problem = noise_problem("alike")
    source = r2n.GroundedOnDemand.of(problem.knowledge, r2n.FullGrounder())
    torch.manual_seed(0)
    model = r2n.R2N.build(problem.knowledge, dim=4, layers=1)
    alone = r2n.evaluate(model, source, problem.test)
    assert named(alone) == set()
    assert "queries" in str(alone.protocol["filter"])
    told = r2n.evaluate(model, source, problem.test, evidence=problem.train)
    assert re.search("evidence|train", str(told.protocol["filter"]))
    assert not {"valid", "test"} & named(told)


def test_a_classification_has_no_filter(trained: tuple[Run, list[Report]]) -> None:
    run = trained[0]
    queries = r2n.Evidence(run.problem.test.atoms, run.problem.test.atoms % 2 == 0)
    source = r2n.GroundedOnDemand.of(run.problem.knowledge, r2n.FullGrounder())
    assert "filter" not in r2n.evaluate(run.model, source, queries).protocol
