"""Factor graphs, their parts, and what is known of their atoms."""

from random import Random

import numpy as np
import torch
from hypothesis import given

from r2n.data.problem import Problem
from r2n.grounding.ground_rules import Grounding, GroundRules
from r2n.logic.formula import And, Atom, Implies, Variable
from r2n.logic.theory import Rule
from r2n.network.factor_graph import (
    FALSE,
    TRUE,
    UNKNOWN,
    FactorGraph,
    component_batches,
    components,
    known_states,
    known_truths,
)
from r2n.network.graph_sources import KHopSubgraphs
from tests.examples import at_most
from tests.strategies import Graph, graphs, make_graph
from tests.theory_strategies import dice


def test_evidence_then_the_closed_world_then_unknown(toy: Problem) -> None:
    base, evidence = toy.knowledge.base, toy.train
    stated = dict(zip(evidence.atoms.tolist(), evidence.truth.tolist(), strict=True))
    states = known_states(base, torch.arange(base.size), evidence).tolist()
    for code, name in enumerate(base.names(torch.arange(base.size).numpy())):
        expected = UNKNOWN if name.startswith("liesIn") else FALSE
        if code in stated:
            expected = TRUE if stated[code] else FALSE
        assert states[code] == expected, name


def test_atoms_may_come_in_any_order_and_twice(toy: Problem) -> None:
    base, evidence = toy.knowledge.base, toy.train
    codes = torch.tensor([5, 3, 5, int(evidence.atoms[-1]), int(evidence.atoms[0])])
    full = known_truths(base, torch.arange(base.size).numpy(), evidence)
    assert known_truths(base, codes.numpy(), evidence).tolist() == full[codes.numpy()].tolist()


NEXT = Rule("next", None, (Atom("p", (Variable("x"),)), Atom("p", (Variable("y"),))))


def built(graph: Graph, *, shaped: bool = False) -> FactorGraph:
    """Rules p0(x) & p1(x) -> p2(x): all positions but the last are the body."""
    asked, per_rule = graph
    parts = []
    for j, rows in enumerate(per_rule):
        positions = len(rows[0]) if rows else 2
        names = tuple(Atom(f"p{i}", (Variable("x"),)) for i in range(positions))
        formula = Implies(names[0] if positions == 2 else And(names[:-1]), names[-1]) if positions > 1 else names[0]
        atoms = np.array(rows, dtype=np.int64).reshape(-1, positions)
        shape = (len(rows),) if rows and shaped else None
        parts.append(GroundRules(Rule(f"r{j}", formula, names), atoms, 0.0, shape))
    return FactorGraph.from_grounding(Grounding(tuple(parts)), atoms=np.array(asked, dtype=np.int64))


def by_loops(graph: FactorGraph) -> list[set[int]]:
    """The components as sets of rows: merge the atoms of each ground rule until nothing changes."""
    sets = [{row} for row in range(len(graph.atoms))]
    for ground_rule in (set(row) for part in graph.neighbours for row in part.tolist()):
        touched = [one for one in sets if one & ground_rule]
        sets = [one for one in sets if not one & ground_rule] + ([set().union(*touched)] if touched else [])
    return sorted(sets, key=min)


@at_most(100, "small graphs repeat themselves")
@given(graphs())
def test_components_are_what_merging_finds(graph: Graph) -> None:
    made = built(graph)
    expected = by_loops(made)
    found = components(made).tolist()
    assert found == [next(i for i, one in enumerate(expected) if row in one) for row in range(len(made.atoms))]


@at_most(100, "small graphs repeat themselves")
@given(graphs())
def test_parts_are_whole_components_and_hold_every_wanted_atom_once(graph: Graph) -> None:
    made = built(graph)
    wanted = torch.isin(made.atoms, torch.tensor(graph[0], dtype=torch.int64))
    for batches in (1, 2, 100):
        parts = component_batches(made, wanted, batches)
        held = [set(part.kept.tolist()) for part in parts]
        needed = [one for one in by_loops(made) if wanted[list(one)].any()]
        assert len(parts) == min(batches, len(needed))
        assert set().union(*held) == set().union(*needed)
        assert sum(map(len, held)) == sum(map(len, needed))
        assert all(any(one <= part for part in held) for one in needed)
        for part in parts:
            assert part.graph.atoms.tolist() == made.atoms[part.kept].tolist()
            for j, rows in enumerate(part.graph.neighbours):
                inside = torch.isin(made.neighbours[j], part.kept).all(dim=1)
                assert part.kept[rows].tolist() == made.neighbours[j][inside].tolist()


def test_parts_are_dealt_by_size() -> None:
    rows = np.array([[0, 1], [1, 2], [10, 11], [20, 21], [30, 31]], dtype=np.int64)
    graph = FactorGraph.from_grounding(Grounding((GroundRules(NEXT, rows, seconds=0.0),)))
    parts = component_batches(graph, torch.ones(len(graph.atoms), dtype=torch.bool), 2)
    assert [part.graph.atoms.tolist() for part in parts] == [[0, 1, 2, 20, 21], [10, 11, 30, 31]]


GroundRule = tuple[int, tuple[int, ...]]
"""A rule, and the codes of the atoms of one of its ground rules."""


def around(ground_rules: set[GroundRule], asked: set[int], steps: int | None, without: set[int]) -> set[GroundRule]:
    """Step by step: the ground rules of an atom that is felt, unless one of `without` stands before their last."""
    reachable, found = set(asked), set[GroundRule]()
    for _ in range(99 if steps is None else steps):
        met = {rule for rule in ground_rules if reachable & set(rule[1]) and not without & set(rule[1][:-1])}
        found |= met
        reachable |= {code for _, codes in met for code in codes}
    return found


@given(dice())
def test_the_ground_rules_within_some_steps(dice: Random) -> None:
    extra, per_rule = make_graph(dice)
    graph = built((extra, per_rule), shaped=True)
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
    full = [len(part) == len(all_of) for part, all_of in zip(found.neighbours, graph.neighbours, strict=True)]
    assert [shape is not None for shape in found.shapes] == [
        is_whole and bool(rows) for is_whole, rows in zip(full, per_rule, strict=True)
    ]
    assert found.rules == graph.rules
