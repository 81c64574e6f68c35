"""Which atoms are false unless stated. (Closed parts are tested with corruptions, which leave them alone.)"""

import numpy as np

from r2n.knowledge.closed_world import closed_atoms
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


def test_no_atoms() -> None:
    assert closed_atoms(knowledge("", "", theory=THEORY).base, np.zeros(0, np.int64)).shape == (0,)
