"""The subgraph around a batch by hand: a chain of four atoms."""

import numpy as np
import pytest
import torch

from r2n.graph.batching import subgraph
from r2n.graph.factor_graph import FactorGraph
from r2n.grounding.ground_rules import Grounding, GroundRules
from r2n.logic.formula import Atom, Variable
from r2n.logic.theory import Rule

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
