"""Products with a sparse matrix: the numbers and the gradients of the dense product."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from r2n.network.constant_embedding import SparseRows
from tests.examples import at_most


@at_most(40, "a matrix has few shapes that matter")
@given(st.integers(0, 5), st.integers(1, 6), st.integers(1, 4), st.integers(0, 10_000))
def test_the_product_and_its_gradient_are_those_of_dense_matrices(rows: int, columns: int, dim: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(rows, columns)) * (rng.random((rows, columns)) < 0.4)
    table = torch.from_numpy(rng.normal(size=(columns, dim)).astype(np.float32)).requires_grad_()
    matrix = torch.from_numpy(dense.astype(np.float32))
    found, expected = SparseRows.of(csr_array(dense)).times(table), matrix @ table
    assert found.shape == (rows, dim)
    torch.testing.assert_close(found, expected)
    slope = torch.from_numpy(rng.normal(size=(rows, dim)).astype(np.float32))
    (gradient,) = torch.autograd.grad(found, table, slope)
    torch.testing.assert_close(gradient, matrix.t() @ slope)


def test_a_matrix_without_columns() -> None:
    found = SparseRows.of(csr_array(np.zeros((3, 0)))).times(torch.ones(1, 2, requires_grad=True))
    assert found.tolist() == [[0, 0]] * 3


def test_other_precisions() -> None:
    rows = SparseRows.of(csr_array(np.array([[0, 2.0], [1.0, 0]])))
    table = torch.tensor([[1.0], [10.0]], dtype=torch.float64, requires_grad=True)
    assert rows.times(table).tolist() == [[20.0], [1.0]]
    assert torch.autograd.gradcheck(rows.times, (table,))
    with pytest.raises(RuntimeError):
        rows.times(torch.ones(1, 2))  # too few rows
