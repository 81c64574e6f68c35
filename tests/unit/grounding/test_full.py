"""Full grounding: arithmetic where it can, a query where it must."""

import numpy as np
import pytest

import r2n
from r2n.errors import GroundingError
from tests.unit.grounding.small_knowledge import knowledge, named


def test_a_rule_without_conditions_is_a_box() -> None:
    kb = knowledge("rule r: smokes(x) -> takes(x, y)\n")
    grounding = r2n.FullGrounder().ground(r2n.Store(kb))
    assert named(kb, grounding) == [[f"smokes({p}) takes({p}, tea)" for p in ("ann", "bob", "cy")]]
    assert grounding.ground_rules[0].shape == (3, 1)


def test_closed_body_atoms_filter() -> None:
    kb = knowledge("rule r: smokes(x) & knows(x, y) -> smokes(y)\n", "knows(ann,bob) knows(cy,cy)")
    grounding = r2n.FullGrounder().ground(r2n.Store(kb))
    assert named(kb, grounding) == [["smokes(ann) knows(ann, bob) smokes(bob)", "smokes(cy) knows(cy, cy) smokes(cy)"]]
    assert grounding.ground_rules[0].shape is None
    assert grounding.ground_rules[0].estimate == 2


def test_denied_closed_body_atoms_filter_the_other_way() -> None:
    kb = knowledge("rule r: !knows(x, y) & smokes(x) -> smokes(y), x != y\n", "knows(ann,bob) knows(bob,ann)")
    found = named(kb, r2n.FullGrounder().ground(r2n.Store(kb)))[0]
    assert len(found) == 4
    assert not any("ann, bob" in text or "bob, ann" in text for text in found)


def test_a_closed_part_filters_only_its_atoms() -> None:
    theory = """\
domain town = {a, b}
domain land = {l, m}
domain place = town | land
predicate within(place, place) closed(town, land)
"""
    rules = "rule r: within(x: town, y: land) -> within(y, x)\nrule s: within(x: land, y: town) -> within(y, x)\n"
    kb = knowledge(rules, "within(a,m)", theory=theory)
    grounding = r2n.FullGrounder().ground(r2n.Store(kb))
    assert named(kb, grounding)[0] == ["within(a, m) within(m, a)"]
    assert len(grounding.ground_rules[1]) == 4


def test_variables_come_in_the_rules_own_order() -> None:
    kb = knowledge("rule r: smokes(z) & knows(x, y) -> smokes(y)\n", "knows(bob,ann) knows(ann,bob)")
    rows = r2n.FullGrounder().ground(r2n.Store(kb)).ground_rules[0].atoms
    assert (np.diff(rows[:, 0]) >= 0).all(), "z is the first variable"
    assert len(rows) == 6


def test_ground_rules_and_constants() -> None:
    kb = knowledge('rule r: knows("ann", "bob") & smokes("ann") -> smokes("bob")\n', "knows(ann,bob)")
    assert named(kb, r2n.FullGrounder().ground(r2n.Store(kb))) == [["knows(ann, bob) smokes(ann) smokes(bob)"]]
    kb = knowledge('rule r: knows("ann", "bob") & smokes("ann") -> smokes("bob")\n', "knows(bob,ann)")
    assert named(kb, r2n.FullGrounder().ground(r2n.Store(kb))) == [[]]
    kb = knowledge('rule r: !knows("ann", "bob") & smokes("ann") -> smokes("bob")\n')
    assert len(r2n.FullGrounder().ground(r2n.Store(kb))) == 1


def test_an_empty_theory_has_an_empty_grounding() -> None:
    grounding = r2n.FullGrounder().ground(r2n.Store(knowledge("")))
    assert len(grounding) == 0
    assert grounding.atoms.tolist() == []


def test_the_budget_is_exact_and_names_the_ways_out() -> None:
    kb = knowledge("rule r: smokes(x) & smokes(y) -> smokes(z)\n")
    assert len(r2n.FullGrounder(27).ground(r2n.Store(kb))) == 27
    with pytest.raises(GroundingError, match="rule 'r' has 27 groundings, more than max_groundings = 26") as caught:
        r2n.FullGrounder(26).ground(r2n.Store(kb))
    for way in ("narrow the domains", "close a predicate", "another strategy"):
        assert way in str(caught.value)
