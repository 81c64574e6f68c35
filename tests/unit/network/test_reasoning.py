"""Reasoning layers and their networks."""

from typing import Any

import pytest
import torch

from r2n.components import aggregations
from r2n.network.factor_graph import FactorGraph
from r2n.network.mlp import MLP, PositionMLP
from r2n.network.reasoning import ReasoningLayer, make_layer
from r2n.network.scatter import Incidence
from r2n.options import ModelOptions
from tests.model_strategies import graph_of_rows, vectors

# one rule of two positions: ground rules (0, 1) and (0, 0); atom 2 stands in none
GRAPH = graph_of_rows([0, 1, 2], [[(0, 0), (0, 1)]])
ATOMS = torch.tensor([[1.0], [10.0], [100.0]])


def adding(positions: int, factors: list[float]) -> tuple[MLP, PositionMLP]:
    """Exact parts: MLP^1 adds its atoms, MLP^2_i multiplies by a factor and adds a thousandth."""
    update, to_atoms = MLP((positions, 1)), PositionMLP(positions, (1, 1))
    with torch.no_grad():
        update.linear()[0].weight.fill_(1.0)
        to_atoms.weights[0].copy_(torch.tensor(factors).reshape(-1, 1, 1))
        to_atoms.biases[0].fill_(0.001)
    return update, to_atoms


def layer_of(update: list[MLP], to_atoms: list[PositionMLP], **options: Any) -> ReasoningLayer:
    """A layer of the mean, unless it is told otherwise."""
    aggregation = aggregations[options.pop("aggregation", "mean")].load()()
    plain = {"isolated": "keep", "residual": False, "rule_dropout": 0.0, **options}
    return ReasoningLayer(update, to_atoms, aggregation=aggregation, **plain)


def run(graph: FactorGraph = GRAPH, **options: Any) -> tuple[list[float], list[list[float]]]:
    update, to_atoms = adding(2, [2.0, 3.0])
    layer = layer_of([update], [to_atoms], **options)
    atoms, rules = layer(ATOMS, Incidence.from_graph(graph))
    return [round(x, 4) for x in atoms.flatten().tolist()], [rule.flatten().tolist() for rule in rules]


def test_rule_dropout_acts_on_messages_in_training_alone() -> None:
    torch.manual_seed(0)
    graph = graph_of_rows([], [[(0, 1), (1, 0)]])
    layer = make_layer(graph.rules, ModelOptions(dim=4, rule_dim=30, rule_dropout=0.5))
    atoms, incidence = torch.randn(2, 4), Incidence.from_graph(graph)
    settled, rules = layer.eval()(atoms, incidence)
    shaky, same_rules = layer.train()(atoms, incidence)
    assert not torch.allclose(settled, shaky)
    assert torch.equal(rules[0], same_rules[0])
    assert torch.equal(settled, layer.eval()(atoms, incidence)[0])


SHARED = ModelOptions(dim=4, rule_dim=5, rule_network="shared")


def test_networks_that_rules_share_do_not_grow_with_them() -> None:
    """Three rules of two atoms and two of three: two networks; a rule more costs its embedding alone."""
    few = graph_of_rows([], [[(0, 1)], [(0, 1, 2)]])
    many = graph_of_rows([], [[(0, 1)], [(0, 1, 2)], [(1, 0)], [(2, 1, 0)], [(0, 0)]])
    sizes = [sum(p.numel() for p in make_layer(graph.rules, SHARED).parameters()) for graph in (few, many)]
    assert len(make_layer(many.rules, SHARED).parts()) == 2
    assert sizes[1] - sizes[0] == 3 * 2 * 5


def test_rules_that_share_a_network_begin_alike_and_learn_to_differ() -> None:
    """Two rules on atoms that look alike: the same at first; a step for the one leaves the other's embedding."""
    graph = graph_of_rows([], [[(0, 1)], [(2, 3)]])
    layer = make_layer(graph.rules, SHARED)
    atoms = vectors(2, 4, seed=0).float().repeat(2, 1)
    incidence = Incidence.from_graph(graph, grouped=True)
    new, rules = layer(atoms, incidence)
    torch.testing.assert_close(new[:2], new[2:])  # not to the bit: a row's place in a matrix may change its rounding
    torch.testing.assert_close(*rules)
    new[:2].sum().backward()
    assert layer.rule_embedding is not None
    for parameter in layer.rule_embedding.parameters():
        assert parameter.grad is not None
        assert bool(parameter.grad[0].any())
        assert not bool(parameter.grad[1].any())


@pytest.mark.parametrize("aggregation", ["sum", "mean", "mean-then-sum", "max"])
def test_a_rule_without_ground_rules_adds_nothing_and_has_a_gradient_of_zero(aggregation: str) -> None:
    """Without gradients it is passed over, to the same bits."""
    parts = [adding(2, [2.0, 3.0]), adding(2, [5.0, 7.0])]
    layer = layer_of(*map(list, zip(*parts, strict=True)), aggregation=aggregation)
    incidence = Incidence.from_graph(graph_of_rows([0, 1, 2], [[(0, 0), (0, 1)], []]))
    atoms, _ = layer(ATOMS, incidence)
    atoms.sum().backward()
    for weight in parts[1][1].parameters():
        assert weight.grad is not None
        assert not weight.grad.any()
    with torch.no_grad():
        assert torch.equal(layer(ATOMS, incidence, rule_embeddings=False)[0], atoms)
    assert [round(x, 4) for x in atoms.detach().flatten().tolist()] == run(aggregation=aggregation)[0]


def test_no_rules_are_legal() -> None:
    nothing = graph_of_rows([0, 1, 2], [])
    for options, expected in (
        ({}, ATOMS),
        ({"isolated": "zero"}, torch.zeros_like(ATOMS)),
        ({"isolated": "zero", "residual": True}, ATOMS),
    ):
        found, rules = layer_of([], [], **options)(ATOMS, Incidence.from_graph(nothing))
        assert rules == []
        assert torch.equal(found, expected)


def test_no_ground_rules_and_no_atoms_are_legal() -> None:
    for aggregation in ("sum", "mean", "max", "mean-then-sum"):
        graph = graph_of_rows([], [[]])
        layer = make_layer(graph.rules, ModelOptions(dim=3, rule_dim=2, aggregation=aggregation))
        found, rules = layer(torch.zeros(0, 3), Incidence.from_graph(graph))
        assert found.shape == (0, 3)
        assert [rule.shape for rule in rules] == [(0, 2)]
        shared = make_layer(
            graph.rules, ModelOptions(dim=3, rule_dim=2, aggregation=aggregation, rule_network="shared")
        )
        found, rules = shared(torch.zeros(0, 3), Incidence.from_graph(graph, grouped=True))
        assert (found.shape, [rule.shape for rule in rules]) == ((0, 3), [(0, 2)])


def test_weights_begin_as_glorots_and_biases_as_zero() -> None:
    torch.manual_seed(0)
    first, last = MLP((60, 40, 2)).linear()
    assert not first.bias.any()
    assert not last.bias.any()
    network, bound = PositionMLP(3, (60, 40)), (6 / (60 + 40)) ** 0.5
    assert not network.biases[0].any()
    assert not torch.equal(network.weights[0][0], network.weights[0][1])
    for weight in (first.weight, *network.weights[0]):
        assert 0.95 * bound < float(weight.detach().abs().max()) <= bound
