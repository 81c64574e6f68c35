"""Sets of codes as arrays in order."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from r2n.data.herbrand import are_among, distinct, union

codes = st.lists(st.integers(0, 20) | st.integers(0, 2**63 - 1), max_size=20)


def array(given: list[int]) -> np.ndarray:
    return np.array(given, np.int64)


@given(codes, codes)
def test_they_are_sets(one: list[int], other: list[int]) -> None:
    assert distinct(array(one)).tolist() == sorted(set(one))
    assert union(array(one), array(other)).tolist() == sorted({*one, *other})
    assert are_among(array(one), array(sorted(other))).tolist() == [code in other for code in one]


def test_a_union_of_nothing_is_empty() -> None:
    assert union().dtype == np.int64
    assert not len(union())
