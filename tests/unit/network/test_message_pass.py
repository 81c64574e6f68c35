"""One pass over a rule's ground rules, against the same steps one after the other."""

import pytest
import torch
from torch import Tensor, relu

from r2n.network import scatter as module
from r2n.network.reasoning import message_pass
from r2n.network.scatter import GatherScatter, Incidence
from tests.model_strategies import vectors
from tests.unit.network.test_incidence import RULE, graph_of

BOTH = pytest.mark.parametrize("dense", [True, False])
COPIES = pytest.mark.parametrize("copies", [1, 2])


def step_by_step(ways: GatherScatter, slots: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The sums by autograd's own steps."""
    messages = relu((relu(ways.sum_at_rules(slots)) @ weight).unflatten(1, bias.shape) + bias)
    return ways.sum_at_atoms(messages.expand(-1, 2, -1).contiguous())


def inputs(copies: int) -> list[Tensor]:
    """Nine slots of width 3, a map to messages of width 2, its bias."""
    return [
        part.requires_grad_()
        for part in (vectors(9, 3, seed=1), vectors(3, 2 * copies, seed=2), vectors(copies, 2, seed=3))
    ]


@BOTH
@COPIES
@pytest.mark.parametrize("part", [50_000, 4])
def test_values_and_gradients(dense: bool, copies: int, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ways = Incidence.of(graph_of(RULE), dense=dense).rules[0].index
    given = inputs(copies)
    expected = step_by_step(ways, *given)
    weights = vectors(9, 2, seed=4)
    gradients = torch.autograd.grad((expected * weights).sum(), given)
    monkeypatch.setattr(module, "PART", part)
    ways = Incidence.of(graph_of(RULE), dense=dense).rules[0].index
    assert len(ways.parts) == (1 if part > 12 else 3)
    found = message_pass(ways, *given)
    torch.testing.assert_close(found, expected)
    for ours, theirs in zip(torch.autograd.grad((found * weights).sum(), given), gradients, strict=True):
        torch.testing.assert_close(ours, theirs)


@BOTH
@COPIES
def test_the_gradient_is_that_of_finite_differences(dense: bool, copies: int) -> None:
    ways = Incidence.of(graph_of(RULE), dense=dense).rules[0].index
    assert torch.autograd.gradcheck(lambda *given: message_pass(ways, *given), inputs(copies))
