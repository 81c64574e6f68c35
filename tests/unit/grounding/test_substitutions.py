"""Substitutions: their order, their places, their codes and their budget."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2n.errors import GroundingError
from r2n.grounding.substitutions import check_budget, encode_substitutions, places_of, sorted_substitutions
from tests.unit.grounding.small_knowledge import knowledge


@pytest.mark.parametrize("constants", [4, 2**40])
@pytest.mark.parametrize("distinct", [False, True])
@given(rows=st.lists(st.tuples(*[st.integers(0, 3)] * 2), max_size=12))
def test_substitutions_are_sorted(rows: list[tuple[int, int]], distinct: bool, constants: int) -> None:
    found = sorted_substitutions(np.array(rows, np.int64).reshape(-1, 2), constants, distinct=distinct)
    assert [tuple(row) for row in found.tolist()] == sorted(set(rows) if distinct else rows)


def test_substitutions_of_no_variable_keep_their_number() -> None:
    nothing = np.zeros((3, 0), np.int64)
    assert sorted_substitutions(nothing, 5).shape == (3, 0)
    assert sorted_substitutions(nothing, 5, distinct=True).shape == (1, 0)


@pytest.mark.parametrize("constants", [4, 2**40])
@given(rows=st.lists(st.tuples(*[st.integers(0, 3)] * 2), min_size=1, max_size=12), data=st.data())
def test_places_are_those_in_a_sorted_list(rows: list[tuple[int, int]], constants: int, data: st.DataObject) -> None:
    among = sorted(set(rows))
    some = data.draw(st.lists(st.sampled_from(among), max_size=8))
    found = places_of(np.array(some, np.int64).reshape(-1, 2), np.array(among, np.int64), constants)
    assert found.tolist() == [among.index(row) for row in some]


def test_codes_are_those_of_the_atoms() -> None:
    kb = knowledge('rule r: knows("ann", x) -> smokes(x)\n')
    codes = encode_substitutions(kb.base, kb.theory.rules[0], np.array([[1], [2]]))
    assert [kb.base.names(row) for row in codes] == [
        ["knows(ann, bob)", "smokes(bob)"],
        ["knows(ann, cy)", "smokes(cy)"],
    ]


def test_the_budget_is_what_may_be_reached() -> None:
    (rule,) = knowledge("rule r: smokes(x) -> smokes(y)\n").theory.rules
    check_budget(rule, 9, 9, exact=True)
    with pytest.raises(GroundingError, match="rule 'r' has about 1,000 groundings, more than max_groundings = 999"):
        check_budget(rule, 1000, 999, exact=False)
