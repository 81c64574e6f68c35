"""Rules -> numbers of ground rules: paths of directed steps from x to y, counted by products of sparse matrices."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array

MOST_STEPS_DISTINCT = 3
"""Steps of a path whose constants are distinct: beyond it, the walks to take away again are too many kinds."""


def path_counts(steps: Sequence[csr_array], distinct: bool) -> csr_array:
    """For each pair (x, y), how many paths x - z_1 - ... - y there are; `distinct`: over distinct constants only.

    `steps` holds a matrix (constants, constants) a step: the i-th is not zero at (a, b) where its predicate, read in
    its direction, leads from a to b. The counts, int64, have sorted indices and no stored zero. A first step of which
    only some rows are filled gives the counts of these rows: they depend on no other row of it.
    """
    if not steps:
        raise ValueError("a path has at least one step")
    if distinct and len(steps) > MOST_STEPS_DISTINCT:
        raise ValueError(f"paths over distinct constants have at most {MOST_STEPS_DISTINCT} steps, not {len(steps)}")
    counts = [csr_array(step, dtype=np.int64) for step in steps]
    if not distinct:
        found = counts[0]
        for step in counts[1:]:
            found = csr_array(found @ step)
        return _tidy(found.copy())
    return _tidy(_distinct_counts([without_diagonal(step) for step in counts]))


def path_counts_in_parts(steps: Sequence[csr_array], distinct: bool, most: int) -> Iterator[tuple[int, csr_array]]:
    """The same, for so many rows at a time that about `most` entries are made between, in the rows of one at least.

    Each part comes with the number of its first row.
    """
    for start, end in row_parts(reached_from(steps), most):
        yield start, path_counts([_only_rows(csr_array(steps[0]), start, end), *steps[1:]], distinct)[start:end]


def reached_from(steps: Sequence[csr_array]) -> np.ndarray:
    """For each constant, at most how many entries the products of the first 1, 2, ... steps have in its row."""
    size = len(steps[0].indptr) - 1
    total = np.zeros(size)
    for last in range(len(steps)):
        walks = np.diff(steps[last].indptr).astype(np.float64)
        for step in reversed(steps[:last]):
            walks = (step != 0) @ walks
        total += np.minimum(walks, size)
    return total


def row_parts(entries: np.ndarray, most: int) -> list[tuple[int, int]]:
    """Rows, from the first to before the last, in parts of about `most` entries; no part where there is no row."""
    cuts = np.flatnonzero(np.diff(np.cumsum(entries) // max(1, most))) + 1
    bounds = [0, *cuts.tolist(), len(entries)]
    return list(pairwise(bounds))


def _only_rows(matrix: csr_array, start: int, end: int) -> csr_array:
    """The matrix with these rows alone filled."""
    first, last = int(matrix.indptr[start]), int(matrix.indptr[end])
    starts = np.clip(matrix.indptr, first, last) - first
    return csr_array((matrix.data[first:last], matrix.indices[first:last], starts), shape=matrix.shape)


def _distinct_counts(steps: Sequence[csr_array]) -> csr_array:
    """Paths over distinct constants, of steps without diagonals.

    Two steps A1, A2: the product without its diagonal (x != y). Three steps: (A1 A2 without its diagonal) A3 leaves
    x, z_1, z_2 and z_2, y distinct; the walks with z_1 = y, x != z_2 are taken away again: A1 D(A2 A3), less those
    with x = z_2, which are A1 * A2' * A3 elementwise; D(.) is the diagonal. At last x != y.
    """
    if len(steps) == 1:
        return steps[0]
    found = without_diagonal(csr_array(steps[0] @ steps[1]))
    if len(steps) == MOST_STEPS_DISTINCT:
        found = without_diagonal(csr_array(found @ steps[2] - returns_to_first_step(*steps)))
    return found


def returns_to_first_step(first: csr_array, second: csr_array, third: csr_array) -> csr_array:
    """Walks x - y - z - y of three steps without diagonals, z distinct from x and y: (constants, constants)."""
    back = second.multiply(third.T).sum(axis=1)  # D(A2 A3): from y to some z and back to y
    walks = csr_array(first, copy=True)
    walks.data = walks.data * np.asarray(back)[walks.indices]
    return csr_array(walks - first.multiply(second.T).multiply(third))


def without_diagonal(matrix: csr_array) -> csr_array:
    """The matrix without the entries (x, x)."""
    rows = row_of_entries(matrix)
    kept = matrix.indices != rows
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows[kept], minlength=len(matrix.indptr) - 1))])
    return csr_array((matrix.data[kept], matrix.indices[kept], starts), shape=matrix.shape)


def row_of_entries(matrix: csr_array) -> np.ndarray:
    """The row of every stored entry, in the order of `matrix.indices`."""
    return np.repeat(np.arange(len(matrix.indptr) - 1, dtype=matrix.indices.dtype), np.diff(matrix.indptr))


def _tidy(matrix: csr_array) -> csr_array:
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix
