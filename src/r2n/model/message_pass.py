"""Tensors -> predictions: eqs. 2-5 for all ground rules of a rule in one pass, part by part.

Between the two ReLUs of Linear-ReLU-Linear MLP^1_j and MLP^2_{j,i} stand only linear maps, so they are one map; nothing
is kept of the ground rules for the backward pass, which computes them again: memory traffic costs more than that.
"""

import torch
from jaxtyping import Float
from torch import Tensor, relu

from r2n.graph.slots import Ways


class _MessagePass(torch.autograd.Function):
    @staticmethod
    def forward(ctx, ways: Ways, slots: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.ways = ways
        ctx.save_for_backward(slots, weight, bias)
        sums = slots.new_zeros(len(slots), bias.shape[1])
        for part in ways.parts():
            messages = torch.addmm(bias.flatten(), relu(part.sum_at_rules(slots)), weight).relu_()
            part.add_at_atoms(messages.unflatten(1, bias.shape), sums)
        return sums

    @staticmethod
    def backward(ctx, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        slots, weight, bias = ctx.saved_tensors
        grad_sums = grad_outputs[0].contiguous()
        to_slots, to_weight, to_bias = torch.zeros_like(slots), torch.zeros_like(weight), torch.zeros_like(bias)
        back = weight.t().contiguous()
        for part in ctx.ways.parts():
            hidden = relu(part.sum_at_rules(slots))
            messages = torch.addmm(bias.flatten(), hidden, weight)
            to_messages = part.at_rules(grad_sums)
            if to_messages.shape[1] != len(bias):  # one message for all positions
                to_messages = to_messages.sum(1)
            to_messages = _where_positive(messages, to_messages.flatten(1))
            to_weight.addmm_(hidden.t(), to_messages)
            to_bias += to_messages.sum(0).view_as(bias)
            to_hidden = _where_positive(hidden, to_messages @ back)
            part.add_at_atoms(to_hidden.unsqueeze(1), to_slots)
        return None, to_slots, to_weight, to_bias


def _where_positive(values: Tensor, grad: Tensor) -> Tensor:
    """The gradient of a ReLU, in the place of the one that arrives."""
    return torch.ops.aten.threshold_backward.grad_input(grad, values, 0, grad_input=grad)


def message_pass(
    ways: Ways,
    slots: Float[Tensor, "slots hidden"],
    weight: Float[Tensor, "hidden outputs"],
    bias: Float[Tensor, "copies message"],
) -> Float[Tensor, "slots message"]:
    """For each slot, the sum over its ground rules of relu(relu(sum of their slots) @ weight + bias).

    There is one message for each position (copies = positions, outputs = copies * message), or one for all.
    """
    result = _MessagePass.apply(ways, slots, weight, bias)
    assert isinstance(result, Tensor)
    return result
