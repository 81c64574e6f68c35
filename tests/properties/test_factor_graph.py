"""A graph says what its grounding says, in rows; and a batch keeps all that its queries can feel."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from r2n.errors import R2NError
from r2n.grounding.ground_rules import Grounding, GroundRules
from r2n.logic.formula import Atom, Variable
from r2n.logic.theory import Rule
from r2n.network.factor_graph import FactorGraph, subgraph
from tests.oracles import factor_graph as oracle
from tests.strategies import Graph, graphs


def grounding_of(per_rule: list[list[tuple[int, ...]]]) -> Grounding:
    """A grounding with these codes; a rule without ground rules gets two positions."""
    parts = []
    for j, rows in enumerate(per_rule):
        positions = len(rows[0]) if rows else 2
        atoms = tuple(Atom(f"p{i}", (Variable("x"),)) for i in range(positions))
        codes = np.array(rows, dtype=np.int64).reshape(-1, positions)
        parts.append(GroundRules(Rule(f"r{j}", None, atoms), codes, estimate=len(rows), seconds=0.0))
    return Grounding(tuple(parts))


def graph_of(drawn: Graph) -> FactorGraph:
    extra, per_rule = drawn
    return FactorGraph.from_grounding(grounding_of(per_rule), atoms=np.array(extra, dtype=np.int64))


def rows_of(graph: FactorGraph) -> list[list[tuple[int, ...]]]:
    return [[tuple(row) for row in part.tolist()] for part in graph.neighbours]


@given(graphs())
def test_rows_point_back_to_the_codes(drawn: Graph) -> None:
    extra, per_rule = drawn
    graph = graph_of(drawn)
    assert graph.atoms.tolist() == oracle.atoms_of(per_rule, extra)
    assert graph.atoms.dtype == torch.int64
    assert len(graph.neighbours) == len(graph.rules) == len(per_rule)
    for part, rows in zip(graph.neighbours, per_rule, strict=True):
        assert part.dtype == torch.int64
        assert [tuple(row) for row in graph.atoms[part].tolist()] == rows


@given(graphs(), st.data())
def test_rows_are_found_by_code_and_strangers_refused(drawn: Graph, data: DataObject) -> None:
    graph = graph_of(drawn)
    codes = graph.atoms.tolist()
    asked = data.draw(st.lists(st.sampled_from(codes), max_size=5)) if codes else []
    assert graph.rows(torch.tensor(asked, dtype=torch.int64)).tolist() == [codes.index(code) for code in asked]
    stranger = data.draw(st.sampled_from([-1, 5, 10**16]).filter(lambda code: code not in codes))
    with pytest.raises(R2NError, match="not in the graph"):
        graph.rows(torch.tensor([*asked, stranger], dtype=torch.int64))


@given(graphs(), st.data(), st.integers(0, 3))
def test_a_batch_keeps_what_its_queries_feel(drawn: Graph, data: DataObject, steps: int) -> None:
    graph = graph_of(drawn)
    choice = st.integers(0, max(0, len(graph.atoms) - 1))
    asked = data.draw(st.lists(choice, max_size=3)) if len(graph.atoms) else []
    batch = subgraph(graph, torch.tensor(asked, dtype=torch.int64), steps)
    reached = oracle.reach(rows_of(graph), set(asked), steps)
    kept = batch.kept.tolist()
    assert kept == sorted(reached[-1])
    assert batch.graph.atoms.tolist() == [graph.atoms.tolist()[row] for row in kept]
    assert [kept[row] for row in batch.rows.tolist()] == asked
    for before, after in zip(rows_of(graph), rows_of(batch.graph), strict=True):
        old = [tuple(kept[row] for row in rows) for rows in after]
        assert old == [row for row in before if row in old]  # in order, each once, none made up
        needed = oracle.touching(before, reached[-2]) if steps else []
        assert set(needed) <= set(old)
        assert all(atom in reached[-1] for row in old for atom in row)


@given(graphs(), st.data(), st.integers(0, 3))
def test_messages_in_the_batch_equal_messages_in_the_graph(drawn: Graph, data: DataObject, steps: int) -> None:
    """Counting walks by one loop per ground rule gives a query the same number in the batch as in the whole graph."""
    graph = graph_of(drawn)
    if not len(graph.atoms):
        return
    asked = data.draw(st.lists(st.integers(0, len(graph.atoms) - 1), min_size=1, max_size=3))
    batch = subgraph(graph, torch.tensor(asked, dtype=torch.int64), steps)

    def walks(rows: list[list[tuple[int, ...]]], start: list[int]) -> list[int]:
        for _ in range(steps):
            after = list(start)
            for per_rule in rows:
                for row in per_rule:
                    total = sum((i + 1) * start[atom] for i, atom in enumerate(row))
                    for i, atom in enumerate(row):
                        after[atom] += (i + 2) * total
            start = after
        return start

    whole = walks(rows_of(graph), [code % 1000 + 1 for code in graph.atoms.tolist()])
    part = walks(rows_of(batch.graph), [code % 1000 + 1 for code in batch.graph.atoms.tolist()])
    assert [part[row] for row in batch.rows.tolist()] == [whole[row] for row in asked]
