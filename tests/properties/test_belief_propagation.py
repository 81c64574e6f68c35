"""Theorem 1 against the paper's recursion in loops, and the textbook's inference against exact answers on trees."""

import warnings
from itertools import product
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import assume, event, given

from r2n.grounding.ground_rules import Grounding, GroundRules
from r2n.logic.formula import And, Atom, Formula, Iff, Implies, Not, Or, Variable, Xor
from r2n.logic.theory import Rule
from r2n.network.belief_propagation import LOG_ZERO, belief_layer, infer, normalised
from r2n.network.factor_graph import FactorGraph
from r2n.network.scatter import Incidence
from tests.examples import at_most
from tests.oracles import belief_propagation as oracle
from tests.oracles.formula import truth_table
from tests.theory_strategies import dice, one_in

X = Variable("x")


def make_formula(dice: Random, atoms: list[Atom]) -> Formula:
    """A random formula that names each of the atoms once, in their order."""
    if len(atoms) == 1:
        return Not(atoms[0]) if one_in(3, dice) else atoms[0]
    cut = dice.randint(1, len(atoms) - 1)
    left, right = make_formula(dice, atoms[:cut]), make_formula(dice, atoms[cut:])
    full = dice.choice(
        (And((left, right)), Or((left, right)), Implies(left, right), Iff(left, right), Xor(left, right))
    )
    return Not(full) if one_in(5, dice) else full


def make_rule(dice: Random, number: int, positions: int, weight: float | None = None) -> Rule:
    atoms = [Atom(f"p{i}", (X,)) for i in range(positions)]
    return Rule.explicit(f"r{number}", make_formula(dice, atoms), weight=weight)


def satisfying(rule: Rule) -> list[tuple[bool, ...]]:
    assert rule.formula is not None
    return [row for row, truth in truth_table(rule.formula) if truth]


def graph_of(atoms: int, parts: list[tuple[Rule, list[tuple[int, ...]]]]) -> FactorGraph:
    ground = [GroundRules(rule, np.array(rows, np.int64).reshape(-1, len(rule.atoms)), 0.0) for rule, rows in parts]
    return FactorGraph.from_grounding(Grounding(tuple(ground)), atoms=np.arange(atoms))


def make_beliefs(dice: Random, atoms: int) -> list[tuple[float, float]]:
    return [(dice.uniform(-3, 3), dice.uniform(-3, 3)) for _ in range(atoms)]


@at_most(300, "each sums over all worlds of a graph")
@given(dice=dice())
def test_one_forward_pass_is_one_iteration_of_the_papers_recursion(dice: Random) -> None:
    atoms = dice.randint(1, 8)
    parts = []
    for number in range(dice.randint(0, 4)):
        rule = make_rule(dice, number, dice.randint(1, 4))
        rows = {tuple(dice.randrange(atoms) for _ in rule.atoms) for _ in range(dice.randint(0, 6))}
        parts.append((rule, sorted(rows)))
    event("an atom twice in a ground rule" if any(len(set(r)) < len(r) for _, rows in parts for r in rows) else "not")
    graph, beliefs = graph_of(atoms, parts), make_beliefs(dice, atoms)
    layer = belief_layer(graph.rules)
    found, _ = layer(torch.tensor(beliefs, dtype=torch.float64), Incidence.from_graph(graph))
    expected = oracle.paper_iteration(beliefs, [(satisfying(rule), rows) for rule, rows in parts], LOG_ZERO)
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-6)


def make_tree(dice: Random) -> tuple[int, list[tuple[Rule, list[tuple[int, ...]]]]]:
    """Factors that each share one atom with what is there already; some rules have two ground rules."""
    atoms, parts = 1, []
    for number in range(dice.randint(1, 4)):
        rule = make_rule(dice, number, dice.randint(1, 3), weight=dice.uniform(-2, 2))
        rows = []
        for _ in range(dice.randint(1, 2)):
            new = list(range(atoms, atoms + len(rule.atoms) - 1))
            row = [dice.randrange(atoms), *new]
            dice.shuffle(row)
            atoms += len(new)
            rows.append(tuple(row))
        parts.append((rule, sorted(set(rows))))
        if atoms > 8:
            break
    return atoms, parts


@at_most(100, "each sums over all worlds of a graph")
@given(dice=dice())
def test_textbook_inference_is_exact_on_trees(dice: Random) -> None:
    atoms, parts = make_tree(dice)
    graph, beliefs = graph_of(atoms, parts), make_beliefs(dice, atoms)
    given = torch.tensor(beliefs, dtype=torch.float64)
    table = oracle.joint(beliefs, [(satisfying(rule), rows, rule.weight or 0.0) for rule, rows in parts])
    sums = infer(graph, given, method="sum-product", iterations=2 * atoms)
    assert sums[:, 1].exp().tolist() == pytest.approx(oracle.marginals(table), abs=1e-9)
    best = infer(graph, given, method="max-product", iterations=2 * atoms)
    assert (best[:, 1] - best[:, 0]).tolist() == pytest.approx(oracle.max_marginals(table), abs=1e-9)
    if one_in(5, dice):  # damping leads to the same end
        damped = infer(graph, given, method="sum-product", iterations=12 * atoms, damping=0.3)
        torch.testing.assert_close(damped, sums, rtol=0, atol=1e-6)


@pytest.mark.slow
@at_most(100, "each sums over all worlds of a graph")
@given(dice=dice())
def test_textbook_inference_is_pgmpys_on_trees(dice: Random) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models, factors = pytest.importorskip("pgmpy.models"), pytest.importorskip("pgmpy.factors.discrete")
        inference = pytest.importorskip("pgmpy.inference")
        atoms, parts = make_tree(dice)
        graph, beliefs = graph_of(atoms, parts), make_beliefs(dice, atoms)
        network = models.DiscreteMarkovNetwork()
        network.add_nodes_from([str(i) for i in range(atoms)])
        for i, belief in enumerate(beliefs):
            network.add_factors(factors.DiscreteFactor([str(i)], [2], np.exp(belief)))
        for rule, rows in parts:
            holds = satisfying(rule)
            values = [
                np.exp((rule.weight or 0.0) * (a in holds)) for a in product((False, True), repeat=len(rule.atoms))
            ]
            for row in rows:
                names = [str(atom) for atom in row]
                network.add_edges_from([(a, b) for k, a in enumerate(names) for b in names[k + 1 :]])
                network.add_factors(factors.DiscreteFactor(names, [2] * len(names), np.array(values)))
        exact = inference.VariableElimination(network)
        names = [str(i) for i in range(atoms)]
        likely = exact.map_query(names, show_progress=False)
        queried = [exact.query([name], show_progress=False).values for name in names]
        marginals = [values[1] / values.sum() for values in queried]
    given = torch.tensor(beliefs, dtype=torch.float64)
    sums = infer(graph, given, method="sum-product", iterations=2 * atoms)
    assert sums[:, 1].exp().tolist() == pytest.approx(marginals, abs=1e-9)
    best = infer(graph, given, method="max-product", iterations=2 * atoms)
    margin = best[:, 1] - best[:, 0]
    assume(bool((margin.abs() > 1e-4).all()))  # of two best assignments either may be named
    assert [int(x) for x in (margin > 0).tolist()] == [int(likely[name]) for name in names]


def test_an_atom_in_two_positions_is_one_variable() -> None:
    """p & q over the same atom is that atom; over two atoms it pulls both."""
    rule = Rule.explicit("r", And((Atom("p0", (X,)), Atom("p1", (X,)))), weight=1.0)
    graph = graph_of(1, [(rule, [(0, 0)])])
    even = torch.zeros(1, 2, dtype=torch.float64)
    found = infer(graph, even, method="sum-product", iterations=3)
    torch.testing.assert_close(found, normalised(torch.tensor([[0.0, 1.0]], dtype=torch.float64)))
