"""Runs side by side: what differs, their metrics, and the tests; nothing is compared that is no run."""

import json
import shutil
from pathlib import Path

import pytest

from r2n.errors import CheckpointError, ConfigError
from r2n.reporting.compare import Comparison, check_runs, compare, run_names
from tests.unit.reporting.conftest import Kept, kept


@pytest.fixture(scope="module")
def second(classified: Kept, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("second") / "second"
    return kept(folder, classified.trained.problem, seed=1).folder


@pytest.fixture(scope="module")
def found(classified: Kept, second: Path, ranked: Kept) -> Comparison:
    return compare([classified.folder, second, classified.folder, ranked.folder])


def test_metrics_are_those_of_the_reports(found: Comparison, classified: Kept, ranked: Kept) -> None:
    assert found.problems == ("towns", "towns", "towns", "nations")
    assert found.seeds == (0, 1, 0, 0)
    assert [split.split for split in found.splits] == ["valid", "test"]
    test = dict(found.splits[1].metrics)
    assert test["ap"][0] == test["ap"][2] == classified.reports[1].metrics["ap"]
    assert test["mrr"] == (None, None, None, ranked.reports[1].metrics["mrr"])
    assert found.splits[1].asked == "classification of 4 queries"


def test_what_differs_is_told_and_nothing_else(found: Comparison, classified: Kept, second: Path) -> None:
    told = dict(found.differences)
    assert told["problem"] == ("towns", "towns", "towns", "nations")
    assert told["seed"] == ("0", "1", "0", "0")
    assert told["model.dim"] == ("8", "8", "8", "4")
    assert told["theory"][0].startswith("1 rule (")
    assert "device" not in told
    assert dict(compare([classified.folder, second], splits=["test"]).differences) == {"seed": ("0", "1")}
    assert compare([classified.folder, classified.folder], splits=["test"]).differences == ()


def test_each_run_is_held_against_the_first(found: Comparison) -> None:
    other, same, nations = found.splits[1].against
    assert [other.run, same.run, nations.run] == list(found.runs[1:])
    assert len(other.tests) == len(same.tests) == 3
    assert all((test.difference, test.p) == (0, 1) for test in same.tests)
    assert nations.tests == ()
    assert nations.why_not
    assert found.tests == 12


def test_a_comparison_as_json(found: Comparison) -> None:
    document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [run["problem"] for run in document["runs"]] == ["towns", "towns", "towns", "nations"]
    last = document["splits"][1]["against_the_first"]
    assert set(last[0]["tests"][0]) == {"metric", "queries", "difference", "low", "high", "p"}
    assert "why_not" not in last[0]
    assert last[2]["tests"] == []
    assert document["differences"]["seed"] == ["0", "1", "0", "0"]


def test_a_sample_is_the_same_for_all(ranked: Kept, tmp_path: Path) -> None:
    moved = Path(shutil.copytree(ranked.folder, tmp_path / "moved"))
    comparison = compare([ranked.folder, moved], splits=["test"], sample=20, seed=3)
    (split,) = comparison.splits
    assert split.asked == "ranking of 20 of 201 queries, drawn with seed 3"
    assert [test.queries for test in split.against[0].tests] == [20, 20, 20]
    assert {test.p for test in split.against[0].tests} == {1.0}


def test_names_tell_runs_apart() -> None:
    assert run_names([Path("a/x"), Path("b/y")]) == ("x", "y")
    assert run_names([Path("a/x"), Path("b/x")]) == ("a/x", "b/x")
    assert run_names([Path("a/x"), Path("a/x")]) == ("1: a/x", "2: a/x")


def test_what_is_no_run_is_refused_before_any_work(classified: Kept, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="one run alone"):
        check_runs([classified.folder])
    with pytest.raises(ConfigError, match="one run alone"):
        compare([])
    with pytest.raises(ConfigError, match="holds no run"):
        compare([classified.folder, tmp_path])
    damaged = Path(shutil.copytree(classified.folder, tmp_path / "damaged"))
    (damaged / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match="damaged"):
        check_runs([classified.folder, damaged])
    with pytest.raises(ConfigError, match="has no queries 'dev'"):
        compare([classified.folder, classified.folder], splits=["dev"])
