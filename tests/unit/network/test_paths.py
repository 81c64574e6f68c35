"""Paths among other predicates and other parts of a model."""

import json

import numpy as np
import pytest

import r2n
from r2n.errors import ConfigError
from r2n.explanation import paths as explanation
from r2n.model.choices import choose_options
from r2n.model.preflight import preflight_warnings
from r2n.model.run import prepare_run
from r2n.network.paths import UNREACHED
from r2n.options import Options
from tests.noise_problem import noise_problem
from tests.path_problems import FAST, chained

RULE = "\nrule chain: r1(x, y) & r2(y, z) -> p(x, z)"


def with_rule(*changes: str) -> r2n.Problem:
    plain = chained(2, "grounding.depth=1")
    names = plain.knowledge.base.names
    theory = "domain head, m1, tail\npredicate p(head, tail)\npredicate r1(head, m1)\npredicate r2(m1, tail)" + RULE
    queries = {split: names(part.atoms) for split, part in plain.queries.items()}
    options = Options().changed([*FAST, "training.epochs=5", "grounding.depth=1", *changes])
    return r2n.Problem.from_facts(names(plain.train.atoms), theory=theory, queries=queries, options=options)


def test_counted_rules_are_mixed_with_paths() -> None:
    assert any("left out along paths" in text for text in preflight_warnings(with_rule(), _chosen(with_rule())))
    problem = with_rule("model.rules=counted")
    assert not any("left out along paths" in text for text in preflight_warnings(problem, _chosen(problem)))
    run = prepare_run(problem)
    for _ in run.trainer:
        pass
    assert run.evaluate("test").metrics["mrr"] >= 0.95, "one step reaches no tail, but the rule does"
    alone = prepare_run(with_rule())
    for _ in alone.trainer:
        pass
    assert alone.evaluate("test").metrics["mrr"] < 0.4


def _chosen(problem: r2n.Problem) -> Options:
    return choose_options(problem, problem.options)[0]


def test_predicates_of_other_than_two_positions_are_neither_asked_nor_followed() -> None:
    theory = "domain d\npredicate p(d, d)\npredicate one(d)\npredicate three(d, d, d)"
    facts = ["p(a, b)", "p(b, c)", "one(a)", "three(a, b, c)", "p(c, d)"]
    queries = {"test": ["p(a, c)", "one(b)", "three(a, b, d)"]}
    options = Options().changed([*FAST, "training.epochs=2", "grounding.depth=2", "model.input=distmult"])
    problem = r2n.Problem.from_facts(facts, theory=theory, queries=queries, options=options)
    run = prepare_run(problem)
    for epoch in run.trainer:
        assert np.isfinite(epoch.loss)
    logits, base = run.logits(), problem.knowledge.base
    atoms = problem.queries["test"].atoms
    found = dict(zip(base.names(atoms), logits(atoms), strict=True))
    assert found["p(a, c)"] > UNREACHED / 2
    assert found["one(b)"] == found["three(a, b, d)"] == UNREACHED
    assert np.isfinite(run.evaluate("test").metrics["mrr"])


def test_without_a_fact_of_a_pair_there_is_nothing_to_learn() -> None:
    options = Options().changed([*FAST, "grounding.depth=2"])
    problem = r2n.Problem.from_facts(["one(a)", "one(b)"], options=options)
    with pytest.raises(ConfigError, match="no fact to learn from"):
        prepare_run(problem)


def test_probabilities_are_those_of_atoms_that_paths_reach() -> None:
    """What no path reaches has a logit below all others, which says nothing of the others' probabilities."""
    options = "grounding.strategy=paths", "model.layers=2", "training.epochs=20"
    alike = r2n.train(noise_problem("alike", *options), notify=lambda *_: None)
    found = alike.answers(alike.problem.queries["test"].atoms)
    assert found.reached.all()
    assert 0.03 < found.network.mean() < 0.07, "of 20 tails one is true, and nothing tells which"
    nothing = r2n.train(chained(2, "grounding.depth=1", "training.epochs=2"), notify=lambda *_: None)
    answers = nothing.answers(nothing.problem.queries["test"].atoms)
    assert not answers.reached.any()
    assert (answers.logits < UNREACHED / 2).all()


def test_an_answer_is_explained_by_the_facts_on_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    model = r2n.train(chained(2, "grounding.depth=2"), notify=lambda *_: None)
    answer, tail = model.predict("p(test0, ?)")[0], model.predict("p(test0, ?)")[0].atom.split()[-1]
    found = model.explain(answer, against="p(test0, t1)" if tail == "t0)" else "p(test0, t0)")
    facts = ["r1(test0, test0m1)", f"r2(test0m1, {tail}"]
    assert [member.atom for member in found.reasons[0].because] == facts
    assert found.reasons[0].ground_rule == f"{' & '.join(facts)} -> {answer.atom}"
    assert found.belief.logit == pytest.approx(answer.logit, abs=1e-5)
    assert found.belief.probability == pytest.approx(answer.probability, abs=1e-5)
    assert found.layers[-1].logit == pytest.approx(answer.logit, abs=1e-5)
    for member in found.reasons[0].because:
        (again,) = [
            each
            for each in model.without_facts(member.atom).predict("p(test0, ?)", everything=True)
            if each.atom == answer.atom
        ]
        assert member.effect == pytest.approx(answer.logit - again.logit, abs=1e-4)
    assert found.contrast is not None
    assert {reason.rule for reason in found.contrast.reasons} >= {*facts}
    assert {item.what[0] for item in found.counterfactuals} >= {*facts}
    assert all(item.turns for item in found.counterfactuals if item.what[0] in facts)
    json.dumps(found.to_dict(), allow_nan=False)
    assert "<svg" in found._repr_html_()
    assert answer.atom in str(found)
    assert not model.explain(answer, depth=0).reasons
    every = model.explain(answer, top=None)
    monkeypatch.setattr(explanation, "MOST_FACTS", 1)
    assert len(model.explain(answer, top=None).counterfactuals) == 1 < len(every.counterfactuals)
    assert len(model.explain(answer, top=None).notes) == len(every.notes) + 1, "others are left out, and a note says so"


def test_a_known_atom_is_explained_without_itself() -> None:
    model = r2n.train(chained(2, "grounding.depth=2", "training.epochs=20"), notify=lambda *_: None)
    known = next(name for name in model.base.names(model.problem.train.atoms) if name.startswith("p("))
    found = model.explain(known, top=None)
    assert found.belief.known
    assert found.reasons
    assert known not in {member.atom for reason in found.reasons for member in reason.because}


def test_what_no_path_reaches_is_explained_by_the_facts_of_its_constant() -> None:
    model = r2n.train(chained(2, "grounding.depth=1", "training.epochs=5"), notify=lambda *_: None)
    theory = "domain h, m, t\npredicate p(h, t)\npredicate r1(h, m)\npredicate r2(m, t)"
    found = model.on(r2n.Problem.from_facts(["r1(a, b)", "r2(b, c)"], theory=theory)).explain("p(a, c)")
    assert [member.atom for reason in found.reasons for member in reason.because] == ["r2(b, c)"]


def test_what_is_not_asked_along_paths_has_no_reasons_and_counted_rules_are_named() -> None:
    model = r2n.train(with_rule("model.rules=counted"), notify=lambda *_: None, epochs=2)
    found = model.explain("p(test0, t0)")
    assert len(found.layers) == 2
    assert found.layers[-1].logit == found.belief.logit
    assert not found.counterfactuals
    theory = "domain d\npredicate p(d, d)\npredicate one(d)\npredicate three(d, d, d)"
    options = Options().changed([*FAST, "training.epochs=2", "grounding.depth=2", "model.input=distmult"])
    facts = ["p(a, b)", "p(b, c)", "p(c, a)", "one(a)", "three(a, b, c)"]
    model = r2n.train(r2n.Problem.from_facts(facts, theory=theory, options=options), notify=lambda *_: None)
    for atom in ("one(b)", "three(a, b, b)"):
        found = model.explain(atom, against="p(a, c)")
        assert not found.reasons
        assert found.contrast is None
    assert "p(a, b)" in {member.atom for reason in model.explain("p(a, c)").reasons for member in reason.because}


def test_only_networks_along_paths_answer_on_another_problem() -> None:
    nations = r2n.load("nations")
    model = r2n.train(nations, notify=lambda *_: None, epochs=1, baseline=False)
    with pytest.raises(ConfigError, match="only networks along paths"):
        model.on(nations)
