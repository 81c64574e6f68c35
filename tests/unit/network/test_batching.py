"""Parts of a graph: around a batch by hand, a chain of four atoms; and where a graph falls apart, by loops."""

import numpy as np
import pytest
import torch
from hypothesis import given

from r2n.grounding.ground_rules import Grounding, GroundRules
from r2n.logic.formula import Atom, Variable
from r2n.logic.theory import Rule
from r2n.network.factor_graph import FactorGraph, component_batches, components, subgraph
from tests.examples import at_most
from tests.strategies import Graph, graphs

NEXT = Rule("next", None, (Atom("p", (Variable("x"),)), Atom("p", (Variable("y"),))))
CHAIN = np.array([[10, 11], [11, 12], [12, 13]], dtype=np.int64)


def chain() -> FactorGraph:
    grounding = Grounding((GroundRules(NEXT, CHAIN, estimate=3, seconds=0.0),))
    return FactorGraph.from_grounding(grounding, atoms=np.array([5], dtype=np.int64))


@pytest.mark.parametrize(
    ("steps", "atoms", "ground_rules"),
    [
        (0, [10], []),
        (1, [10, 11], [[0, 1]]),
        (2, [10, 11, 12], [[0, 1], [1, 2]]),
        (9, [10, 11, 12, 13], [[0, 1], [1, 2], [2, 3]]),
    ],
)
def test_a_step_at_a_time(steps: int, atoms: list[int], ground_rules: list[list[int]]) -> None:
    batch = subgraph(chain(), torch.tensor([1]), steps)
    assert batch.graph.atoms.tolist() == atoms
    assert batch.graph.neighbours[0].tolist() == ground_rules
    assert batch.rows.tolist() == [0]
    assert batch.kept.tolist() == [1, 2, 3, 4][: len(atoms)]


def test_queries_may_repeat_and_stand_in_any_order() -> None:
    batch = subgraph(chain(), torch.tensor([4, 0, 4]), 1)
    assert batch.graph.atoms.tolist() == [5, 12, 13]
    assert batch.rows.tolist() == [2, 0, 2]


def test_no_query_needs_nothing() -> None:
    batch = subgraph(chain(), torch.zeros(0, dtype=torch.int64), 3)
    assert batch.graph.atoms.tolist() == []
    assert batch.graph.neighbours[0].shape == (0, 2)


def built(graph: Graph) -> FactorGraph:
    asked, per_rule = graph
    parts = []
    for j, rows in enumerate(per_rule):
        positions = len(rows[0]) if rows else 2
        rule = Rule(f"r{j}", None, tuple(Atom("p", (Variable(f"x{i}"),)) for i in range(positions)))
        atoms = np.array(rows, dtype=np.int64).reshape(-1, positions)
        parts.append(GroundRules(rule, atoms, estimate=len(rows), seconds=0.0))
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
            assert part.kept[part.rows].tolist() == [row for row in part.kept.tolist() if wanted[row]]
            for j, rows in enumerate(part.graph.neighbours):
                inside = torch.isin(made.neighbours[j], part.kept).all(dim=1)
                assert part.kept[rows].tolist() == made.neighbours[j][inside].tolist()


def test_parts_are_dealt_by_size() -> None:
    rows = np.array([[0, 1], [1, 2], [10, 11], [20, 21], [30, 31]], dtype=np.int64)
    graph = FactorGraph.from_grounding(Grounding((GroundRules(NEXT, rows, estimate=5, seconds=0.0),)))
    parts = component_batches(graph, torch.ones(len(graph.atoms), dtype=torch.bool), 2)
    assert [part.graph.atoms.tolist() for part in parts] == [[0, 1, 2, 20, 21], [10, 11, 30, 31]]
