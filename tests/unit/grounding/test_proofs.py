"""Rounds of proof."""

import r2n
from r2n.grounding.proofs import keep_proved
from tests.unit.grounding.small_knowledge import knowledge

CHAIN = "rule r: smokes(x) & knows(x, y) -> smokes(y)\n"


def test_each_round_goes_one_step_further() -> None:
    kb = knowledge(CHAIN, "smokes(ann) knows(ann,bob) knows(bob,cy)")
    atoms = [part.atoms for part in r2n.FullGrounder().ground(kb).ground_rules]
    assert [len(keep_proved(kb, kb.theory.rules, atoms, rounds)[0]) for rounds in (0, 1, 2)] == [1, 2, 2]


def test_a_circle_proves_nothing() -> None:
    kb = knowledge(CHAIN, "knows(ann,bob) knows(bob,ann)")
    atoms = [part.atoms for part in r2n.FullGrounder().ground(kb).ground_rules]
    assert len(keep_proved(kb, kb.theory.rules, atoms, 5)[0]) == 0
