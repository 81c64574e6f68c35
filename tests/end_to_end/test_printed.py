"""What is printed of an object tells what it is, on one screen, whatever its size."""

from pathlib import Path

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


def test_objects_print_as_a_line(run: Run) -> None:
    problem, knowledge = run.problem, run.problem.knowledge
    grounding = FullGrounder().ground(Store(knowledge))
    graph = FactorGraph.from_grounding(grounding, problem.atoms)
    layout = run.model.collate(graph)
    next(iter(run.trainer))
    known = "18 constants, 2 predicates, 1 rule, 44 known atoms"
    expected = {
        problem: f"Problem 'towns': {known}; queries: valid 4, test 4",
        knowledge: f"KnowledgeBase({known})",
        knowledge.language: "Language(18 constants, 2 domains, 2 predicates)",
        knowledge.base: "HerbrandBase(288 atoms)",
        problem.train: "Evidence(44 atoms: 44 true, 0 false)",
        problem.test: "Evidence(4 atoms: 2 true, 2 false)",
        grounding: "Grounding(64 ground rules over 64 atoms: neighbours 64)",
        grounding.ground_rules[0]: "GroundRules('neighbours': 64 ground rules of 3 atoms)",
        graph: "FactorGraph(64 atoms, 64 ground rules of 1 rule)",
        layout: "GraphBatch(dense, cpu, FactorGraph(64 atoms, 64 ground rules of 1 rule))",
        FullGraph(graph): "FullGraph(FactorGraph(64 atoms, 64 ground rules of 1 rule))",
        run.source: f"GroundedOnDemand(FullGrounder, KnowledgeBase({known}))",
        run: "Run('towns', seed 3, epoch 1 of 2)",
        r2n.Model.from_run(run): "Model('towns', complex of dim 8, 1 reasoning layer, 44 known atoms)",
    }
    for thing, text in expected.items():
        assert repr(thing) == str(thing) == text


def test_answers_print_as_a_few_lines(run: Run) -> None:
    predictor = r2n.Model.from_run(run)
    answers = predictor.predict("near(?, ?)", everything=True)
    lines = repr(answers).splitlines()
    assert lines[0] == "256 answers to 256 atoms asked"
    assert len(lines) <= MOST_LINES
    assert lines[1].startswith("  near(")
    assert lines[1].endswith(") 1.0000 (known: true)")
    assert lines[-1] == "  ... and 246 more"
    assert repr(predictor.predict("liesIn(n5, ?)", top=1)).splitlines()[0] == "1 answer to 2 atoms asked"


def test_a_report_prints_its_metrics(run: Run, tmp_path: Path) -> None:
    report = run.evaluate("test")
    name, value = report.main
    assert (name, value) == ("ap", report.metrics["ap"])
    assert repr(report).startswith(f"Report on 'test' (classification, 4 queries): ap {value:.4f}, ")
    assert str(report).splitlines()[0] == "Report on 'test' (classification, 4 queries)"
    assert f"{value:.4f}" in str(report).splitlines()[2]
    assert report.to_pandas().loc["all queries", "ap"] == value
    assert len(repr(report)) < LONGEST
    test = run.problem.test
    true = r2n.Evidence(test.atoms[test.truth], test.truth[test.truth])
    all_true = evaluate(run.model, run.source, true, evidence=run.problem.train)
    assert all_true.main == ("mrr", all_true.metrics["mrr"])
    assert repr(all_true).startswith("Report on 'queries' (ranking, 2 queries): mrr ")
