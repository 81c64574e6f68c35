"""The report of a split: before and after calibration, and an ensemble with its single networks beside it."""

from dataclasses import replace
from math import isnan
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import pytest

from r2n.data.knowledge_base import Evidence
from r2n.data.problem import Problem, load_problem
from r2n.datasets.generated import GraphOptions, generate
from r2n.errors import ConfigError
from r2n.evaluation.calibrate import Calibrated
from r2n.evaluation.metrics import average_precision
from r2n.evaluation.ranking import EvaluationOptions, row_memory
from r2n.model import evaluation
from r2n.model.evaluation import DEVIATION, SINGLE, baseline_scores, evaluate_split
from r2n.model.run import Run, prepare_run
from r2n.scoring import AtomLogits


@pytest.fixture(scope="module")
def logits(toy: Problem) -> AtomLogits:
    models, options = [], toy.options.changed(["training.epochs=3"])
    run = prepare_run(toy, options, 0)
    for seed in range(3):
        run = run.again(seed)
        for _ in run.trainer:
            pass
        models.append(run.model)
    return AtomLogits(models[0], run.source, run.knowledge.evidence, others=tuple(models[1:]))


def test_probabilities_are_judged_before_and_after(toy_run: Run) -> None:
    calibrated = Calibrated(3.0, 0.5, "labels")
    plain, report = (toy_run.evaluate("test", calibration=each) for each in (None, calibrated))
    assert report.metrics == plain.metrics
    assert report.calibration == plain.calibration
    assert plain.calibrated is None
    assert report.calibrated is not None
    probabilities = calibrated(toy_run.logits()(toy_run.problem.test.atoms))
    expected = np.mean((probabilities - toy_run.problem.test.truth) ** 2)
    assert report.calibrated.brier == pytest.approx(expected)
    assert [each.protocol["calibration"] for each in (plain, report)] == ["none", str(calibrated)]
    assert "ensemble" not in report.protocol
    assert report.to_dict()["calibrated"]["brier"] == report.calibrated.brier


def test_an_ensemble_stands_beside_its_networks(logits: AtomLogits, toy: Problem) -> None:
    report = evaluate_split(logits, toy, "test", baselines={})
    assert report.protocol["ensemble"] == "ensemble of 3: the mean of the logits of as many networks"
    alone = [evaluate_split(member, toy, "test").metrics for member in logits.members]
    for name in report.metrics:
        values = [metrics[name] for metrics in alone]
        assert report.baselines[SINGLE][name] == pytest.approx(mean(values))
        assert report.baselines[DEVIATION][name] == pytest.approx(stdev(values))
    assert not evaluate_split(logits, toy, "test").baselines
    assert {SINGLE, DEVIATION} < set(
        evaluate_split(logits, toy, "test", baselines=baseline_scores(logits, toy)).baselines
    )


def test_a_ranking_too(logits: AtomLogits, toy: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = Evidence(toy.test.atoms[toy.test.truth], np.ones(2, bool))
    ranked = replace(toy, queries={"test": facts})
    report = evaluate_split(
        logits, ranked, "test", options=EvaluationOptions(calibration=Calibrated(2.0, 0.0, "labels")), baselines={}
    )
    alone = [evaluate_split(member, ranked, "test").metrics["mrr"] for member in logits.members]
    assert report.baselines[SINGLE]["mrr"] == pytest.approx(mean(alone))
    assert report.protocol["calibration"] == "temperature 2, fitted on labels"
    assert report.calibrated is None
    monkeypatch.setattr("r2n.model.evaluation.MOST_CANDIDATES_WITH_LAYERS", 10)
    assert SINGLE not in evaluate_split(logits, ranked, "test", baselines={}).baselines, "it would cost much"


def test_metrics_of_nothing_stay_so(logits: AtomLogits, toy: Problem) -> None:
    false = Evidence(toy.test.atoms[~toy.test.truth], np.zeros(2, bool))
    report = evaluate_split(logits, replace(toy, queries={"test": false}), "test", baselines={})
    assert isnan(report.baselines[SINGLE]["ap"])
    assert report.to_dict()["beside"][SINGLE]["ap"] is None


def test_a_split_that_is_not_there_is_named(toy_run: Run) -> None:
    with pytest.raises(ConfigError, match="the problem has no queries 'train'"):
        toy_run.evaluate("train")


def test_metrics_do_not_depend_on_how_many_atoms_are_scored_at_once(tmp_path: Path) -> None:
    """Atoms that the network cannot tell apart get logits that differ in the last bits, with the size of the batch."""
    generate(GraphOptions(facts=400, constants=61, relations=4, rules=8, communities=6), tmp_path / "graph")
    problem = load_problem(tmp_path / "graph")
    changes = ["grounding.strategy=known-body", "model.evidence_input=only", "model.layers=2", "model.dim=9"]
    logits = prepare_run(problem, problem.options.changed(changes), 1).logits()
    reports = [
        evaluate_split(logits, problem, "test", options=EvaluationOptions(memory=row_memory(size)))
        for size in (1, 100_000, 10**6)
    ]
    assert len({(*report.metrics.values(), *report.ties["optimistic"].values()) for report in reports}) == 1
    asked = np.unique(np.random.default_rng(0).integers(problem.knowledge.base.size, size=1000))
    truth = np.isin(asked, problem.train.atoms)
    parts = [np.concatenate([logits(asked[i : i + size]) for i in range(0, 1000, size)]) for size in (7, 61, 1000)]
    assert len({average_precision(part, truth) for part in parts}) == 1


def test_calibrated_figures_of_what_the_calibration_was_fitted_on_are_not_held_out(toy_run: Run) -> None:
    fitted = Calibrated(3.0, 0.5, "4 validation queries", on_validation=True)
    valid, test = (toy_run.evaluate(split, calibration=fitted).protocol for split in ("valid", "test"))
    assert valid["not_held_out"] == "used for the calibration"
    assert "not_held_out" not in test
    for other in (replace(fitted, on_validation=False), replace(fitted, temperature=1.0, shift=0.0)):
        assert "not_held_out" not in toy_run.evaluate("valid", calibration=other).protocol


def test_without_validation_queries_nothing_was_chosen(toy: Problem) -> None:
    empty = replace(toy, queries={"valid": Evidence.empty(), "test": toy.test})
    run = prepare_run(empty, toy.options.changed(["model.rules=counted", "training.epochs=1"]), 0)
    valid, test = (run.evaluate(split).protocol for split in empty.queries)
    assert str(test["combination"]).endswith("(nothing could choose another)")
    assert "not_held_out" not in valid


def test_results_that_cannot_be_paired_are_not_said_to_be_worse(toy_run: Run) -> None:
    report = toy_run.evaluate("test")
    better = replace(report, metrics={**report.metrics, "ap": 2.0})
    assert evaluation._harm(report, replace(better, by_query=None)) == {}
