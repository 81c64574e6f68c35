"""Reports of a split: calibrated and not, ensembles, baselines, constraints."""

import json
import os
from dataclasses import replace
from math import isnan
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import pytest

from r2n.cli.screen import baseline_notes
from r2n.data.knowledge_base import Evidence
from r2n.data.problem import Problem, load_problem
from r2n.datasets.generated import GraphOptions, generate
from r2n.errors import ConfigError
from r2n.evaluation.calibrate import Calibrated
from r2n.evaluation.evaluate import RulesAlone, evaluate_each
from r2n.evaluation.metrics import average_precision
from r2n.evaluation.ranking import EvaluationOptions, Filter, row_memory
from r2n.evaluation.report import Report, classify
from r2n.logic.parser import parse_theory
from r2n.mining.mine import LEAST_SUPPORT, Constrained
from r2n.model import run as module
from r2n.model.model import Model
from r2n.model.run import Run, baseline_scores, evaluate_split, prepare_run
from r2n.model.training import train_in, train_without_reasoning
from r2n.network.mixture import NETWORK_ALONE, RULES_ALONE
from r2n.options import Options
from r2n.scoring import AtomLogits
from tests.command_line import invoke
from tests.labelled_problems import table
from tests.ordered_problem import write_ordered_problem


@pytest.fixture(scope="module")
def logits(toy: Problem) -> AtomLogits:
    models, options = [], toy.options.changed(["training.epochs=3"])
    run = prepare_run(toy, options, 0)
    for seed in range(3):
        run = run.with_seed(seed)
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
        assert report.baselines[module.SINGLE][name] == pytest.approx(mean(values))
        assert report.baselines[module.DEVIATION][name] == pytest.approx(stdev(values))
    assert not evaluate_split(logits, toy, "test").baselines
    more = evaluate_split(logits, toy, "test", baselines=baseline_scores(logits, toy)).baselines
    assert {module.SINGLE, module.DEVIATION} < set(more)


def test_a_ranking_too(logits: AtomLogits, toy: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = Evidence(toy.test.atoms[toy.test.truth], np.ones(2, bool))
    ranked = replace(toy, queries={"test": facts})
    options = EvaluationOptions(calibration=Calibrated(2.0, 0.0, "labels"))
    report = evaluate_split(logits, ranked, "test", options=options, baselines={})
    alone = [evaluate_split(member, ranked, "test").metrics["mrr"] for member in logits.members]
    assert report.baselines[module.SINGLE]["mrr"] == pytest.approx(mean(alone))
    assert report.protocol["calibration"] == "temperature 2, fitted on labels"
    assert report.calibrated is None
    monkeypatch.setattr("r2n.model.run.MOST_CANDIDATES_WITH_LAYERS", 10)
    assert module.SINGLE not in evaluate_split(logits, ranked, "test", baselines={}).baselines, "it would cost much"
    false = Evidence(toy.test.atoms[~toy.test.truth], np.zeros(2, bool))
    report = evaluate_split(logits, replace(toy, queries={"test": false}), "test", baselines={})
    assert isnan(report.baselines[module.SINGLE]["ap"])
    assert report.to_dict()["baselines"][module.SINGLE]["ap"] is None


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


def test_without_validation_queries_nothing_was_chosen(toy: Problem, toy_run: Run) -> None:
    empty = replace(toy, queries={"valid": Evidence.empty(), "test": toy.test})
    run = prepare_run(empty, toy.options.changed(["model.rules=counted", "training.epochs=1"]), 0)
    valid, test = (run.evaluate(split).protocol for split in empty.queries)
    assert str(test["combination"]).endswith("(nothing could choose another)")
    assert "not_held_out" not in valid
    report = toy_run.evaluate("test")  # results that cannot be paired are not said to be worse
    better = replace(report, metrics={**report.metrics, "ap": 2.0})
    assert module._harm(report, replace(better, by_query=None)) == {}


def prepared(problem: Problem, *changes: str) -> Run:
    return prepare_run(problem, problem.options.changed(changes), seed=0)


def test_rules_are_counted_beside_reasoning_layers(toy: Problem, toy_run: Run) -> None:
    trained = Model.from_run(toy_run)
    reports = [trained.evaluate(split, baselines=True) for split in toy.queries]
    alone = RulesAlone.from_knowledge(toy.knowledge)
    assert alone is not None
    for report, split in zip(reports, toy.queries, strict=True):
        expected = classify(alone, toy.queries[split], toy.knowledge.base).metrics
        assert report.baselines == {"rules alone": expected}
        assert report.metrics == toy_run.evaluate(split).metrics, "the report itself is not touched"
    assert toy_run.evaluate("test").baselines == {}


def test_counted_rules_are_shown_with_their_learned_weights(tmp_path: Path) -> None:
    run = prepared(load_problem(write_ordered_problem(tmp_path, 'rules = "counted"')))
    for _ in run.trainer:
        pass
    problem, logits = run.problem, run.logits()
    base, filtered = problem.knowledge.base, Filter.from_problem(problem)
    report = Model.from_run(run).evaluate("test", baselines=True)
    for name, way in (("rules alone", RULES_ALONE), ("without reasoning", NETWORK_ALONE)):
        expected = evaluate_each([logits.by(way)], problem.test, base, filtered, split="test")[0].metrics
        assert report.baselines[name] == expected
    assert list(report.baselines) == ["rules alone", "without reasoning"]
    some = EvaluationOptions(sample=4, seed=2)
    sample = Model.from_run(run).evaluate("test", options=some, baselines=True)
    (expected,) = evaluate_each([logits.by(RULES_ALONE)], problem.test, base, filtered, some, split="test")
    assert sample.baselines["rules alone"] == expected.metrics


@pytest.mark.parametrize("reciprocal", ["false", "true"])
def test_the_score_that_is_added_is_shown_alone(tmp_path: Path, reciprocal: str) -> None:
    """As a network without layers that has the same vectors says it."""
    problem = load_problem(write_ordered_problem(tmp_path))
    changes = ("model.input_score=true", f"grounding.reciprocal={reciprocal}", "model.constant_dropout=0.5")
    run = prepared(problem, *changes)
    bare = prepared(problem, *changes, "model.reasoner=none", "model.input_score=false")
    for part in ("constants", "atom_embedding"):
        getattr(bare.model, part).load_state_dict(getattr(run.model, part).state_dict())
    run.model.eval()
    baselines = baseline_scores(run.logits(), problem)
    assert list(baselines) == ["rules alone", "input layer alone"]
    codes = np.arange(problem.knowledge.base.size)
    np.testing.assert_allclose(baselines["input layer alone"](codes), bare.logits()(codes), atol=1e-6)
    assert not run.model.constants.training, "asking changes nothing"
    assert "input layer alone" not in baseline_scores(prepared(problem).logits(), problem)


def test_what_is_not_cheap_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = load_problem(write_ordered_problem(tmp_path))
    layered, counted = prepared(problem), prepared(problem, "model.rules=counted")
    asked = max(sum(2 * 14 if a < 2 * 14**2 else 14 for a in part.atoms) for part in problem.queries.values())
    monkeypatch.setattr(module, "MOST_CANDIDATES", asked)
    assert list(baseline_scores(layered.logits(), problem)) == ["rules alone"]
    assert len(baseline_scores(counted.logits(), problem)) == 2
    monkeypatch.setattr(module, "MOST_CANDIDATES", asked - 1)
    assert baseline_scores(layered.logits(), problem) == {}
    assert baseline_scores(counted.logits(), problem) == {}
    assert baseline_scores(layered.logits(), replace(problem, queries={})) != {}


LINKED = """\
domain item
predicate good(item)
predicate linked(item, item) closed
rule alike: linked(x, y) & good(x) -> good(y)
rule unlike: linked(x, y) & !good(x) -> !good(y)
"""


def linked_items(*, alike: bool, items: int = 100) -> Problem:
    """Items that are good or not, told by their numbers or (`alike`) better by those that they are linked with."""
    dice = np.random.default_rng(0)
    good = dice.permutation(np.arange(items) % 2).astype(bool)
    numbers = np.where(good, 1, -1)[:, None] + (3.0 if alike else 0.8) * dice.normal(size=(items, 4))
    others = [np.flatnonzero((good == good[i]) | (not alike)) for i in range(items)]
    links = [(f"i{i}", f"i{j}") for i in range(items) for j in dice.choice(others[i], 3).tolist() if i != j]
    rows = [(f"i{i}", int(good[i])) for i in dice.permutation(items).tolist()]
    known, asked = (table("good", part, labelled=True) for part in (rows[: items // 4], rows[items // 4 :]))
    options = ["model.input=pair", "model.dim=8", "model.layers=2", "training.epochs=40"]
    return Problem.build(
        "items",
        parse_theory(LINKED),
        [table("linked", list(dict.fromkeys(links))), known],
        {"test": [asked]},
        features={"item": {f"i{i}": row for i, row in enumerate(numbers)}},
        options=Options().changed([*options, "training.corrupted_positions=[]"]),
    )


def compared(problem: Problem, folder: Path, *changes: str) -> Report:
    run = prepared(problem, *changes)
    for _ in train_in(folder, run):
        pass
    assert train_without_reasoning(folder, run, problem) is None
    report = Model.load(folder).evaluate("test", baselines=True)
    assert report.baselines["without reasoning"] == Model.load(folder / "without-reasoning").evaluate("test").metrics
    return report


def test_rules_that_hurt_are_told_and_those_that_help_are_not(tmp_path: Path) -> None:
    noise, alike = (linked_items(alike=kind) for kind in (False, True))
    hurt = compared(noise, tmp_path / "hurt", "model.evidence_input=only")  # the links alone, and they say nothing
    assert hurt.baselines["without reasoning"]["ap"] > hurt.metrics["ap"] + 0.1
    note, *others = baseline_notes(hurt)
    assert note.startswith("test: reasoning makes it worse: ap 0.")
    assert f"{hurt.baselines['without reasoning']['ap']:.3f} without reasoning (difference -0." in note
    helped = compared(alike, tmp_path / "helped")
    assert helped.metrics["ap"] > helped.baselines["without reasoning"]["ap"] + 0.05
    assert not any("worse" in note for note in baseline_notes(helped))
    assert not any("worse" in note for note in others), "once"


def test_comparisons_that_make_no_sense_or_take_too_long_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = linked_items(alike=True, items=20)
    for name, changes in (("alone", ["model.reasoner=none"]), ("run", [])):
        run = prepared(problem, *changes, "training.epochs=1")
        assert len(list(train_in(tmp_path / name, run))) == 1
        if name == "alone":
            assert train_without_reasoning(tmp_path / name, run, problem) is None
    monkeypatch.setattr("r2n.model.training.FREE_SECONDS", 0.0)
    monkeypatch.setattr("r2n.model.training.read_trace", lambda _: [])
    assert train_without_reasoning(tmp_path / "run", run, problem) == "it takes longer than the training itself (0 s)"
    assert not list(tmp_path.glob("*/without*"))


def test_a_damaged_comparison_is_left_out_and_the_run_is_evaluated(tmp_path: Path) -> None:
    problem, folder = linked_items(alike=True, items=60), tmp_path / "run"
    queries = {"valid": problem.test, "test": problem.test}
    sound = compared(replace(problem, queries=queries), folder, "training.epochs=1")
    assert [path.parent.name for path in folder.rglob("calibration.json")] == ["run"], "that of the run itself"
    config = folder / "without-reasoning" / "config.json"
    config.unlink()
    os.mkfifo(config)
    found = json.loads(invoke("evaluate", str(folder), "--json"))
    assert found["metrics"] == sound.to_dict()["metrics"]
    assert set(found["baselines"]) == set(sound.baselines) - {"without reasoning"}
    why = f"with 'without reasoning': {config} cannot be read: it is a pipe, not a regular file; delete {config.parent}"
    assert found["protocol"]["not_compared"].startswith(why)
    assert "not compared with 'without reasoning'" in invoke("evaluate", str(folder))
    assert "not_compared" not in sound.protocol


@pytest.fixture(scope="module")
def road(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    return load_problem(write_ordered_problem(tmp_path_factory.mktemp("road")))


def test_forbidden_candidates_stand_last(road: Problem) -> None:
    trained = Model.from_run(prepare_run(road, road.options, seed=0))
    constrained = Constrained.from_knowledge(road.knowledge)
    plain, better = trained.evaluate("test"), trained.evaluate("test", options=EvaluationOptions(forbidden=constrained))
    assert better.metrics["mrr"] > plain.metrics["mrr"], "no true answer is forbidden here"
    assert better.protocol["constraints"] == str(constrained)
    assert "constraints" not in plain.protocol
    road_of = road.knowledge.language.predicate_index(constrained.constraints[0].predicates[0])
    given = np.array([[3, 0], [5, 0]])
    found, members = constrained(road_of, 1, given), road.knowledge.language.predicates[road_of].domains[1]
    ids = road.knowledge.language.members(members).tolist()
    assert [found[i, ids.index(given[i, 0])] for i in range(2)] == [True, True], "irreflexive"
    unary = next(i for i, p in enumerate(road.knowledge.language.predicates) if p.arity != 2)
    assert not constrained(unary, 0, given).any()


def test_which_constraints_are_found(road: Problem) -> None:
    found = Constrained.from_knowledge(road.knowledge)
    assert str(found) == "irreflexive 1, asymmetric 1"
    assert all(constraint.support >= LEAST_SUPPORT for constraint in found.constraints)
    assert "functional 1" in str(Constrained.from_knowledge(road.knowledge, min_support=3))
    assert str(Constrained.from_knowledge(road.knowledge, ("disjoint",))) == "none found"
    with pytest.raises(ConfigError, match="no kind of constraint 'reflexive'") as caught:
        Constrained.from_knowledge(road.knowledge, ("reflexive",))
    assert "irreflexive" in str(caught.value)


def test_a_classification_is_refused(toy: Problem) -> None:
    trained = Model.from_run(prepare_run(toy, toy.options, seed=0))
    with pytest.raises(ConfigError, match="only a ranking respects constraints"):
        trained.evaluate("test", options=EvaluationOptions(forbidden=Constrained.from_knowledge(toy.knowledge)))
