"""The ground rules that moved an atom, and those below them."""

import numpy as np

from r2n.explanation.reasons import MOST_MEMBERS, Moved, Tree, moved, ranked
from r2n.explanation.records import Reason
from r2n.explanation.scene import Scene
from r2n.knowledge.problem import Problem
from tests.unit.explanation.small_subject import code, subject


def every(reasons: tuple[Reason, ...]) -> list[Reason]:
    """All reasons of a tree."""
    return [found for reason in reasons for found in (reason, *(r for m in reason.because for r in every(m.reasons)))]


def test_reasons_are_ranked_by_what_carries_the_answer(toy: Problem) -> None:
    told = subject(toy)
    scene = Scene.around(told.members, np.array([code(told, "liesIn(n5, north)")]))
    (found,) = moved(scene, 1)
    assert len(found) == len(scene.ground_rules_of(0)) > 1
    effects = [part.effect for part in ranked(found, 1)]
    assert effects == sorted(effects, reverse=True)
    assert [part.effect for part in ranked(found, -1)] == sorted(effects)


def test_an_atom_is_told_once_and_no_reason_is_its_own(toy: Problem) -> None:
    told = subject(toy, "model.layers=2")
    asked = code(told, "liesIn(n5, south)")
    tree = Tree(told, 3)
    own = tree.grow(asked, Scene.around(told.members, np.array([asked])), 1, depth=3)
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
        tree.grow(asked, Scene.around(told.members, np.array([asked])), 1, depth=depth)
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
