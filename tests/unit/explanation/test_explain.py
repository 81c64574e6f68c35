"""Explanations of answers: reasons and those below them, their parts together, and counted rules."""

from dataclasses import replace

import numpy as np
import pytest

from r2n.data.problem import Problem
from r2n.explanation import explain as module
from r2n.explanation.explain import MOST_MEMBERS, CountedAtom, RankedRule, ReasonTree, explain, ground_text, ranked
from r2n.logic.parser import parse_theory
from r2n.network.mixture import WEIGHTINGS, Weighting
from tests.unit.explanation.small_model import code, codes, explained, predictor_of

COUNTED = ("model.rules=counted", "model.reasoner=none")


@pytest.mark.parametrize(
    ("changes", "atom", "note"),
    [
        ((), "liesIn(n1, north)", "it is known to be true"),
        ((), "near(n1, s1)", "it is no fact of a closed predicate"),
        ((), "liesIn(n5, north)", "does not read facts"),
        (("model.reasoner=none",), "liesIn(n5, north)", "has no reasoning layer"),
        (("grounding.strategy=known-body",), "near(n1, s1)", "no ground rule holds it"),
    ],
)
def test_what_a_person_should_know_is_noted(toy: Problem, changes: tuple[str, ...], atom: str, note: str) -> None:
    model = explained(toy, *changes)
    assert any(note in text for text in explain(model, code(model, atom)).notes)


def test_what_speaks_for_an_atom_comes_first_and_the_limit_keeps_the_strongest(toy: Problem) -> None:
    rule, effects = toy.knowledge.theory.rules[0], (0.01, -0.3, 0.12, 0.0, -0.02, 0.05, 0.04)
    found = [RankedRule((i,), rule, np.array([i]), effect) for i, effect in enumerate(effects)]
    shown = {top: [part.effect for part in ranked(found, top)] for top in (None, 1, 2, 3, 4, 0)}
    assert shown[None] == [0.12, 0.05, 0.04, 0.01, -0.3, -0.02, 0.0]
    assert shown[1] == [0.12]
    assert shown[2] == [0.12, -0.3]
    assert shown[3] == [0.12, 0.05, -0.3]
    assert shown[4] == [0.12, 0.05, 0.04, -0.3]
    assert shown[0] == []


def test_of_a_wide_ground_rule_the_largest_effects_are_listed(toy: Problem) -> None:
    model, wide = explained(toy), np.arange(2 * MOST_MEMBERS)
    tree = ReasonTree(model, 1, effects={(0, int(other)): float(other) for other in wide})
    tree.below[0] = [RankedRule((0,), replace(toy.knowledge.theory.rules[0], formula=None), wide, 1.0)]
    (reason,) = tree.reasons(0)
    assert [member.atom for member in reason.because] == model.names(wide[-MOST_MEMBERS:])


RULES = """
domain thing
predicate p(thing)
predicate q(thing, thing)
rule horn: p(x) & q(x, y) -> p(y)
rule nested: (p(x) | !q(x, y)) & p(y) <-> q(y, x)
rule other: p(x) xor !p(y)
implicit related: [p(x), q(x, y)]
"""


@pytest.mark.parametrize(
    ("rule", "names", "text"),
    [
        ("horn", ["p(a)", "q(a, b)", "p(b)"], "p(a) & q(a, b) -> p(b)"),
        ("nested", ["p(a)", "q(a, b)", "p(b)", "q(b, a)"], "((p(a) | !q(a, b)) & p(b)) <-> q(b, a)"),
        ("other", ["p(a)", "p([/])"], "p(a) xor !p([/])"),
        ("related", ["p(a)", "q(a, b)"], "[p(a), q(a, b)]"),
    ],
)
def test_a_ground_rule_reads_as_its_rule_with_the_names_of_its_atoms(rule: str, names: list[str], text: str) -> None:
    (found,) = (found for found in parse_theory(RULES).rules if found.name == rule)
    assert ground_text(found, names) == text


def test_a_new_constant_stays_when_its_only_fact_goes(toy: Problem) -> None:
    predictor = predictor_of(toy, "model.evidence_input=only", "grounding.strategy=backward", "training.hiding=0.3")
    found = predictor.with_facts(["near(n1, n99)", "near(n99, n1)"]).explain("liesIn(n99, north)")
    assert "near(n1, n99)" in {what for other in found.counterfactuals for what in other.what}


def test_counts_explain_an_answer(toy: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    predictor = predictor_of(toy, *COUNTED)
    found = predictor.explain("liesIn(n5, north)", top=1, against="liesIn(n5, south)")
    assert len(found.layers) == 2
    assert found.fidelity is not None
    assert (found.fidelity.listed, found.fidelity.ground_rules) == (1, 2)
    assert found.reasons[0].effect == pytest.approx(found.belief.logit - found.fidelity.without)
    assert found.contrast is not None
    assert found.contrast.reasons[0].rule == "neighbours"
    asked = predictor.problem.test.atoms
    own = asked[[predictor.base.names(asked).index("liesIn(n5, north)")]]
    found = predictor.explain("liesIn(n5, north)", top=None)
    facts = [other for other in found.counterfactuals if other.kind == "not known"]
    assert len(facts) == 4
    for other in facts:
        assert other.logit == pytest.approx(predictor.without_facts(list(other.what)).logits(own)[0], abs=1e-6)
    assert [other.what for other in found.counterfactuals if other.kind == "without rule"] == [("neighbours",)]
    monkeypatch.setattr(module, "MOST_FACTS", 1)
    few = predictor.explain("liesIn(n5, north)")
    assert module.MANY_FACTS in few.notes
    assert not any(other.kind == "not known" for other in few.counterfactuals)


@pytest.mark.parametrize("way", range(len(WEIGHTINGS)))
def test_the_logit_by_counts_is_that_of_the_network(toy: Problem, way: int) -> None:
    model = explained(toy, *COUNTED)
    combination = model.members[0].model.combination
    assert combination is not None
    combination.way.fill_(way)
    for atom in ("liesIn(n5, north)", "liesIn(n5, south)", "near(n1, n2)"):
        counted = CountedAtom(model.members, code(model, atom))
        assert counted.logit() == pytest.approx(model.logits(codes(model, atom))[0], abs=1e-5)
    counted = CountedAtom(model.members, code(model, "liesIn(n5, north)"))
    assert counted.numbers == {0: 2}
    ((number, ground_rules),) = counted.ground_rules()
    assert number == 0
    atoms = {f"{name}, north)" for name in ("liesIn(n4", "liesIn(n5", "liesIn(n6")} | {"near(n4, n5)", "near(n6, n5)"}
    assert set(model.names(np.unique(ground_rules.atoms))) == atoms


def test_an_atom_feels_what_concludes_another_of_its_row(toy: Problem) -> None:
    model = explained(toy, *COUNTED)
    combination = model.members[0].model.combination
    assert combination is not None
    combination.way.fill_(
        WEIGHTINGS.index(Weighting("sum", 1.0))
    )  # in a mixture, what no rule concludes has its share as it is
    one = CountedAtom(model.members, code(model, "liesIn(n5, south)"))
    other = codes(model, "liesIn(n5, north)", "liesIn(s5, north)")
    assert one.numbers == {}
    assert one.ground_rules() == []
    assert one.logit({0: 1}, of=int(other[0])) > one.logit()
    assert one.logit({0: 1}, of=int(other[1])) == one.logit()
