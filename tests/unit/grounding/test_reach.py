"""What atoms can feel of a grounding."""

import r2n
from r2n.grounding.strategies import reached_atoms, reached_by
from tests.unit.grounding.small_knowledge import codes, knowledge, named

KB = knowledge("rule r: smokes(x) & knows(x, y) -> smokes(y)\n", "knows(ann,bob) knows(bob,cy)")
GROUNDING = r2n.FullGrounder().ground(r2n.Store(KB))


def test_steps_lead_from_ground_rule_to_ground_rule() -> None:
    ann = codes(KB, "smokes(ann)")
    assert named(KB, reached_by(GROUNDING, ann, 0)) == [[]]
    assert named(KB, reached_by(GROUNDING, ann, 1)) == [["smokes(ann) knows(ann, bob) smokes(bob)"]]
    assert len(reached_by(GROUNDING, ann, 2)) == 2
    assert reached_by(GROUNDING, ann).ground_rules[0] is GROUNDING.ground_rules[0], "nothing to leave out"


def test_what_no_atom_feels_is_left_out() -> None:
    kb = knowledge("rule r: smokes(x) & knows(x, y) -> smokes(y)\n", "knows(ann,ann) knows(bob,cy)")
    grounding = r2n.FullGrounder().ground(r2n.Store(kb))
    assert named(kb, reached_by(grounding, codes(kb, "smokes(cy)"))) == [["smokes(bob) knows(bob, cy) smokes(cy)"]]
    assert named(kb, reached_by(grounding, codes(kb))) == [[]]


def test_reached_atoms_stand_in_a_ground_rule() -> None:
    asked = codes(KB, "smokes(ann)", "takes(ann, tea)")
    assert reached_atoms(GROUNDING, asked).tolist() == [True, False]
