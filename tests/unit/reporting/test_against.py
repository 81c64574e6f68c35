"""A run held against another where both were asked the same, by names; and why not, where they were not."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import r2n
from r2n.evaluation.by_query import ClassifiedQueries
from r2n.evaluation.report import Report
from r2n.reporting.against import ComparedRun, against
from r2n.store.folder import RunFolder, config_of, read_config
from tests.toy_problem import write_toy_problem
from tests.unit.reporting.conftest import Kept


def compared(run: Kept) -> ComparedRun:
    reports = {report.split: report for report in run.reports}
    return ComparedRun(run.folder, read_config(RunFolder(run.folder)), run.trained.problem, reports)


def asked(problem: r2n.Problem, logits: dict[str, float]) -> ComparedRun:
    """A run of a problem whose test queries were given these logits."""
    names = problem.knowledge.base.names(problem.test.atoms)
    kept = ClassifiedQueries(problem.test.atoms, problem.test.truth, np.array([logits[name] for name in names]))
    report = Report("test", {}, {}, {"task": "classification", "queries": 4}, by_query=kept)
    config = config_of(problem, problem.options, seed=0, threads=1)
    return ComparedRun(Path("run"), config, problem, {"test": report})


@pytest.fixture(scope="module")
def towns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toy_problem(tmp_path_factory.mktemp("against") / "towns")


@pytest.mark.parametrize("kind", ["classified", "ranked"])
def test_a_run_does_not_differ_from_itself(kind: str, request: pytest.FixtureRequest) -> None:
    run = compared(request.getfixturevalue(kind))
    found = against("test", run, run, "again")
    assert (found.run, found.why_not) == ("again", "")
    assert [test.metric for test in found.tests] == (
        ["ap", "log_loss", "brier"] if kind == "classified" else ["mrr", "hits@1", "hits@10"]
    )
    assert {(test.difference, test.p) for test in found.tests} == {(0.0, 1.0)}
    expected = len(run.problem.test)
    assert {test.queries for test in found.tests} == {expected}


def test_queries_are_the_same_by_name_whatever_their_codes(towns: Path, tmp_path: Path) -> None:
    """A town more gives every atom another code; the queries, and which logit is whose, stay."""
    other = tmp_path / "more"
    other.mkdir()
    for file in towns.iterdir():
        (other / file.name).write_text(file.read_text())
    (other / "train.tsv").write_text("a0\tnear\tn1\n" + (towns / "train.tsv").read_text())
    one, two = r2n.load(str(towns)), r2n.load(str(other))
    assert one.test.atoms.tolist() != two.test.atoms.tolist()
    logits = {"liesIn(n5, north)": 2.0, "liesIn(n5, south)": -1.0, "liesIn(s5, north)": 0.5, "liesIn(s5, south)": 3.0}
    same = against("test", asked(one, logits), asked(two, logits), "two")
    assert {(test.difference, test.p) for test in same.tests} == {(0.0, 1.0)}
    changed = against("test", asked(one, logits), asked(two, logits | {"liesIn(s5, north)": 5.0}), "two")
    assert changed.tests[0].difference == pytest.approx((1 / 2 + 2 / 3) / 2 - 1)
    turned = asked(two, logits | {"liesIn(s5, north)": 5.0})
    kept = turned.reports["test"].by_query
    assert isinstance(kept, ClassifiedQueries)
    backwards = ClassifiedQueries(kept.atoms[::-1], kept.truth[::-1], kept.logits[::-1])
    turned = replace(turned, reports={"test": replace(turned.reports["test"], by_query=backwards)})
    assert against("test", asked(one, logits), turned, "two") == changed
    back = against("test", asked(two, logits | {"liesIn(s5, north)": 5.0}), asked(one, logits), "one")
    assert back.tests[0].difference == pytest.approx(-changed.tests[0].difference)


def test_why_not(classified: Kept, ranked: Kept) -> None:
    towns, nations = compared(classified), compared(ranked)
    assert against("dev", towns, towns, "b").why_not == "one of the two has no queries 'dev'"
    assert "no tests" not in against("test", towns, nations, "b").why_not
    assert "asked of the first run alone" in against("test", towns, nations, "b").why_not
    fewer = towns.problem.test.atoms[:-1]
    kept = towns.reports["test"].by_query
    assert isinstance(kept, ClassifiedQueries)
    part = replace(towns.reports["test"], by_query=ClassifiedQueries(fewer, kept.truth[:-1], kept.logits[:-1]))
    found = against("test", towns, replace(towns, reports={"test": part}), "b")
    assert found.why_not.endswith("1 atom asked of the first run alone, 0 atoms of this one alone")
    turned = replace(towns.reports["test"], by_query=ClassifiedQueries(kept.atoms, ~kept.truth, kept.logits))
    assert (
        against("test", towns, replace(towns, reports={"test": turned}), "b").why_not == "4 queries have another truth"
    )


def test_rankings_need_the_same_candidates(ranked: Kept) -> None:
    run = compared(ranked)
    others = replace(run.config, fingerprints={**run.config.fingerprints, "language": "another"})
    assert (
        against("test", run, replace(run, config=others), "b").why_not == "the queries are ranked among other constants"
    )
    queries = {split: part for split, part in run.problem.queries.items() if split != "valid"}
    fewer = replace(run, problem=replace(run.problem, queries=queries))
    assert "the candidates of the rankings differ" in against("test", run, fewer, "b").why_not
    kept = run.reports["test"].by_query
    assert kept is not None
    atoms = np.unique(kept.atoms)
    labelled = ClassifiedQueries(atoms, np.ones(len(atoms), bool), np.zeros(len(atoms)))
    as_labels = replace(run, reports={"test": replace(run.reports["test"], by_query=labelled)})
    assert (
        against("test", run, as_labels, "b").why_not == "one of the two ranks these queries, the other classifies them"
    )
