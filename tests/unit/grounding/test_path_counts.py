"""Counts of paths: equal to plain counting, over distinct constants and over any."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, vstack

from r2n.grounding.counting import (
    path_counts,
    path_counts_in_parts,
    reached_from,
    row_of_entries,
    row_parts,
    without_diagonal,
)
from tests.examples import at_most
from tests.oracles import paths as oracle


@st.composite
def step_matrices(draw: st.DrawFn) -> list[np.ndarray]:
    """One to three steps over up to five constants, loops and multiplicities among them, some steps the same."""
    constants, length = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    seed, density = draw(st.integers(0, 2**20)), draw(st.sampled_from([0.0, 0.3, 0.6, 1.0]))
    rng = np.random.default_rng(seed)
    pool = [
        (rng.random((constants, constants)) < density) * rng.integers(1, 3, (constants, constants)) for _ in range(2)
    ]
    pool.append(pool[0].T.copy())  # a predicate read in both directions
    return [pool[rng.integers(3)] for _ in range(length)]


@at_most(60, because="the oracle tries constants to the power of four")
@given(step_matrices(), st.booleans())
def test_counts_are_those_of_plain_loops(steps: list[np.ndarray], distinct: bool) -> None:
    found = path_counts([csr_array(step) for step in steps], distinct)
    assert found.toarray().tolist() == oracle.path_counts(steps, distinct).tolist()
    assert found.dtype == np.int64
    assert found.has_sorted_indices
    assert (found.data > 0).all(), "no stored zeros"


def test_three_steps_over_distinct_constants_in_every_direction() -> None:
    rng = np.random.default_rng(0)
    one, other = ((rng.random((5, 5)) < 0.5).astype(int) for _ in range(2))
    for steps in product((one, one.T, other), repeat=3):
        found = path_counts([csr_array(step) for step in steps], distinct=True)
        assert found.toarray().tolist() == oracle.path_counts(steps, distinct=True).tolist()


@at_most(60, because="the oracle tries constants to the power of four")
@given(step_matrices(), st.booleans(), st.integers(1, 12))
def test_counts_in_parts_are_those_of_plain_loops(steps: list[np.ndarray], distinct: bool, most: int) -> None:
    parts = list(path_counts_in_parts([csr_array(step) for step in steps], distinct, most))
    assert [first for first, _ in parts] == np.cumsum([0, *(len(part.indptr) - 1 for _, part in parts)]).tolist()[:-1]
    found = csr_array(vstack([part for _, part in parts], format="csr"))
    assert found.toarray().tolist() == oracle.path_counts(steps, distinct).tolist()
    assert found.has_sorted_indices
    assert (found.data > 0).all(), "no stored zeros"


@at_most(30, because="the oracle multiplies matrices")
@given(step_matrices())
def test_no_product_has_more_entries_in_a_row_than_are_expected(steps: list[np.ndarray]) -> None:
    made, product = np.zeros(len(steps[0]), int), np.eye(len(steps[0]), dtype=int)
    for step in steps:
        product = product @ step
        made += (product > 0).sum(axis=1)
    assert (reached_from([csr_array(step) for step in steps]) >= made).all()


def test_parts_hold_about_as_many_entries_as_they_may() -> None:
    assert row_parts(np.array([1, 1, 1, 1]), 2) == [(0, 1), (1, 3), (3, 4)]
    assert row_parts(np.array([0, 9, 0, 9]), 4) == [(0, 1), (1, 3), (3, 4)]
    assert row_parts(np.array([3, 3]), 100) == [(0, 2)]


def test_the_matrices_given_are_left_alone() -> None:
    step = csr_array(np.array([[1, 1], [1, 0]]))
    for length in (1, 2, 3):
        for distinct in (True, False):
            path_counts([step] * length, distinct)
    assert step.toarray().tolist() == [[1, 1], [1, 0]]


def test_truths_count_as_one_and_walks_add_up() -> None:
    step = csr_array(np.ones((3, 3), bool))
    assert path_counts([step, step], distinct=False).toarray().tolist() == [[3] * 3] * 3
    assert path_counts([step, step], distinct=True).toarray().tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    assert path_counts([step] * 3, distinct=True).nnz == 0, "four distinct of three constants"


def test_rows_of_the_first_step_can_be_left_out() -> None:
    rng = np.random.default_rng(0)
    steps = [csr_array(rng.random((6, 6)) < 0.5) for _ in range(3)]
    some = csr_array(steps[0].toarray() * (np.arange(6) < 2)[:, None])
    whole, part = (path_counts([first, *steps[1:]], True).toarray() for first in (steps[0], some))
    assert (part[:2] == whole[:2]).all()
    assert not part[2:].any()


def test_the_diagonal_goes() -> None:
    matrix = csr_array(np.array([[1, 2], [0, 3]]))
    assert without_diagonal(matrix).toarray().tolist() == [[0, 2], [0, 0]]
    assert row_of_entries(matrix).tolist() == [0, 0, 1]


def test_a_path_has_steps_and_not_too_many_of_them() -> None:
    step = csr_array(np.eye(2))
    with pytest.raises(ValueError, match="at least one step"):
        path_counts([], distinct=True)
    with pytest.raises(ValueError, match="at most 3 steps, not 4"):
        path_counts([step] * 4, distinct=True)
    assert path_counts([step] * 4, distinct=False).nnz == 2
