"""Rules without a network: masses by plain loops over ground rules; what would take long is left."""

from math import exp, log

import numpy as np
import pytest
from hypothesis import given

from r2n.data.herbrand import Side
from r2n.data.knowledge_base import KnowledgeBase
from r2n.errors import GroundingError
from r2n.evaluation import evaluate
from r2n.evaluation.evaluate import POWER, UNREACHED, RulesAlone
from r2n.grounding.counting import RuleCounts
from tests.examples import at_most
from tests.unit.grounding.test_counting import THEORY, counted_one_by_one, random_knowledge


def masses(knowledge: KnowledgeBase) -> dict[int, float]:
    """Atom -> mass, rule by rule and atom by atom."""
    facts = {a for a, t in zip(knowledge.evidence.atoms.tolist(), knowledge.evidence.truth.tolist(), strict=True) if t}
    counts = counted_one_by_one(knowledge)
    found: dict[int, float] = {}
    for j in range(len(THEORY.rules)):
        concluded = [atom for rule, atom in counts if rule == j]
        confidence = (sum(atom in facts for atom in concluded) + 0.1) / (len(concluded) + 5)
        for atom in concluded:
            found[atom] = found.get(atom, 0.0) + confidence * counts[j, atom] ** POWER
    return found


@at_most(10, because="each example grounds 24 rules")
@given(random_knowledge())
def test_logits_are_those_of_masses_added_one_by_one(knowledge: KnowledgeBase) -> None:
    alone, base = RulesAlone.of(knowledge), knowledge.base
    assert alone is not None
    expected = masses(knowledge)
    logits = [
        log((1 - exp(-expected[a])) / exp(-expected[a])) if a in expected else UNREACHED for a in range(base.size)
    ]
    found = alone(np.arange(base.size))
    np.testing.assert_allclose(found, logits, rtol=1e-9, atol=1e-9)
    for predicate, shape in enumerate(base.shapes):
        for position in range(len(shape)):
            side = Side.of(base, predicate, position)
            first = np.unique(side.located(np.arange(*side.bounds))[0])
            rows = np.concatenate([first[::-1], first[:1]])  # in any order, and one of them twice
            codes = rows[:, None] + side.stride * np.arange(side.candidates)
            assert (alone.rows(predicate, position, side.given(rows)) == found[codes]).all()


def test_nothing_is_counted_without_rules_or_where_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    domains = {"d": ["a", "b"]}
    knowledge = KnowledgeBase.build(THEORY, domains=domains)
    alone = RulesAlone.of(knowledge)
    assert alone is not None
    assert (alone(np.arange(5)) == UNREACHED).all(), "no fact, no proof"
    bare = KnowledgeBase.build(type(THEORY)(THEORY.domains, THEORY.predicates, ()), domains=domains)
    assert RulesAlone.of(bare) is None
    monkeypatch.setattr(evaluate, "MOST_RULES", len(THEORY.rules) - 1)
    assert RulesAlone.of(knowledge) is None


def test_an_estimate_above_the_ceiling_leaves_it(monkeypatch: pytest.MonkeyPatch) -> None:
    knowledge = KnowledgeBase.build(THEORY, domains={"d": ["a", "b"]})
    monkeypatch.setattr(evaluate, "MOST_GROUND_RULES", -1)
    assert RulesAlone.of(knowledge) is None


def test_an_estimate_that_was_wrong_leaves_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> RuleCounts:
        raise GroundingError("too many")

    monkeypatch.setattr(RuleCounts, "of", refuse)
    assert RulesAlone.of(KnowledgeBase.build(THEORY, domains={"d": ["a", "b"]})) is None
