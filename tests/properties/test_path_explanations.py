"""Explanations along paths equal asking again on the graph without a fact."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from scipy.special import expit

from r2n.data.knowledge_base import Evidence, KnowledgeBase, counterparts
from r2n.explanation.counterfactuals import ExplainedModel, without_reciprocals
from r2n.explanation.paths import CarryingFacts
from r2n.network import paths as network
from r2n.network.paths import UNREACHED
from r2n.scoring import AtomLogits
from tests.oracles.path_layers import Fact, alone, left_out, row_logits
from tests.properties.test_paths import DEPTH, facts_of, made, reciprocals_of, weights_of, world
from tests.theory_strategies import dice


def explained(logits: AtomLogits, knowledge: KnowledgeBase) -> ExplainedModel:
    return ExplainedModel((logits,), knowledge, lambda _: (), expit, lambda _: ())


def plain_code(knowledge: KnowledgeBase, fact: Fact) -> int:
    base = knowledge.base
    code = base.encode(base.language.predicates[fact[0]], np.array([fact[1:]]))
    return int(without_reciprocals(base, code)[0])


def some_atom(knowledge: KnowledgeBase, dice: Random) -> tuple[int, Fact]:
    """A pair, as often as not a known one."""
    base, known = knowledge.base, [fact for fact in facts_of(knowledge) if dice.random() < 0.5]
    if known:
        fact = dice.choice(sorted(known))
    else:
        pairs = np.flatnonzero([len(base.shapes[i]) == 2 for i in base.decode(np.arange(base.size))[0]])
        (q,), ((h, y),) = (part.tolist() for part in base.decode(np.array([dice.choice(pairs.tolist())])))
        fact = q, h, y
    return int(base.encode(base.language.predicates[fact[0]], np.array([fact[1:]]))[0]), fact


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "QUERIES_AT_ONCE", 3)


@given(dice())
def test_the_effect_of_a_fact_is_that_of_plain_loops_without_it(dice: Random) -> None:
    knowledge, pairs = world(dice), dice.random() < 0.5
    logits, facts, reciprocals = made(knowledge, dice, pairs), facts_of(knowledge), reciprocals_of(knowledge)
    code, (q, h, y) = some_atom(knowledge, dice)
    known = left_out((q, h, y), reciprocals, facts, pairs) if (q, h, y) in facts else set()

    def answered(without: set[Fact]) -> float:
        rest, weights = facts - known - without, weights_of(logits)
        row = row_logits(weights, rest, q, h, DEPTH)
        return float(row.get(y, UNREACHED) + alone(weights, rest, q, y))

    carrying = CarryingFacts.of_atom(explained(logits, knowledge), code)
    rest = sorted(facts - known)
    found = carrying.alone([plain_code(knowledge, fact) for fact in rest])
    expected = [answered(set()), *(answered({(r, z, w), (reciprocals[r], w, z)}) for r, z, w in rest)]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-5)
    for fact, logit in zip(rest, expected[1:], strict=True):
        if plain_code(knowledge, fact) not in carrying.promising:
            assert logit == pytest.approx(expected[0], abs=1e-9), "only facts that can make a difference are listed"


@given(dice())
def test_with_a_width_it_is_that_of_asking_again(dice: Random) -> None:
    knowledge = world(dice)
    logits, evidence = made(knowledge, dice, width=dice.randint(1, 3)), knowledge.evidence
    code, _ = some_atom(knowledge, dice)
    carrying, paths = CarryingFacts.of_atom(explained(logits, knowledge), code), logits.source.paths
    assert paths is not None
    rows = carrying.alone(carrying.promising.tolist())
    np.testing.assert_allclose(rows[:1], logits._looked_up(np.array([code]))[0], atol=1e-6)
    for fact, logit in zip(carrying.promising.tolist(), rows[1:], strict=True):
        gone = [fact, *counterparts(knowledge.base, np.array([fact]))]
        kept = ~np.isin(evidence.atoms, gone)
        fewer = replace(knowledge, evidence=Evidence(evidence.atoms[kept], evidence.truth[kept]))
        without = replace(logits, source=replace(paths, knowledge=fewer), evidence=fewer.evidence)
        assert logit == pytest.approx(float(without._looked_up(np.array([code]))[0, 0]), abs=1e-5)


def walks(facts: set[Fact], at: int, end: int, most: int) -> Iterator[list[Fact]]:
    if at == end:
        yield []
    for fact in facts if most else ():
        if fact[1] == at:
            yield from ([fact, *rest] for rest in walks(facts, fact[2], end, most - 1))


@given(dice())
def test_the_path_of_a_fact_is_the_widest_of_all_walks_through_it(dice: Random) -> None:
    knowledge = world(dice)
    logits, facts, reciprocals = made(knowledge, dice), facts_of(knowledge), reciprocals_of(knowledge)
    code, (q, h, y) = some_atom(knowledge, dice)
    if (q, h, y) in facts:
        facts -= left_out((q, h, y), reciprocals, facts, pairs=False)
    carrying = CarryingFacts.of_atom(explained(logits, knowledge), code)
    effects = {fact: dice.choice((-1, 1)) * dice.randint(1, 9) / 4 for fact in carrying.promising.tolist()}
    listed = carrying.strongest(effects, None)
    shown = [part.effect for part in listed]
    assert shown == sorted(shown, key=lambda effect: (effect < 0, -abs(effect)))
    assert {fact for part in listed for fact in part.path} >= effects.keys(), "each fact is there, alone or on a path"
    every = [[plain_code(knowledge, fact) for fact in walk] for walk in walks(facts, h, y, DEPTH)]
    for part in listed:
        through = [
            (min((effects[c] for j, c in enumerate(walk) if j != i), default=np.inf), -len(walk), walk)
            for walk in every
            for i, c in enumerate(walk)
            if c == part.fact
        ]
        if not through:
            assert part.path == (part.fact,)
            continue
        width, steps, _ = max(through, key=lambda each: each[:2])
        assert list(part.path) in [list(dict.fromkeys(walk)) for a, b, walk in through if (a, b) == (width, steps)]
