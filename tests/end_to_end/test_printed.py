"""Objects print as one line, and answers and reports on one screen."""

import pytest

import r2n
from r2n.evaluation.evaluate import evaluate
from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.model.run import Run, prepare_run
from r2n.network.factor_graph import FactorGraph
from r2n.network.graph_sources import FullGraph
from tests.toy_problem import write_toy_problem

LONGEST = 400  # characters
MOST_LINES = 12


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    problem = r2n.load(str(write_toy_problem(tmp_path_factory.mktemp("printed") / "towns")))
    return prepare_run(problem, problem.options.changed(["training.epochs=2"]), seed=3)


def test_objects_print_as_a_line_with_their_numbers(run: Run) -> None:
    problem, knowledge = run.problem, run.problem.knowledge
    grounding = FullGrounder().ground(Store(knowledge))
    graph = FactorGraph.from_grounding(grounding, problem.atoms)
    things = [
        problem,
        knowledge,
        knowledge.language,
        knowledge.base,
        problem.test,
        grounding,
        grounding.ground_rules[0],
    ]
    things += [graph, run.model.collate(graph), FullGraph(graph), run.source, run, r2n.Model.from_run(run)]
    for thing in things:
        assert repr(thing) == str(thing)
        assert type(thing).__name__ in repr(thing)
        assert "\n" not in repr(thing)
        assert len(repr(thing)) < LONGEST
    assert "64 atoms, 64 ground rules of 1 rule" in repr(graph)


def test_answers_and_reports_print_as_a_few_lines(run: Run) -> None:
    lines = repr(r2n.Model.from_run(run).predict("near(?, ?)", everything=True)).splitlines()
    assert len(lines) <= MOST_LINES
    assert lines[1].startswith("  near(")
    report, test = run.evaluate("test"), run.problem.test
    name, value = report.main
    assert (name, value) == ("ap", report.metrics["ap"])
    assert f"ap {value:.4f}" in repr(report)
    assert f"{value:.4f}" in str(report)
    assert report.to_pandas().loc["all queries", "ap"] == value
    assert len(repr(report)) < LONGEST
    true = r2n.Evidence(test.atoms[test.truth], test.truth[test.truth])
    ranked = evaluate(run.model, run.source, true, evidence=run.problem.train)
    assert ranked.main == ("mrr", ranked.metrics["mrr"])
