"""What is common to all groundings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2n.grounding.ground_rules import distinct_codes, no_progress, sorted_substitutions


@given(st.lists(st.lists(st.integers(0, 50) | st.integers(0, 2**62), max_size=8), max_size=3))
def test_distinct_codes_are_sorted_and_distinct(parts: list[list[int]]) -> None:
    found = distinct_codes([np.array(part, np.int64) for part in parts])
    assert found.tolist() == sorted({code for part in parts for code in part})


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


def test_nobody_is_told() -> None:
    assert no_progress(1, 2) is None
