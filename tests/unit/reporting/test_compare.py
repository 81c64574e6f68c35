"""Runs compared: their settings, metrics and paired tests, by the names of the queries."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import r2n
from r2n.errors import CheckpointError, ConfigError
from r2n.evaluation.by_query import ClassifiedQueries
from r2n.evaluation.report import Report
from r2n.reporting.compare import Comparison, EvaluatedRun, check_runs, compare, paired_tests, run_names
from r2n.store.folder import RunFolder, config_of, read_config
from tests.toy_problem import write_toy_problem
from tests.unit.reporting.conftest import Kept, kept


@pytest.fixture(scope="module")
def second(classified: Kept, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("second") / "second"
    return kept(folder, classified.trained.problem, seed=1).folder


@pytest.fixture(scope="module")
def found(classified: Kept, second: Path, ranked: Kept) -> Comparison:
    return compare([classified.folder, second, classified.folder, ranked.folder])


def test_metrics_are_those_of_the_reports(found: Comparison, classified: Kept, ranked: Kept) -> None:
    assert [split.split for split in found.splits] == ["valid", "test"]
    test = dict(found.splits[1].metrics)
    assert test["ap"][0] == test["ap"][2] == classified.reports[1].metrics["ap"]
    assert test["mrr"] == (None, None, None, ranked.reports[1].metrics["mrr"])
    assert found.splits[1].protocol == "classification of 4 queries"


def test_only_settings_that_differ_are_listed(found: Comparison, classified: Kept, second: Path) -> None:
    listed = dict(found.differences)
    assert listed["problem"] == ("towns", "towns", "towns", "nations")
    assert listed["seed"] == ("0", "1", "0", "0")
    assert listed["model.dim"] == ("8", "8", "8", "4")
    assert listed["theory"][0].startswith("1 rule (")
    assert "device" not in listed
    assert dict(compare([classified.folder, second], splits=["test"]).differences) == {"seed": ("0", "1")}
    assert compare([classified.folder, classified.folder], splits=["test"]).differences == ()


def test_each_run_is_tested_against_the_first_also_in_json(found: Comparison) -> None:
    other, same, nations = found.splits[1].tested
    assert [other.run, same.run, nations.run] == list(found.runs[1:])
    assert len(other.tests) == len(same.tests) == 3
    assert all((test.difference, test.p) == (0, 1) for test in same.tests)
    assert nations.tests == ()
    assert nations.why_not
    assert found.tests == 12
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
    assert split.protocol == "ranking of 20 of 201 queries, drawn with seed 3"
    assert [test.queries for test in split.tested[0].tests] == [20, 20, 20]
    assert {test.p for test in split.tested[0].tests} == {1.0}


def test_names_of_runs_differ() -> None:
    assert run_names([Path("a/x"), Path("b/y")]) == ("x", "y")
    assert run_names([Path("a/x"), Path("b/x")]) == ("a/x", "b/x")
    assert run_names([Path("a/x"), Path("a/x")]) == ("1: a/x", "2: a/x")


def test_a_folder_without_a_run_is_rejected_before_any_work(classified: Kept, tmp_path: Path) -> None:
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


# paired tests


def compared(run: Kept) -> EvaluatedRun:
    reports = {report.split: report for report in run.reports}
    return EvaluatedRun(read_config(RunFolder(run.folder)), run.trained.problem, reports)


def asked(problem: r2n.Problem, logits: dict[str, float]) -> EvaluatedRun:
    """A run of a problem whose test queries were given these logits."""
    names = problem.knowledge.base.names(problem.test.atoms)
    kept = ClassifiedQueries(problem.test.atoms, problem.test.truth, np.array([logits[name] for name in names]))
    report = Report("test", {}, {}, {"task": "classification", "queries": 4}, by_query=kept)
    config = config_of(problem, problem.options, 0, 1, (), "cpu", 1)
    return EvaluatedRun(config, problem, {"test": report})


@pytest.fixture(scope="module")
def towns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toy_problem(tmp_path_factory.mktemp("paired") / "towns")


def test_queries_are_matched_by_name_whatever_their_codes(towns: Path, tmp_path: Path) -> None:
    """A town more gives every atom another code; the queries, and which logit is whose, stay."""
    other = tmp_path / "more"
    other.mkdir()
    for file in towns.iterdir():
        (other / file.name).write_text(file.read_text())
    (other / "train.tsv").write_text("a0\tnear\tn1\n" + (towns / "train.tsv").read_text())
    one, two = r2n.load(str(towns)), r2n.load(str(other))
    assert one.test.atoms.tolist() != two.test.atoms.tolist()
    logits = {"liesIn(n5, north)": 2.0, "liesIn(n5, south)": -1.0, "liesIn(s5, north)": 0.5, "liesIn(s5, south)": 3.0}
    same = paired_tests("test", asked(one, logits), asked(two, logits), "two")
    assert {(test.difference, test.p) for test in same.tests} == {(0.0, 1.0)}
    changed = paired_tests("test", asked(one, logits), asked(two, logits | {"liesIn(s5, north)": 5.0}), "two")
    assert changed.tests[0].difference == pytest.approx((1 / 2 + 2 / 3) / 2 - 1)
    other_run = asked(two, logits | {"liesIn(s5, north)": 5.0})
    kept = other_run.reports["test"].by_query
    assert isinstance(kept, ClassifiedQueries)
    backwards = ClassifiedQueries(kept.atoms[::-1], kept.truth[::-1], kept.logits[::-1])
    reordered = replace(other_run, reports={"test": replace(other_run.reports["test"], by_query=backwards)})
    assert paired_tests("test", asked(one, logits), reordered, "two") == changed
    back = paired_tests("test", other_run, asked(one, logits), "one")
    assert back.tests[0].difference == pytest.approx(-changed.tests[0].difference)


def test_why_two_runs_are_not_tested(classified: Kept, ranked: Kept) -> None:
    towns, nations = compared(classified), compared(ranked)
    assert paired_tests("dev", towns, towns, "b").why_not == "one of the two has no queries 'dev'"
    assert "asked of the first run alone" in paired_tests("test", towns, nations, "b").why_not
    fewer = towns.problem.test.atoms[:-1]
    kept = towns.reports["test"].by_query
    assert isinstance(kept, ClassifiedQueries)
    part = replace(towns.reports["test"], by_query=ClassifiedQueries(fewer, kept.truth[:-1], kept.logits[:-1]))
    found = paired_tests("test", towns, replace(towns, reports={"test": part}), "b")
    assert found.why_not.endswith("1 atom asked of the first run alone, 0 atoms of this one alone")
    flipped = replace(towns.reports["test"], by_query=ClassifiedQueries(kept.atoms, ~kept.truth, kept.logits))
    found = paired_tests("test", towns, replace(towns, reports={"test": flipped}), "b")
    assert found.why_not == "4 queries have another truth"


def test_rankings_need_the_same_candidates(ranked: Kept) -> None:
    run = compared(ranked)
    config = replace(run.config, fingerprints={**run.config.fingerprints, "language": "another"})
    queries = {split: part for split, part in run.problem.queries.items() if split != "valid"}
    kept = run.reports["test"].by_query
    assert kept is not None
    atoms = np.unique(kept.atoms)
    labelled = ClassifiedQueries(atoms, np.ones(len(atoms), bool), np.zeros(len(atoms)))
    for other, why_not in (
        (replace(run, config=config), "the queries are ranked among other constants"),
        (replace(run, problem=replace(run.problem, queries=queries)), "the candidates of the rankings differ"),
        (
            replace(run, reports={"test": replace(run.reports["test"], by_query=labelled)}),
            "one of the two ranks these queries, the other classifies them",
        ),
    ):
        assert why_not in paired_tests("test", run, other, "b").why_not
