"""Gather and scatter indices on small graphs, by index and by broadcasting."""

import numpy as np
import pytest
import torch

from r2n.data.knowledge_base import KnowledgeBase
from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.logic.parser import parse_theory
from r2n.network import scatter as module
from r2n.network.factor_graph import FactorGraph
from r2n.network.scatter import Box, Incidence

THEORY = """
domain d = {a, b}
domain e = {k, l, m}
predicate p(d, e)
predicate q(e)
"""
# rows: p(a,k) 0, p(a,l) 1, p(a,m) 2, p(b,k) 3, p(b,l) 4, p(b,m) 5, q(k) 6, q(l) 7, q(m) 8


def graph_of(rules: str) -> FactorGraph:
    """All ground atoms of the language, with the full grounding of some rules."""
    knowledge = KnowledgeBase.build(parse_theory(THEORY + rules))
    return FactorGraph.from_grounding(FullGrounder().ground(Store(knowledge)), atoms=np.arange(knowledge.base.size))


RULE = "rule r: p(x, y) -> q(y)"
BOTH = pytest.mark.parametrize("dense", [True, False])


def test_rules_with_as_many_atoms_are_laid_out_as_one() -> None:
    """r and t have two atoms each, s has one; both r and t have q(k), q(l), q(m)."""
    rules = RULE + '\nimplicit s: [q(x)]\nimplicit t: [q(x), p("a", x)]'
    single, pairs = Incidence.from_graph(graph_of(rules), grouped=True).rules
    assert single.owners is not None
    assert pairs.owners is not None
    assert single.owners.rules == (1,)
    assert (pairs.owners.rules, pairs.owners.sizes) == ((0, 2), (6, 3))
    assert [table.tolist() for table in pairs.tables] == [[0, 1, 2, 3, 4, 5, 6, 7, 8], [6, 7, 8, 0, 1, 2]]
    assert [count.tolist() for count in pairs.counts] == [[1] * 9, [2] * 3 + [1] * 3]
    assert [part.tolist() for part in pairs.received] == [[1] * 9, [2] * 3 + [1] * 3]
    assert pairs.owners.of_slots.tolist() == [0] * 6 + [2] * 3 + [0] * 3 + [2] * 3
    assert pairs.owners.of_ground_rules.tolist() == [0] * 6 + [2] * 3
    slots = torch.arange(15.0).unsqueeze(1)  # r: p at 0-5 and q at 9-11; t: q at 6-8 and p at 12-14
    assert pairs.index.sum_at_rules(slots).flatten().tolist() == [9, 11, 13, 12, 14, 16, 18, 20, 22]


@BOTH
def test_no_ground_rules_and_no_rules_are_legal(dense: bool) -> None:
    graph = graph_of("rule r: p(x, y) -> q(y)")
    nothing = graph.neighbours[0][:0]
    empty = FactorGraph(graph.atoms, (nothing,), graph.rules, ((0, 3),))
    (rule,) = Incidence.from_graph(empty, dense=dense).rules
    assert rule.index.sum_at_rules(torch.zeros(0, 2)).shape == (0, 2)
    assert rule.index.sum_at_atoms(torch.zeros(0, 2, 4)).shape == (0, 4)
    assert Incidence.from_graph(FactorGraph(graph.atoms, (), (), ()), dense=dense).messages.tolist() == [0] * 9
    (group,) = Incidence.from_graph(empty, grouped=True).rules
    assert sum(group.sizes) == 0
    assert Incidence.from_graph(FactorGraph(graph.atoms, (), (), ()), grouped=True).rules == ()


@pytest.mark.parametrize("part", [1, 6, 12, 13, 18, 20])
def test_slices_of_a_box_cover_its_longest_axis(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the last slice is shorter than the others."""
    box = Box((2, 5), ((0, 1), (1,)))
    monkeypatch.setattr(module, "PART", part)
    slots = torch.zeros(15, 1)
    for slice_ in box.parts:
        rows = len(slice_.sum_at_rules(slots))
        slice_.add_at_atoms(torch.ones(rows, 2, 1), slots)
    assert slots.flatten().tolist() == [1] * 10 + [2] * 5
