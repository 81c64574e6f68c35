"""Dense grids: what a graph without holes computes over its box of substitutions."""

import numpy as np
import torch

import r2n
from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.network.factor_graph import FactorGraph
from r2n.network.grid import DenseGrid, row_dropout

THEORY = """\
domain d = {a, b, c}
domain e = {k, l}
predicate p(d, d)
predicate t(d, e)
predicate q(d, d)
predicate alone(d, d)
implicit r: [p(x, y), q(x, y), q(y, x), t(x, m)]
implicit s: [p(x, y), p(y, z)]
"""
KNOWLEDGE = r2n.KnowledgeBase.build(r2n.parse_theory(THEORY))
GRAPH = FactorGraph.from_grounding(FullGrounder().ground(Store(KNOWLEDGE)), np.arange(KNOWLEDGE.base.size))


def test_rows_are_dropped_together() -> None:
    torch.manual_seed(0)
    dropped = row_dropout(torch.ones(50, 4, 6), 0.5)
    assert set(dropped.unique().tolist()) == {0.0, 2.0}
    assert bool((dropped == dropped[:, :1]).all()), "one mask for all points of a row"
    assert not bool((dropped == dropped[:1]).all()), "another one for the next row"
    assert 0.4 < float((dropped == 0).float().mean()) < 0.6
    points = torch.randn(2, 3, 4)
    assert row_dropout(points, 0.0) is points


def test_a_graph_in_another_order_has_no_grids() -> None:
    codes = torch.arange(KNOWLEDGE.base.size)
    assert DenseGrid.from_graph(FactorGraph(codes, (), (), ()), KNOWLEDGE.base) is not None
    assert DenseGrid.from_graph(FactorGraph(codes.flip(0), (), (), ()), KNOWLEDGE.base) is None
