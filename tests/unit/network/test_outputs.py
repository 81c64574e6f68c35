"""out(a) and out(g): one logit each, by MLP^A and MLP^R."""

import pytest
import torch
from torch import nn

from r2n.network.mlp import AtomOutput, RuleOutput
from tests.model_strategies import plain_maps, shaken, vectors
from tests.oracles import message_passing


@pytest.mark.parametrize("head", [AtomOutput, RuleOutput])
def test_each_embedding_has_a_logit(head: type[nn.Module]) -> None:
    output = shaken(head(3), seed=0)
    assert isinstance(output, AtomOutput | RuleOutput)
    x = vectors(5, 3, seed=1)
    expected = torch.cat([message_passing.mlp(plain_maps(output.network), row) for row in x])
    torch.testing.assert_close(output(x), expected)
    assert output(x[:0]).shape == (0,)
    assert bool((output(10 * x) < 0).any())  # a logit, not a probability
