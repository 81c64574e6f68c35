"""Frozen groups of tensors that move to a device together, and products with constant sparse matrices."""

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

CPU = torch.device("cpu")
Group = TypeVar("Group", bound="Tensors")


class Tensors:
    """A frozen dataclass of tensors, of other groups, and of tuples and dicts of these."""

    def to(self: Group, device: torch.device) -> Group:
        """The same on another device."""
        assert is_dataclass(self)
        return replace(self, **{part.name: _moved(getattr(self, part.name), device) for part in fields(self)})


def _moved(value: Any, device: torch.device) -> Any:
    if isinstance(value, Tensor | Tensors):
        return value.to(device)
    if isinstance(value, tuple):
        return tuple(_moved(part, device) for part in value)
    if isinstance(value, dict):
        return {key: _moved(part, device) for key, part in value.items()}
    return value


Bags = tuple[Tensor, Tensor | None, Tensor | None]
"""A constant sparse matrix by rows: column indices, where each row begins (None: indices are 2-d), values (None: 1)."""


class _SparseProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx, table: Tensor, *bags: Any) -> Tensor:
        ctx.save_for_backward(*bags[3:])
        return _bag_sums(table, *bags[:3])

    @staticmethod
    def backward(ctx, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        return _bag_sums(grad_outputs[0], *ctx.saved_tensors), *(None,) * 6


def _bag_sums(table: Tensor, indices: Tensor, offsets: Tensor | None, values: Tensor | None) -> Tensor:
    weights = None if values is None else values.to(table)
    return embedding_bag(indices, table.contiguous(), offsets, mode="sum", per_sample_weights=weights)


def sparse_product(table: Tensor, by_row: Bags, by_column: Bags) -> Tensor:
    """The product of a sparse matrix with a table; the gradient is the product with the transposed matrix."""
    return _SparseProduct.apply(table, *by_row, *by_column)
