"""Perceptrons against matrices written out by hand."""

from typing import Any

import torch
from torch import nn

from r2n.network.mlp import MLP, ModulesOf, PositionMLP
from tests.model_strategies import plain_maps, plain_rule, shaken, vectors
from tests.oracles import message_passing

CLOSE: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-12}


def test_relu_stands_between_the_maps_and_not_after_the_last() -> None:
    network = MLP((1, 2, 1))
    first, last = network.linear()
    with torch.no_grad():
        first.weight.copy_(torch.tensor([[1.0], [-1.0]]))
        first.bias.copy_(torch.tensor([0.0, 1.0]))
        last.weight.copy_(torch.tensor([[-1.0, -10.0]]))
        last.bias.fill_(0.5)
    assert network(torch.tensor([[2.0], [-3.0]])).flatten().tolist() == [-2.0 + 0.5, -40.0 + 0.5]


def test_weights_begin_as_glorots_and_biases_as_zero() -> None:
    torch.manual_seed(0)
    first, last = MLP((60, 40, 2)).linear()
    assert not first.bias.any()
    assert not last.bias.any()
    bound = (6 / (60 + 40)) ** 0.5
    assert 0.95 * bound < float(first.weight.detach().abs().max()) <= bound


def test_what_follows_the_first_map_follows_it() -> None:
    network = shaken(MLP((3, 4, 5, 2)), seed=0)
    x = vectors(6, 3, seed=1)
    torch.testing.assert_close(network.after_first(network.linear()[0](x)), network(x), **CLOSE)
    expected = torch.stack([message_passing.mlp(plain_maps(network), row) for row in x])
    torch.testing.assert_close(network(x), expected, **CLOSE)


def positions_equal_plain(network: PositionMLP, inputs: torch.Tensor) -> None:
    """One input for all positions, or one for each; every position against its own plain MLP."""
    per_position = plain_rule(MLP((1, 1)), network).message_to_atom
    hidden = network.before_last(inputs)
    assert hidden.shape[:2] == (len(inputs), network.positions)
    for i, maps in enumerate(per_position):
        own = inputs if inputs.ndim == 2 else inputs[:, i]
        expected = torch.stack([message_passing.mlp(maps, row) for row in own])
        torch.testing.assert_close(network.last(hidden[:, i], i) + network.last_bias(i), expected, **CLOSE)


def test_each_position_has_its_own_network() -> None:
    for sizes in ((3, 2), (3, 4, 2), (3, 4, 5, 2)):
        network = shaken(PositionMLP(3, sizes), seed=0)
        assert [weight.shape[0] for weight in network.weights] == [3] * (len(sizes) - 1)
        positions_equal_plain(network, vectors(5, 3, seed=1))
        positions_equal_plain(network, vectors(15, 3, seed=1).unflatten(0, (5, 3)))


def test_or_one_network_is_shared_by_all_positions() -> None:
    for sizes in ((3, 2), (3, 4, 2), (3, 4, 5, 2)):
        network = shaken(PositionMLP(3, sizes, shared=True), seed=0)
        assert [weight.shape[0] for weight in network.weights] == [1] * (len(sizes) - 1)
        positions_equal_plain(network, vectors(5, 3, seed=1))
        positions_equal_plain(network, vectors(15, 3, seed=1).unflatten(0, (5, 3)))


def test_every_position_begins_as_glorots_and_with_zero_bias() -> None:
    torch.manual_seed(0)
    network = PositionMLP(3, (60, 40))
    bound = (6 / (60 + 40)) ** 0.5
    for copy in network.weights[0].detach():
        assert 0.95 * bound < float(copy.abs().max()) <= bound
    assert not torch.equal(network.weights[0][0], network.weights[0][1])
    assert not network.biases[0].any()


def test_no_ground_rules_are_legal() -> None:
    network = PositionMLP(2, (3, 4, 5))
    assert network.before_last(torch.zeros(0, 3)).shape == (0, 2, 4)
    assert network.before_last(torch.zeros(0, 2, 3)).shape == (0, 2, 4)


def test_modules_of_one_class_come_in_their_order() -> None:
    first, second = nn.Linear(1, 2), nn.Linear(2, 3)
    modules = ModulesOf([first, second, first])
    assert list(modules) == [first, second, first]
    assert [name for name, _ in modules.named_parameters()] == ["0.weight", "0.bias", "1.weight", "1.bias"]
