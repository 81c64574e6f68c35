"""Which atoms are false unless stated."""

import numpy as np

from r2n.data.herbrand import closed_atoms
from tests.unit.grounding.small_knowledge import knowledge

THEORY = """
domain town = {a, b}
domain valley = {v}
domain place = town | valley
predicate near(town, town) closed
predicate liesIn(place, place)
"""


def test_the_atoms_of_closed_predicates_are_closed_and_no_others() -> None:
    base = knowledge("", "", theory=THEORY).base
    codes = np.arange(base.size)
    expected = [name.startswith("near") for name in base.names(codes)]
    assert closed_atoms(base, codes).tolist() == expected
    assert 0 < sum(expected) < len(expected)


def test_closed_parts_are_closed_each_beside_the_others_and_beside_closed_predicates() -> None:
    parts = "liesIn(place, place) closed(town, valley) closed(valley, town)"
    base = knowledge("", "", theory=THEORY.replace("liesIn(place, place)", parts)).base
    codes = np.arange(base.size)
    closed = {name for name, is_closed in zip(base.names(codes), closed_atoms(base, codes), strict=True) if is_closed}
    between = {f"liesIn({x}, {y})" for town in "ab" for x, y in ((town, "v"), ("v", town))}
    assert closed == between | {f"near({x}, {y})" for x in "ab" for y in "ab"}


def test_no_atoms() -> None:
    assert closed_atoms(knowledge("", "", theory=THEORY).base, np.zeros(0, np.int64)).shape == (0,)
