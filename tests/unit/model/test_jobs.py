"""Work on a run folder that processes share: answers to a file of queries, part by part, and evaluation."""

import json
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from r2n.data.problem import load_problem
from r2n.errors import CheckpointError, ConfigError, DataError
from r2n.model import questions as module
from r2n.model.answers import unnamed_arguments
from r2n.model.model import Model
from r2n.model.questions import AnswerOptions, AnswerParts, EvaluationJob, PredictionJob, evaluate_run, predict_file
from r2n.model.run import prepare_run
from r2n.model.training import train_in
from r2n.store.checkpoint import MANIFEST
from r2n.store.folder import CALIBRATION, CONFIG
from tests.toy_problem import TOWNS, write_toy_problem

IDENTITY = {"queries": "q.tsv"}


def part_of(rows: list[int], *arguments: str, label: bool | None = None) -> pa.Table:
    count = len(rows)
    columns = {"row": rows, "rank": [1] * count, "predicate": ["p"] * count}
    columns |= {f"argument_{i + 1}": [name] * count for i, name in enumerate(arguments)}
    columns |= {name: [0.5] * count for name in ("probability", "network", "logit")}
    columns |= {name: [True] * count for name in ("known", "closed", "reached")}
    table = pa.table({**columns, "label": pa.array([label] * count, pa.bool_())})
    return table.replace_schema_metadata({module.PREDICATES: json.dumps(["p" * len(arguments)])})


def named(predicates: Iterable[str]) -> tuple[str, ...]:
    return unnamed_arguments(max(map(len, predicates)))


def test_parts_become_one_file_with_the_columns_of_all(tmp_path: Path) -> None:
    parts = AnswerParts(tmp_path / "a.csv")
    with parts.opened(IDENTITY) as before:
        assert before == 0
        parts.keep(1, part_of([3], "a", "b", label=False))
        parts.keep(0, part_of([1, 2], "a"))
        assert parts.join(named) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
    frame = pd.read_csv(parts.file)
    assert frame["row"].tolist() == [1, 2, 3]
    assert list(frame.columns)[:5] == ["row", "rank", "predicate", "argument_1", "argument_2"]
    assert frame["argument_2"].isna().tolist() == [True, True, False]
    assert list(frame.columns)[-1] == "label"


def test_what_was_done_is_found_again_and_what_was_asked_otherwise_is_not(tmp_path: Path) -> None:
    parts = AnswerParts(tmp_path / "a.parquet")
    with parts.opened(IDENTITY):  # and no more
        parts.keep(0, part_of([1], "a"))
    assert not parts.file.exists()
    with parts.opened(IDENTITY) as before:
        assert before == 1
        with pytest.raises(ConfigError, match=r"is at work in .*\.a\.parquet\.parts"), parts.opened(IDENTITY):
            pass
    with parts.opened({"queries": "other.tsv"}) as before:
        assert before == 0
    assert list(tmp_path.iterdir()) == []  # nothing was done, nothing is left
    with parts.opened(IDENTITY):
        parts.keep(0, part_of([1], "a", label=True))
        parts.join(named)
    assert "label" not in pd.read_parquet(parts.file).columns, "labels that are all true"


def test_a_damaged_part_or_a_file_at_its_path_is_refused(tmp_path: Path) -> None:
    parts = AnswerParts(tmp_path / "a.parquet")
    with parts.opened(IDENTITY):
        parts.keep(0, part_of([1], "a"))
        parts.path(0).write_bytes(b"no Parquet")
        with pytest.raises(CheckpointError, match=r"a part in .* is damaged"):
            parts.join(named)
    assert [path.name for path in tmp_path.iterdir()] == [parts.folder.name]
    other = AnswerParts(tmp_path / "b.parquet")
    other.folder.write_text("in the way")
    with pytest.raises(ConfigError, match="cannot be written"), other.opened(IDENTITY):
        pass


QUERIES = [f"{town}\tliesIn\t{valley}" for town in TOWNS for valley in ("north", "?")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("predicted")
    problem = load_problem(write_toy_problem(place / "towns", epochs=2))
    for _ in train_in(place / "run", prepare_run(problem)):
        pass
    (place / "queries.tsv").write_text("\n".join(QUERIES) + "\n")
    return place


@pytest.fixture
def asked(folder: Path) -> PredictionJob:
    return PredictionJob(folder / "run", folder / "queries.tsv", AnswerOptions(top=1), size=5)


def test_the_parts_are_answered_as_the_whole_is(asked: PredictionJob, tmp_path: Path) -> None:
    out, shown = tmp_path / "a.parquet", []
    predictor = asked.load()
    found = predict_file(asked, out, progress=lambda *said: shown.append(said))
    assert (found.answers, found.parts, found.parts_before) == (32, 7, 0)
    assert shown[-1] == ("predict", 32, 0)
    full = module.answer_table(predictor, asked.queries, asked.wanted).to_pandas()
    pd.testing.assert_frame_equal(pd.read_parquet(out), full, check_dtype=False)  # of texts: pandas has two
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]
    path = tmp_path / "q.parquet"  # which says how many rows it has
    pd.DataFrame([line.split("\t") for line in QUERIES], columns=["head", "relation", "tail"]).to_parquet(path)
    found = predict_file(
        replace(asked, queries=path), tmp_path / "a.csv", model=predictor, progress=lambda *said: shown.append(said)
    )
    assert found == module.Predicted(32, 7, 0)
    assert shown[-1] == ("predict", 32, 32)


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_stopped_half_way_it_goes_on_to_the_same_file(
    ending: str, asked: PredictionJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full, out = tmp_path / f"whole{ending}", tmp_path / f"a{ending}"
    predictor = asked.load()
    predict_file(asked, full, model=predictor, jobs=1)
    answered, calls = module.answers_to, []

    def stops(*arguments: object) -> object:
        calls.append(arguments)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return answered(*arguments)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(module, "answers_to", stops)
    with pytest.raises(KeyboardInterrupt):
        predict_file(asked, out, model=predictor, jobs=1)
    assert not out.exists()
    found = predict_file(asked, out, model=predictor, jobs=1)
    assert len(calls) == 4 + 4
    assert (found.parts, found.parts_before) == (7, 3)
    assert str(found) == "32 answers, 3 of 7 parts found done"
    assert out.read_bytes() == full.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [out.name, full.name]


def test_what_was_left_of_another_question_is_not_taken_over(asked: PredictionJob, tmp_path: Path) -> None:
    given = [asked, replace(asked, wanted=AnswerOptions(top=2)), replace(asked, size=6), replace(asked, more=("p(a)",))]
    identities = [*(module._identity(each, is_shared=False) for each in given), module._identity(asked, is_shared=True)]
    assert all(one != other for i, one in enumerate(identities) for other in identities[:i])
    assert identities[0] == module._identity(replace(asked), is_shared=False)


@pytest.mark.parametrize("file", [CONFIG, CALIBRATION, MANIFEST])
def test_what_another_run_answered_is_not_taken_over(file: str, asked: PredictionJob, tmp_path: Path) -> None:
    other = replace(asked, folder=tmp_path / "run")
    shutil.copytree(asked.folder, other.folder)
    before = module._identity(asked, is_shared=False)
    assert module._identity(other, is_shared=False) == before, "a run may be moved"
    with (other.folder / file).open("a") as changed:
        changed.write("\n")
    assert module._identity(other, is_shared=False) != before


def test_a_wrong_query_leaves_nothing_behind(asked: PredictionJob, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.tsv"
    wrong.write_text("mars\tliesIn\tnorth\n")
    with pytest.raises(DataError, match=r"wrong\.tsv:1"):
        predict_file(replace(asked, queries=wrong), tmp_path / "a.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["wrong.tsv"]
    with pytest.raises(ConfigError, match="let it end in"):
        predict_file(asked, tmp_path / "a.docx")


@pytest.fixture(scope="module")
def ranked_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluated")
    toy = write_toy_problem(folder / "towns", epochs=2)
    true = [line[:-2] for line in (toy / "test.tsv").read_text().splitlines() if line.endswith("1")]
    (toy / "test.tsv").write_text("\n".join(true) + "\n")  # all true: a ranking
    for _ in train_in(folder / "run", prepare_run(load_problem(toy))):
        pass
    return folder / "run"


def test_one_job_reports_what_is_reported_without(ranked_run: Path, threads: None) -> None:
    asked = EvaluationJob(ranked_run, kinds=("functional",))
    trained, reports = evaluate_run(asked, jobs=1)
    alone = Model.load(ranked_run)
    assert trained.problem.name == "towns"
    assert reports[0].to_dict() == alone.evaluate("test", baselines=True).to_dict()
    assert [("constraints" in report.protocol) for report in reports] == [False, True]
    with pytest.raises(ConfigError, match="no queries 'tset'"):
        evaluate_run(EvaluationJob(ranked_run, "tset"))
