"""Answers from rules alone, on graphs small enough to do by hand."""

import numpy as np
import pytest
import torch

from r2n.errors import ConfigError
from r2n.grounding.ground_rules import Grounding, GroundRules
from r2n.logic.formula import And, Atom, Implies, Variable
from r2n.logic.theory import Rule
from r2n.network.belief_propagation import find_clash, infer, log_beliefs, normalised
from r2n.network.factor_graph import FactorGraph

A, B = (Atom(name, (Variable("x"),)) for name in "ab")


def implication(weight: float | None) -> FactorGraph:
    """a -> b over atoms 0 and 1; atom 2 stands alone."""
    rule = Rule.explicit("r", Implies(A, B), weight=weight)
    ground = GroundRules(rule, np.array([[0, 1]]), 1, 0.0)
    return FactorGraph.from_grounding(Grounding((ground,)), atoms=np.arange(3))


def probabilities(graph: FactorGraph, prior: list[float], method: str, iterations: int = 5) -> list[float]:
    found = infer(graph, log_beliefs(torch.tensor(prior)), method=method, iterations=iterations)  # pyright: ignore
    return found[:, 1].exp().tolist()


@pytest.mark.parametrize("method", ["paper", "sum-product", "max-product"])
@pytest.mark.parametrize("weight", [None, 1.0])
def test_a_rule_of_many_atoms_is_refused_before_its_worlds_are_listed(method: str, weight: float | None) -> None:
    atoms = [Atom(f"p{i}", (Variable("x"),)) for i in range(60)]
    rule = Rule.explicit("long", Implies(And(tuple(atoms[:-1])), atoms[-1]), weight=weight)
    ground = GroundRules(rule, np.arange(60)[None], 1, 0.0)
    graph = FactorGraph.from_grounding(Grounding((ground,)), atoms=np.arange(60))
    with pytest.raises(ConfigError, match="rule 'long' has 60 atoms, belief propagation takes at most 12"):
        probabilities(graph, [0.5] * 60, method)
    if weight is None:
        with pytest.raises(ConfigError, match="rule 'long' has 60 atoms"):
            find_clash(graph, np.full(60, -1))


def test_a_strict_rule_and_a_known_body_give_the_head() -> None:
    assert probabilities(implication(None), [1.0, 0.5, 0.3], "sum-product") == pytest.approx([1.0, 1.0, 0.3])
    assert probabilities(implication(None), [0.5, 0.0, 0.3], "sum-product") == pytest.approx([0.0, 0.0, 0.3])


def test_a_weighted_rule_pulls() -> None:
    """Of (a, b): 11, 01, 00 weigh e, and 10 weighs 1."""
    e = float(np.e)
    found = probabilities(implication(1.0), [0.5, 0.5, 0.5], "sum-product")
    assert found == pytest.approx([(1 + e) / (1 + 3 * e), 2 * e / (1 + 3 * e), 0.5])


def test_the_papers_recursion_forgets_what_it_started_from() -> None:
    """One iteration from a true body makes the head certain; the next one hears only of the head."""
    first = probabilities(implication(None), [1.0, 0.5, 0.3], "paper", iterations=1)
    assert first[1] == pytest.approx(1.0)
    assert first[2] == pytest.approx(0.5), "the empty sum: no belief either way"
    assert probabilities(implication(None), [1.0, 0.5, 0.3], "paper", iterations=0) == pytest.approx([1.0, 0.5, 0.3])


def test_beliefs_of_certain_atoms_are_finite() -> None:
    beliefs = log_beliefs(torch.tensor([0.0, 1.0, 0.25]))
    assert bool(torch.isfinite(beliefs).all())
    assert normalised(beliefs).exp().sum(1).tolist() == pytest.approx([1.0] * 3)


@pytest.mark.parametrize("method", ["max-product", "sum-product"])
def test_where_nothing_changes_any_more_it_ends(method: str) -> None:
    few, many = (probabilities(implication(0.7), [1.0, 0.5, 0.3], method, iterations=n) for n in (50, 10**12))
    assert few == many
