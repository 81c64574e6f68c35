"""Ground rules -> tensors: sums over an incidence, forwards and backwards each one pass of `embedding_bag`.

This module imports nothing of r2n: torch keeps autograd functions, and all that their module reaches, alive to the
end of the process, and DuckDB complains of whatever is left of it then.
"""

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn.functional import embedding_bag


class _GatherSum(torch.autograd.Function):
    """out[g] = sum_i table[slots[g, i]]; the gradient walks the same incidence from the other side."""

    @staticmethod
    def forward(ctx, table: Tensor, slots: Tensor, rules_by_slot: Tensor, offsets: Tensor) -> Tensor:
        ctx.save_for_backward(rules_by_slot, offsets)
        return embedding_bag(slots, table, mode="sum")

    @staticmethod
    def backward(ctx, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        rules_by_slot, offsets = ctx.saved_tensors
        return embedding_bag(rules_by_slot, grad_outputs[0].contiguous(), offsets, mode="sum"), None, None, None


class _SegmentSum(torch.autograd.Function):
    """out[s] = sum of rows[k] over k in order[offsets[s] : offsets[s + 1]]; `segment[k]` is where row k goes."""

    @staticmethod
    def forward(ctx, rows: Tensor, order: Tensor, offsets: Tensor, segment: Tensor) -> Tensor:
        """The sums."""
        ctx.save_for_backward(segment)
        return embedding_bag(order, rows.contiguous(), offsets, mode="sum")

    @staticmethod
    def backward(ctx, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        """Each row takes the gradient of its segment."""
        (segment,) = ctx.saved_tensors
        return grad_outputs[0].index_select(0, segment), None, None, None


def by_segment(segment: Int64[Tensor, " n"], count: int) -> tuple[Int64[Tensor, " n"], Int64[Tensor, " segments"]]:
    """The order that sorts n rows by their segment, and where each of `count` segments begins in it."""
    order = torch.argsort(segment, stable=True)
    sizes = torch.bincount(segment, minlength=count)
    return order, torch.cumsum(sizes, 0) - sizes


def gather_sum(
    table: Float[Tensor, "slots dim"],
    slots: Int64[Tensor, "ground_rules positions"],
    rules_by_slot: Int64[Tensor, " n"],
    offsets: Int64[Tensor, " slots"],
) -> Float[Tensor, "ground_rules dim"]:
    """For each ground rule, the sum over positions of table[slots[g, i]]; the rest is the incidence by slot."""
    result = _GatherSum.apply(table, slots, rules_by_slot, offsets)
    assert isinstance(result, Tensor)
    return result


def segment_sum(
    rows: Float[Tensor, "n dim"],
    order: Int64[Tensor, " n"],
    offsets: Int64[Tensor, " segments"],
    segment: Int64[Tensor, " n"],
) -> Float[Tensor, "segments dim"]:
    """For each segment, the sum of its rows; `order` sorts rows by segment, `segment[k]` is where row k goes."""
    result = _SegmentSum.apply(rows, order, offsets, segment)
    assert isinstance(result, Tensor)
    return result
