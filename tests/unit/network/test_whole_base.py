"""Grids of a base; that their numbers are those of the equations is a property."""

import numpy as np
import torch

import r2n
from r2n.network.factor_graph import FactorGraph
from r2n.network.grid import DenseGrid

THEORY = """\
domain d = {a, b, c}
domain e = {k, l}
predicate p(d, d)
predicate t(d, e)
predicate q(d, d)
implicit r: [p(x, y), q(x, y), q(y, x), t(x, m)]
"""


def whole() -> DenseGrid:
    knowledge = r2n.KnowledgeBase.build(r2n.parse_theory(THEORY))
    grounding = r2n.FullGrounder().ground(r2n.Store(knowledge))
    found = DenseGrid.of(FactorGraph.from_grounding(grounding, np.arange(knowledge.base.size)), knowledge.base)
    assert found is not None
    return found


def test_predicates_with_the_same_domains_form_a_grid() -> None:
    grids = whole().grids
    assert [(grid.predicates, grid.shape) for grid in grids] == [((0, 2), (3, 3)), ((1,), (3, 2))]


def test_positions_with_the_same_variables_are_read_together() -> None:
    (rule,) = whole().rules
    found = [(r.grid, r.axes, r.positions.index.tolist(), r.places.index.tolist()) for r in rule.readings]
    assert found == [(0, (0, 1), [0, 1], [0, 1]), (0, (1, 0), [2], [1]), (1, (0, 2), [3], [0])]
    assert rule.box == (3, 3, 2)


def test_messages_are_counted_by_predicate_of_a_rule_and_of_all() -> None:
    """Each p(x, y) stands in two ground rules, q(x, y) in two and two, t(x, m) in three."""
    found = whole()
    expected = {0: [2, 4], 1: [3]}
    assert {grid: part.counts.tolist() for grid, part in found.rules[0].received.items()} == expected
    assert [part.counts.tolist() for part in found.received] == [[2, 4], [3]]
    assert [part.least for part in found.received] == [2, 3]


def test_a_graph_in_another_order_has_no_grids() -> None:
    knowledge = r2n.KnowledgeBase.build(r2n.parse_theory(THEORY))
    codes = torch.arange(knowledge.base.size)
    assert DenseGrid.of(FactorGraph(codes, (), (), ()), knowledge.base) is not None
    assert DenseGrid.of(FactorGraph(codes.flip(0), (), (), ()), knowledge.base) is None


def test_numbers_of_grids_in_the_order_of_codes() -> None:
    first, second = torch.arange(18.0).view(2, 9), torch.arange(100.0, 106.0).view(1, 6)
    expected = [*range(9), *range(100, 106), *range(9, 18)]
    assert whole().in_order([first, second]).tolist() == expected
