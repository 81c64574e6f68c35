"""A file of queries answered part by part: what it answers at once, and after being stopped."""

import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from r2n.data.problem import load_problem
from r2n.errors import ConfigError, DataError
from r2n.model import jobs
from r2n.model.jobs import AskedOfRun, Predicted, predict_file
from r2n.model.questions import AnswersWanted, answer_table
from r2n.model.run import prepare_run
from r2n.model.training import train_in
from r2n.store.checkpoint import MANIFEST
from r2n.store.folder import CALIBRATION, CONFIG
from tests.toy_problem import TOWNS, write_toy_problem

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
def asked(folder: Path) -> AskedOfRun:
    return AskedOfRun(folder / "run", folder / "queries.tsv", AnswersWanted(top=1), size=5)


def test_the_parts_are_answered_as_the_whole_is(asked: AskedOfRun, tmp_path: Path) -> None:
    out, shown = tmp_path / "a.parquet", []
    predictor = asked.load()
    found = predict_file(asked, out, progress=lambda *said: shown.append(said))
    assert (found.answers, found.parts, found.parts_before) == (32, 7, 0)
    assert shown[-1] == ("predict", 32, 0)
    whole = answer_table(predictor, asked.queries, top=1).to_pandas()
    pd.testing.assert_frame_equal(pd.read_parquet(out), whole, check_dtype=False)  # of texts: pandas has two
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_stopped_half_way_it_goes_on_to_the_same_file(
    ending: str, asked: AskedOfRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, out = tmp_path / f"whole{ending}", tmp_path / f"a{ending}"
    predictor = asked.load()
    predict_file(asked, whole, model=predictor, jobs=1)
    answered, calls = jobs.answers_to, []

    def stops(*arguments: object) -> object:
        calls.append(arguments)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return answered(*arguments)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(jobs, "answers_to", stops)
    with pytest.raises(KeyboardInterrupt):
        predict_file(asked, out, model=predictor, jobs=1)
    assert not out.exists()
    found = predict_file(asked, out, model=predictor, jobs=1)
    assert len(calls) == 4 + 4
    assert (found.parts, found.parts_before) == (7, 3)
    assert str(found) == "32 answers, 3 of 7 parts found done"
    assert out.read_bytes() == whole.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [out.name, whole.name]


def test_what_was_left_of_another_question_is_not_taken_over(asked: AskedOfRun, tmp_path: Path) -> None:
    given = [
        asked,
        replace(asked, wanted=AnswersWanted(top=2)),
        replace(asked, size=6),
        replace(asked, more=("near(n1, s1)",)),
    ]
    identities = [jobs._identity(each, is_shared=False) for each in given]
    identities.append(jobs._identity(asked, is_shared=True))
    assert all(one != other for i, one in enumerate(identities) for other in identities[:i])
    assert identities[0] == jobs._identity(replace(asked), is_shared=False)


@pytest.mark.parametrize("file", [CONFIG, CALIBRATION, MANIFEST])
def test_what_another_run_answered_is_not_taken_over(file: str, asked: AskedOfRun, tmp_path: Path) -> None:
    other = replace(asked, folder=tmp_path / "run")
    shutil.copytree(asked.folder, other.folder)
    before = jobs._identity(asked, is_shared=False)
    assert jobs._identity(other, is_shared=False) == before, "a run may be moved"
    with (other.folder / file).open("a") as changed:
        changed.write("\n")
    assert jobs._identity(other, is_shared=False) != before


def test_what_is_told_is_known(asked: AskedOfRun) -> None:
    told = replace(asked, more=("near(n1, s1)", "near(mars, n1)"), fewer=("near(n0, n1)",), domains={"town": ("mars",)})
    names = told.load().changed.new_constants
    assert list(names) == ["mars"]


def test_a_wrong_query_leaves_nothing_behind(asked: AskedOfRun, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.tsv"
    wrong.write_text("mars\tliesIn\tnorth\n")
    with pytest.raises(DataError, match=r"wrong\.tsv:1"):
        predict_file(replace(asked, queries=wrong), tmp_path / "a.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["wrong.tsv"]
    with pytest.raises(ConfigError, match="let it end in"):
        predict_file(asked, tmp_path / "a.docx")


def test_how_many_there_are_is_told_where_a_file_says_it(asked: AskedOfRun, tmp_path: Path) -> None:
    path = tmp_path / "q.parquet"
    pd.DataFrame([line.split("\t") for line in QUERIES], columns=["head", "relation", "tail"]).to_parquet(path)
    shown: list[tuple[str, int, int]] = []
    found = predict_file(replace(asked, queries=path), tmp_path / "a.csv", progress=lambda *said: shown.append(said))
    assert found == Predicted(32, 7, 0)
    assert shown[-1] == ("predict", 32, 32)
