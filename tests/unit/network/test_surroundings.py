"""The part of a graph around a few atoms, against plain loops over codes."""

from random import Random

import numpy as np
import torch
from hypothesis import given

from r2n.grounding.ground_rules import Grounding, GroundRules
from r2n.logic.formula import And, Atom, Implies, Variable
from r2n.logic.theory import Rule
from r2n.network.factor_graph import FactorGraph
from r2n.network.graph_sources import KHopSubgraphs
from tests.strategies import make_graph
from tests.theory_strategies import dice

GroundRule = tuple[int, tuple[int, ...]]
"""A rule, and the codes of the atoms of one of its ground rules."""


def rule_of(number: int, positions: int) -> Rule:
    """p0(x) & p1(x) -> p2(x): all positions but the last are the body."""
    atoms = tuple(Atom(f"p{i}", (Variable("x"),)) for i in range(positions))
    formula = Implies(atoms[0] if positions == 2 else And(atoms[:-1]), atoms[-1]) if positions > 1 else atoms[0]
    return Rule(f"r{number}", formula, atoms)


def around(ground_rules: set[GroundRule], asked: set[int], steps: int | None, without: set[int]) -> set[GroundRule]:
    """Step by step: the ground rules of an atom that is felt, unless one of `without` stands before their last."""
    felt, found = set(asked), set[GroundRule]()
    for _ in range(99 if steps is None else steps):
        met = {rule for rule in ground_rules if felt & set(rule[1]) and not without & set(rule[1][:-1])}
        found |= met
        felt |= {code for _, codes in met for code in codes}
    return found


@given(dice())
def test_the_ground_rules_within_some_steps(dice: Random) -> None:
    extra, per_rule = make_graph(dice)
    parts = []
    for j, rows in enumerate(per_rule):
        positions = len(rows[0]) if rows else 2
        held = np.array(rows, np.int64).reshape(-1, positions)
        shape = (len(rows),) if rows else None
        parts.append(GroundRules(rule_of(j, positions), held, len(rows), 0.0, shape))
    graph = FactorGraph.from_grounding(Grounding(tuple(parts)), atoms=np.array(extra, np.int64))
    everything = {(j, tuple(row)) for j, rows in enumerate(per_rule) for row in rows}
    codes = [*graph.atoms.tolist(), 3, 8]
    asked, without = ({dice.choice(codes) for _ in range(dice.randrange(4))} for _ in range(2))
    steps = dice.choice((None, 0, 1, 2, 3))
    left_out = dice.choice((None, np.array(sorted(without), np.int64)))
    found = KHopSubgraphs(graph).around(np.array(sorted(asked), np.int64), steps=steps, without=left_out)
    expected = around(everything, asked, steps, set() if left_out is None else without)
    named = [
        (j, tuple(row))
        for j, part in enumerate(found.neighbours)
        for row in found.atoms[part.reshape(-1)].view(part.shape).tolist()
    ]
    assert named == sorted(expected), "each once, in the order of the graph"
    assert found.atoms[: found.answered].tolist() == sorted(asked)
    assert sorted(found.atoms.tolist()) == sorted(asked | {code for _, row in expected for code in row}), "each once"
    whole = [len(part) == len(all_of) for part, all_of in zip(found.neighbours, graph.neighbours, strict=True)]
    assert [shape is not None for shape in found.shapes] == [
        is_whole and bool(rows) for is_whole, rows in zip(whole, per_rule, strict=True)
    ]
    assert found.rules == graph.rules


def test_nothing_asked_is_nothing() -> None:
    graph = FactorGraph(torch.tensor([4]), (), (), ())
    assert len(KHopSubgraphs(graph).around(np.zeros(0, np.int64)).atoms) == 0
