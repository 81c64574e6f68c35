"""The ground rules that moved an atom, and those below them."""

import numpy as np

from r2n.data.problem import Problem
from r2n.explanation.neighbourhood import Scene
from r2n.explanation.reasons import MOST_MEMBERS, Moved, Tree, ranked
from r2n.explanation.records import Reason
from tests.unit.explanation.small_subject import code, subject


def every(reasons: tuple[Reason, ...]) -> list[Reason]:
    """All reasons of a tree."""
    return [found for reason in reasons for found in (reason, *(r for m in reason.because for r in every(m.reasons)))]


def test_what_speaks_for_an_atom_comes_first_and_the_limit_keeps_the_strongest(toy: Problem) -> None:
    rule = toy.knowledge.theory.rules[0]
    effects = (0.01, -0.3, 0.12, 0.0, -0.02, 0.05, 0.04)
    found = [Moved((i,), rule, np.array([i]), np.array([i]), effect) for i, effect in enumerate(effects)]
    shown = {top: [part.effect for part in ranked(found, top)] for top in (None, 1, 2, 3, 4, 0)}
    assert shown[None] == [0.12, 0.05, 0.04, 0.01, -0.3, -0.02, 0.0]
    assert shown[1] == [0.12]
    assert shown[2] == [0.12, -0.3]
    assert shown[3] == [0.12, 0.05, -0.3]
    assert shown[4] == [0.12, 0.05, 0.04, -0.3]
    assert shown[0] == []


def test_an_atom_is_told_once_and_no_reason_is_its_own(toy: Problem) -> None:
    told = subject(toy, "model.layers=2")
    asked = code(told, "liesIn(n5, south)")
    tree = Tree(told, 3)
    own = tree.grow(asked, Scene.around(told.members, np.array([asked])), depth=3)
    reasons = tree.reasons(asked)
    assert len(own) == 4
    assert len(reasons) == 3
    members = [m for reason in every(reasons) for m in reason.because]
    with_reasons = [m.atom for m in members if m.reasons]
    assert with_reasons
    assert len(with_reasons) == len(set(with_reasons))
    assert any(m.is_told_above for m in members)
    assert not any(m.is_told_above and m.reasons for m in members)
    for reason in every(reasons):
        for member in reason.because:
            assert reason.ground_rule not in [below.ground_rule for below in member.reasons]
    known = [m for m in members if m.belief.known or m.belief.closed]
    assert known
    assert not any(m.reasons for m in known), "what is known needs no reason"


def test_depth_says_how_many_levels(toy: Problem) -> None:
    told = subject(toy, "model.layers=2")
    asked = code(told, "liesIn(n5, south)")
    sizes = []
    for depth in range(4):
        tree = Tree(told, 2)
        tree.grow(asked, Scene.around(told.members, np.array([asked])), depth=depth)
        sizes.append(len(every(tree.reasons(asked))))
    assert sizes[0] == 0
    assert sizes[1] == 2
    assert sizes[1] < sizes[2] <= sizes[3]


def test_of_a_wide_ground_rule_the_largest_effects_are_told(toy: Problem) -> None:
    told = subject(toy)
    rule = told.knowledge.theory.rules[0]
    wide = np.arange(2 * MOST_MEMBERS)
    tree = Tree(told, 1, effects={(0, int(other)): float(other) for other in wide})
    part = Moved((0,), rule, wide, wide, 1.0)
    assert tree._members(0, part) == wide[-MOST_MEMBERS:].tolist()
    assert part.identity == ("neighbours", tuple(wide.tolist()))
