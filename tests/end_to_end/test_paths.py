"""Reasoning along paths: what it learns, that it stops and goes on, and that it answers on graphs it never saw."""

import json
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
import torch

import r2n
from r2n.errors import ConfigError
from r2n.logic.parser import parse_theory
from r2n.model.rule_report import rule_report
from r2n.model.run import prepare_run
from r2n.model.training import train_in
from r2n.options import Options
from r2n.store.checkpoint import below, read_checkpoint, read_trace
from tests.command_line import invoke
from tests.noise_problem import noise_problem
from tests.path_problems import chained

CHANCE = 0.35  # of 12 tails that are all unreached, the mean rank is 6.5; of 170 heads it is larger


def mrr(problem: r2n.Problem, split: str = "test") -> float:
    run = prepare_run(problem)
    for _ in run.trainer:
        pass
    return run.evaluate(split).metrics["mrr"]


@pytest.mark.parametrize("steps", [2, 3])
def test_a_chain_is_learned_if_the_steps_suffice_and_is_chance_if_not(steps: int) -> None:
    assert mrr(chained(steps, f"grounding.depth={steps}")) >= 0.95
    assert mrr(chained(steps, f"grounding.depth={steps - 1}")) < CHANCE


@pytest.mark.slow
def test_a_chain_of_four_steps_is_learned() -> None:
    assert mrr(chained(4, "grounding.depth=4", "training.epochs=160")) >= 0.95
    assert mrr(chained(4, "grounding.depth=3")) < CHANCE


def test_what_no_fact_tells_stays_at_chance() -> None:
    options = "grounding.strategy=paths", "model.layers=2"
    found = [mrr(noise_problem("alike", *options, seed=seed)) for seed in range(3)]
    tails = np.arange(1, 21)
    assert np.mean(found) < (1 / tails).mean() + 0.08, "at both positions, and heads are more than tails"
    telling = mrr(noise_problem("telling", *options, "training.epochs=40", "training.learning_rate=0.02"))
    assert telling > 0.8


def test_the_chain_that_was_learned_is_the_first_path_rule_and_its_theory_is_trained(tmp_path: Path) -> None:
    model = r2n.train(chained(2, "grounding.depth=2"), out=tmp_path / "run", notify=lambda *_: None)
    found = rule_report(model).paths
    assert str(found[0]) == "r1(x, z) & r2(z, y) -> p(x, y)"
    assert (found[0].support, found[0].pairs) == (120, 170), "facts to learn from, and all heads"
    assert all(found[0].weight > part.weight + 2 for part in found[1:])
    on_other = rule_report(model.on(chained(2, seed=5, tails=20, prefix="other_"))).paths
    assert (on_other[0].weight, str(on_other[0])) == (pytest.approx(found[0].weight, abs=1e-5), str(found[0]))
    out, run = tmp_path / "learned.r2n", str(tmp_path / "run")
    document = json.loads(invoke("rules", run, "--most", "1", "--json", "--export", str(out)))
    assert document["paths"] == [found[0].to_dict()]
    assert "what leads to it" in invoke("rules", run)
    text = out.read_text()
    assert [str(rule) for rule in parse_theory(text).rules] == [f"rule path0 [0.7059]: {found[0]}"]
    known = model.problem
    names = known.knowledge.base.names
    queries = {split: names(part.atoms) for split, part in known.queries.items()}
    options = Options().changed(
        ["grounding.strategy=full", "model.rules=counted", "model.input=distmult", "model.dim=4", "training.epochs=20"]
    )
    problem = r2n.Problem.from_facts(names(known.train.atoms), theory=text, queries=queries, options=options)
    assert mrr(problem) >= 0.9


def test_path_rules_of_a_blend_and_of_noise() -> None:
    changes = "model.reasoner=paths", "model.layers=2", "model.input_score=true", "training.loss=full-softmax"
    report = rule_report(r2n.train(chained(2, *changes, "training.epochs=30"), notify=lambda *_: None))
    assert str(report.paths[0]) == "r1(x, z) & r2(z, y) -> p(x, y)"
    options = "grounding.strategy=paths", "model.layers=2"
    report = rule_report(r2n.train(noise_problem("alike", *options), notify=lambda *_: None))
    assert max((part.rule.weight or 0 for part in report.paths), default=0) < 0.02, "every head leads to every tail"
    assert "reads no rules" in report.notes[0]


def test_a_network_answers_on_another_graph_with_its_predicates(tmp_path: Path) -> None:
    known, other = chained(2, "grounding.depth=2"), chained(2, seed=5, tails=20, prefix="other_")
    model = r2n.train(known, out=tmp_path / "run", notify=lambda *_: None)
    assert not {*known.knowledge.language.constants} & {*other.knowledge.language.constants}
    assert model.on(other).evaluate("test").metrics["mrr"] >= 0.95
    loaded = r2n.Model.load(tmp_path / "run")
    queries = other.queries["test"].atoms[:5]
    np.testing.assert_allclose(loaded.on(other).logits(queries), model.on(other).logits(queries))
    shuffled = r2n.Problem.from_facts(
        ["r2(b, c)", "r1(a, b)"],
        theory="domain h, m, t\npredicate r2(m, t)\npredicate p(h, t)\npredicate r1(h, m)",  # in another order
        queries={"test": ["p(a, c)"]},
    )
    answers = model.on(shuffled).predict("p(a, ?)")
    assert str(answers[0].atom) == "p(a, c)"
    strange = r2n.Problem.from_facts(["r3(a, b)"], queries={"test": ["r3(b, a)"]})
    with pytest.raises(ConfigError, match="nothing of 'r3'"):
        model.on(strange)


def test_new_facts_and_constants_are_answered_without_training() -> None:
    model = r2n.train(chained(2, "grounding.depth=2"), notify=lambda *_: None)
    more = model.with_facts(["r1(new, newm1)", "r2(newm1, t3)"])
    found = more.predict("p(new, ?)")
    assert found[0].atom == "p(new, t3)"
    assert found[0].reached
    known = model.problem.knowledge.base.names(model.problem.train.atoms[:1])[0]
    (answer,) = model.predict(known)
    assert answer.known
    assert answer.logit == pytest.approx(model.without_facts(known).predict(known)[0].logit, abs=1e-4)
    (one,) = model.predict("p(test0, t0)")
    (row,) = [each for each in model.predict("p(test0, ?)", everything=True) if each.atom == "p(test0, t0)"]
    assert one.reached == row.reached


def test_a_training_by_the_clock_that_was_stopped_ends_bit_for_bit_the_same(tmp_path: Path) -> None:
    problem = chained(
        2, "grounding.depth=2", "training.epochs=100000", "training.minutes=0.02", "training.validate_every=5"
    )
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    for epoch in train_in(whole, prepare_run(problem), checkpoint_seconds=0.0):
        if epoch.number == 4:
            copytree(whole, stopped, ignore=lambda *_: [".lock"])
    planned = read_checkpoint(stopped)
    assert planned is not None
    assert planned[1]["epoch"] in (3, 4)
    for _ in train_in(stopped, prepare_run(problem), resume=True):
        pass
    first, second = read_checkpoint(whole), read_checkpoint(stopped)
    assert first is not None
    assert second is not None
    assert first[1]["epoch"] == second[1]["epoch"] == first[1]["planned"] > 4
    assert first[1]["best_epoch"] == second[1]["best_epoch"]
    for part in ("model", "best", "optimizer"):
        one, other = below(first[0], part), below(second[0], part)
        assert one.keys() == other.keys()
        assert all(torch.equal(one[name], other[name]) for name in one), part
    losses = [[line["loss"] for line in read_trace(folder / "trace.jsonl")] for folder in (whole, stopped)]
    assert losses[0] == losses[1]


def test_options_that_contradict_paths_are_refused() -> None:
    for change, what in (
        ("model.reasoner=r2n", "one is along paths"),
        ("grounding.reciprocal=false", "reciprocal"),
        ("model.layers=4", "layers = 4, depth = 2"),
        ("training.loss=bce", "compared with all candidates"),
    ):
        problem = chained(2, "grounding.depth=2", change)
        with pytest.raises(ConfigError, match=what):
            prepare_run(problem)
