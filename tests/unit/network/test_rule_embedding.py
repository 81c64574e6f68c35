"""What sets rules apart that share a network."""

import torch

from r2n.network.reasoning import RuleEmbedding


def test_a_rule_begins_as_its_groups_network() -> None:
    embedding = RuleEmbedding(3, 2)
    assert embedding.scale(torch.tensor([2, 0])).tolist() == [[1.0, 1.0]] * 2
    assert embedding.shift(torch.tensor([2, 0])).tolist() == [[0.0, 0.0]] * 2


def test_each_rule_has_its_own() -> None:
    embedding = RuleEmbedding(2, 1)
    with torch.no_grad():
        embedding.scales.copy_(torch.tensor([[1.0], [2.0]]))
        embedding.shifts.copy_(torch.tensor([[10.0], [20.0]]))
    assert embedding.scale(torch.tensor([1, 0, 1])).tolist() == [[3.0], [2.0], [3.0]]
    assert embedding.shift(torch.tensor([1, 0])).tolist() == [[20.0], [10.0]]
