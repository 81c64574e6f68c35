"""The factor graph by hand: rows, isolated atoms, nothing at all."""

import numpy as np
import pytest
import torch

from r2n.errors import DataError
from r2n.grounding.ground_rules import Grounding, GroundRules
from r2n.logic.formula import Atom, Variable
from r2n.logic.theory import Rule
from r2n.network.factor_graph import FactorGraph

PAIR = Rule("r", None, (Atom("p", (Variable("x"),)), Atom("q", (Variable("x"),))))


def grounding(*rows: tuple[int, int]) -> Grounding:
    codes = np.array(rows, dtype=np.int64).reshape(-1, 2)
    return Grounding((GroundRules(PAIR, codes, estimate=len(rows), seconds=0.0),))


def test_rows_into_the_sorted_codes() -> None:
    graph = FactorGraph.from_grounding(grounding((30, 10), (30, 30)))
    assert graph.atoms.tolist() == [10, 30]
    assert graph.neighbours[0].tolist() == [[1, 0], [1, 1]]
    assert graph.rules == (PAIR,)


def test_evidence_and_queries_are_there_also_when_no_rule_reaches_them() -> None:
    graph = FactorGraph.from_grounding(grounding((30, 10)), atoms=np.array([20, 10, 99, 20]))
    assert graph.atoms.tolist() == [10, 20, 30, 99]
    assert graph.neighbours[0].tolist() == [[2, 0]]


def test_codes_far_apart_are_found_too() -> None:
    graph = FactorGraph.from_grounding(grounding((2**62, 5)), atoms=np.array([2**61]))
    assert graph.atoms.tolist() == [5, 2**61, 2**62]
    assert graph.neighbours[0].tolist() == [[2, 0]]


def test_no_rules_and_no_atoms_is_a_graph() -> None:
    graph = FactorGraph.from_grounding(Grounding(()), atoms=np.zeros(0, dtype=np.int64))
    assert graph.atoms.tolist() == []
    assert graph.neighbours == ()
    only_atoms = FactorGraph.from_grounding(grounding(), atoms=np.array([7]))
    assert only_atoms.atoms.tolist() == [7]
    assert only_atoms.neighbours[0].shape == (0, 2)


def test_an_atom_that_is_not_there_is_named() -> None:
    graph = FactorGraph.from_grounding(grounding((30, 10)))
    assert graph.rows(torch.tensor([30, 10, 30])).tolist() == [1, 0, 1]
    for stranger in (5, 20, 31):
        with pytest.raises(DataError, match=rf"{stranger}.*not in the graph"):
            graph.rows(torch.tensor([10, stranger]))


def test_a_graph_moves_to_a_device() -> None:
    graph = FactorGraph.from_grounding(grounding((30, 10)))
    assert graph.to("cpu") is graph
    moved = graph.to("meta")
    assert {moved.atoms.device.type, moved.neighbours[0].device.type} == {"meta"}
    assert (moved.rules, moved.shapes) == (graph.rules, graph.shapes)
