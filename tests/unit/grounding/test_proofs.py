"""Rounds of proof."""

import numpy as np

import r2n
from r2n.grounding.backward import known_literals, proved
from tests.unit.grounding.small_knowledge import knowledge, named

CHAIN = "rule r: smokes(x) & knows(x, y) -> smokes(y)\n"


def count(kb: r2n.KnowledgeBase, rounds: int) -> int:
    """How many of all ground rules are proved."""
    store = r2n.Store(kb)
    parts = r2n.FullGrounder().ground(store).ground_rules
    known = [known_literals(store, part.rule, part.atoms) for part in parts]
    kept = proved([part.rule for part in parts], [part.atoms for part in parts], known, rounds)
    return sum(int(np.count_nonzero(part)) for part in kept)


def test_each_round_goes_one_step_further() -> None:
    kb = knowledge(CHAIN, "smokes(ann) knows(ann,bob) knows(bob,cy)")
    assert [count(kb, rounds) for rounds in (0, 1, 2)] == [1, 2, 2]


def test_a_circle_proves_nothing() -> None:
    assert count(knowledge(CHAIN, "knows(ann,bob) knows(bob,ann)"), 5) == 0


def test_nothing_is_legal() -> None:
    assert proved([], [], [], 3) == []


def test_literals_are_known_by_true_facts_false_facts_and_a_closed_world() -> None:
    kb = knowledge("rule r: smokes(x) & !smokes(y) & !knows(x, y) -> smokes(y)\n", "smokes(ann)", "smokes(bob)")
    (part,) = r2n.FullGrounder().ground(r2n.Store(kb)).ground_rules
    known = known_literals(r2n.Store(kb), part.rule, part.atoms)
    assert known.all(axis=1).sum() == 1
    assert named(kb, r2n.Grounding((part,)))[0][int(known.all(axis=1).argmax())].startswith("smokes(ann) smokes(bob)")
