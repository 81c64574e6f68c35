"""What is common to all groundings."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from r2n.grounding.ground_rules import Grounding, codes_without, distinct_codes


@given(st.lists(st.lists(st.integers(0, 50) | st.integers(0, 2**62), max_size=8), max_size=3))
def test_distinct_codes_are_sorted_and_distinct(parts: list[list[int]]) -> None:
    found = distinct_codes([np.array(part, np.int64) for part in parts])
    assert found.tolist() == sorted({code for part in parts for code in part})


def test_no_rule_is_a_grounding_too() -> None:
    assert len(Grounding(())) == 0
    assert Grounding(()).atoms.tolist() == []


@given(st.lists(st.integers(0, 9), unique=True), st.lists(st.integers(0, 9), unique=True))
def test_codes_without_others_keep_their_order(codes: list[int], others: list[int]) -> None:
    found = codes_without(np.array(codes, np.int64), np.array(others, np.int64))
    assert found.tolist() == [code for code in codes if code not in others]
