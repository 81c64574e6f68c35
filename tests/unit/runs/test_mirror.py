"""What stands beside a network: the same queries, asked of its parts."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from r2n.evaluation.evaluate import classify
from r2n.evaluation.filters import Filter
from r2n.evaluation.network import evaluate_scores
from r2n.evaluation.rules_alone import RulesAlone
from r2n.knowledge.problem import Problem, load_problem
from r2n.model.combination import NETWORK_ALONE, RULES_ALONE
from r2n.prediction.trained import Trained
from r2n.runs import mirror
from r2n.runs.mirror import mirrors
from r2n.runs.run import Run, prepare_run
from tests.ordered_problem import write_ordered_problem


def road(folder: Path, *settings: str) -> Problem:
    return load_problem(write_ordered_problem(folder, *settings))


def prepared(problem: Problem, *changes: str) -> Run:
    return prepare_run(problem, problem.options.changed(changes), seed=0)


def test_rules_are_counted_beside_reasoning_layers(toy: Problem, toy_run: Run) -> None:
    reports = toy_run.reports()
    alone = RulesAlone.of(toy.knowledge)
    assert alone is not None
    for report, split in zip(reports, toy.queries, strict=True):
        expected = classify(alone, toy.queries[split], toy.knowledge.base).metrics
        assert report.beside == {"rules alone": expected}
        assert report.metrics == toy_run.evaluate(split).metrics, "the report itself is not touched"
    assert toy_run.evaluate("test").beside == {}
    assert Trained.of(toy_run).evaluate("test", mirror=True).beside == reports[1].beside


def test_counted_rules_are_shown_with_their_learned_weights(tmp_path: Path) -> None:
    run = prepared(road(tmp_path, 'rules = "counted"'))
    for _ in run.trainer:
        pass
    problem, logits = run.problem, run.logits()
    base, filtered = problem.knowledge.base, Filter.of(problem)
    (_, report) = run.reports()
    for name, way in (("rules alone", RULES_ALONE), ("input layer alone", NETWORK_ALONE)):
        expected = evaluate_scores(logits.by(way), problem.test, base, filtered, split="test").metrics
        assert report.beside[name] == expected
    assert list(report.beside) == ["rules alone", "input layer alone"]
    sample = Trained.of(run).evaluate("test", sample=4, seed=2, mirror=True)
    expected = evaluate_scores(logits.by(RULES_ALONE), problem.test, base, filtered, split="test", sample=4, seed=2)
    assert sample.beside["rules alone"] == expected.metrics


@pytest.mark.parametrize("reciprocal", ["false", "true"])
def test_the_score_that_is_added_is_shown_alone(tmp_path: Path, reciprocal: str) -> None:
    """As a network without layers that has the same vectors says it."""
    problem = road(tmp_path)
    changes = ("model.input_score=true", f"grounding.reciprocal={reciprocal}", "model.constant_dropout=0.5")
    run = prepared(problem, *changes)
    bare = prepared(problem, *changes, "model.reasoner=none", "model.input_score=false")
    for part in ("constants", "atom_embedding"):
        getattr(bare.model, part).load_state_dict(getattr(run.model, part).state_dict())
    run.model.eval()
    beside = mirrors(run.logits(), problem)
    assert list(beside) == ["rules alone", "input layer alone"]
    codes = np.arange(problem.knowledge.base.size)
    np.testing.assert_allclose(beside["input layer alone"](codes), bare.logits()(codes), atol=1e-6)
    assert not run.model.constants.training, "asking changes nothing"
    assert "input layer alone" not in mirrors(prepared(problem).logits(), problem)


def test_what_is_not_cheap_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = road(tmp_path)
    layered, counted = prepared(problem), prepared(problem, "model.rules=counted")
    asked = max(sum(2 * 14 if a < 2 * 14**2 else 14 for a in part.atoms) for part in problem.queries.values())
    monkeypatch.setattr(mirror, "MOST_CANDIDATES", asked)
    assert list(mirrors(layered.logits(), problem)) == ["rules alone"]
    assert len(mirrors(counted.logits(), problem)) == 2
    monkeypatch.setattr(mirror, "MOST_CANDIDATES", asked - 1)
    assert mirrors(layered.logits(), problem) == {}
    assert mirrors(counted.logits(), problem) == {}
    assert mirrors(layered.logits(), replace(problem, queries={})) != {}
