"""Theorem 1 on the appendix's examples, and Proposition 1."""

from math import ceil, log2

import numpy as np
import pytest
import torch

from r2n.errors import ConfigError
from r2n.grounding.ground_rules import Grounding, GroundRules
from r2n.logic.formula import And, Atom, Formula, Or, Variable
from r2n.logic.theory import Rule
from r2n.network.belief_propagation import LOG_ZERO, belief_layer, maximum_network, satisfying
from r2n.network.factor_graph import FactorGraph
from r2n.network.scatter import Incidence

A, B = (Atom(name, (Variable("x"),)) for name in "ab")


def one_iteration(formula: Formula, a: tuple[float, float], b: tuple[float, float]) -> list[list[float]]:
    """New log-beliefs of two atoms in one factor."""
    rule = Rule.explicit("g", formula)
    graph = FactorGraph.from_grounding(Grounding((GroundRules(rule, np.array([[0, 1]]), 1, 0.0),)))
    beliefs = torch.tensor([a, b], dtype=torch.float64).log()
    return belief_layer(graph.rules)(beliefs, Incidence.of(graph))[0].tolist()


def test_or_of_the_appendix() -> None:
    """b(x_a = 1) is the larger belief of b; b(x_a = 0) is b(x_b = 1), the only way left."""
    of_a, of_b = one_iteration(Or((A, B)), (0.3, 0.7), (0.9, 0.1))
    assert of_a == pytest.approx(np.log([0.1, 0.9]))
    assert of_b == pytest.approx(np.log([0.7, 0.7]))


def test_and_of_the_appendix() -> None:
    """b(x_a = 1) is b(x_b = 1), and a is never false."""
    of_a, of_b = one_iteration(And((A, B)), (0.3, 0.7), (0.9, 0.1))
    assert of_a == pytest.approx([LOG_ZERO, np.log(0.1)])
    assert of_b == pytest.approx([LOG_ZERO, np.log(0.7)])


def test_an_atom_in_no_ground_rule_gets_the_empty_sum() -> None:
    graph = FactorGraph.from_grounding(Grounding(()), atoms=np.arange(2))
    beliefs = torch.tensor([[0.5, -1.0], [2.0, 3.0]], dtype=torch.float64)
    assert belief_layer(())(beliefs, Incidence.of(graph))[0].tolist() == [[0.0, 0.0]] * 2


@pytest.mark.parametrize("inputs", range(1, 65))
def test_the_maximum_by_relu_layers(inputs: int) -> None:
    """Proposition 1: exact, with at most 2 log2 n layers and never more than 2n units in one of them."""
    network = maximum_network(inputs)
    values = torch.randn(100, inputs, dtype=torch.float64, generator=torch.Generator().manual_seed(inputs)) * 10
    torch.testing.assert_close(network(values).squeeze(1), values.amax(1), rtol=0, atol=1e-12)
    layers = network.linear()
    assert len(layers) == (ceil(log2(inputs)) if inputs > 1 else 0) + 1
    assert len(layers) <= max(1, 2 * ceil(log2(inputs)))
    assert all(layer.out_features <= 2 * inputs for layer in layers)


def test_implicit_rules_allow_everything_and_long_ones_are_refused() -> None:
    assert len(satisfying(Rule("r", None, (A, B)))) == 4
    many = tuple(Atom(f"p{i}", (Variable("x"),)) for i in range(13))
    with pytest.raises(ConfigError, match="rule 'r' has 13 atoms, belief propagation takes at most 12"):
        satisfying(Rule("r", None, many))
