"""Tensors -> predictions: products of a sparse matrix and a dense one, each way one pass of `embedding_bag`.

This module imports nothing of r2n: torch keeps autograd functions, and all that their module reaches, alive to the
end of the process, and DuckDB complains of whatever is left of it then.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from scipy.sparse import csr_array
from torch import Tensor
from torch.nn.functional import embedding_bag


class _SparseProduct(torch.autograd.Function):
    """out[r] = sum_k values[r, k] * table[k]; the gradient is the product with the transposed matrix."""

    @staticmethod
    def forward(ctx, table: Tensor, *matrix: Tensor) -> Tensor:
        columns, offsets, values, *transposed = matrix
        ctx.save_for_backward(*transposed)
        return _bag(table, columns, offsets, values)

    @staticmethod
    def backward(ctx, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        return _bag(grad_outputs[0].contiguous(), *ctx.saved_tensors), None, None, None, None, None, None


def _bag(table: Tensor, columns: Tensor, offsets: Tensor, values: Tensor) -> Tensor:
    return embedding_bag(
        columns, table, offsets, mode="sum", per_sample_weights=values.to(table), include_last_offset=True
    )


@dataclass(frozen=True, eq=False)
class SparseRows:
    """A sparse matrix that never changes, laid out by its rows and by its columns: three tensors each.

    These are the columns (or rows) of its entries, where each row (or column) begins among them, and the values.
    """

    rows: int
    by_row: tuple[Tensor, ...]
    by_column: tuple[Tensor, ...]

    @classmethod
    def of(cls, matrix: csr_array) -> "SparseRows":
        """Lay a matrix out."""
        return cls(len(matrix.indptr) - 1, _laid_out(matrix), _laid_out(csr_array(matrix.T)))

    def to(self, device: torch.device) -> "SparseRows":
        """The same on another device."""
        by_row, by_column = (tuple(part.to(device) for part in parts) for parts in (self.by_row, self.by_column))
        return SparseRows(self.rows, by_row, by_column)

    def times(self, table: Float[Tensor, "columns dim"]) -> Float[Tensor, "rows dim"]:
        """The product with a dense matrix."""
        if not len(self.by_row[0]):
            return table.new_zeros(self.rows, table.shape[1]) + 0.0 * table.sum()
        result = _SparseProduct.apply(table.contiguous(), *self.by_row, *self.by_column)
        assert isinstance(result, Tensor)
        return result


def _laid_out(matrix: csr_array) -> tuple[Tensor, Tensor, Tensor]:
    columns, offsets = (torch.from_numpy(part.astype("int32")) for part in (matrix.indices, matrix.indptr))
    return columns, offsets, torch.from_numpy(matrix.data.astype("float32"))
