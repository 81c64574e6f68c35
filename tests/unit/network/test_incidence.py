"""How the atoms and the ground rules of a small graph meet, by index and by broadcasting."""

import numpy as np
import pytest
import torch

from r2n.data.knowledge_base import KnowledgeBase
from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.logic.parser import parse_theory
from r2n.network.factor_graph import FactorGraph
from r2n.network.scatter import Box, Incidence, Indexed

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


@BOTH
def test_each_position_has_a_table_of_its_atoms_and_how_often_they_stand_there(dense: bool) -> None:
    (rule,) = Incidence.of(graph_of(RULE), dense=dense).rules
    assert isinstance(rule.index, Box if dense else Indexed)
    assert [table.tolist() for table in rule.tables] == [[0, 1, 2, 3, 4, 5], [6, 7, 8]]
    assert [count.tolist() for count in rule.counts] == [[1] * 6, [2] * 3]
    assert rule.ground_rules == 6


@BOTH
def test_messages_are_counted_for_each_atom_and_rule(dense: bool) -> None:
    incidence = Incidence.of(graph_of(RULE + "\nimplicit s: [q(x), q(y)]"), dense=dense)
    assert [part.tolist() for part in incidence.rules[0].received] == [[1] * 6, [2] * 3]
    assert [part.tolist() for part in incidence.rules[1].received] == [[6] * 3, [6] * 3]  # q(k), q(k) counts twice
    assert incidence.messages.tolist() == [1] * 6 + [8] * 3


def test_atoms_are_laid_out_by_the_slots_that_they_fill() -> None:
    incidence = Incidence.of(graph_of(RULE + "\nimplicit s: [q(x), q(y)]"))
    first, second = incidence.at_slots(torch.arange(9.0).unsqueeze(1))
    assert first.flatten().tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert second.flatten().tolist() == [6, 7, 8, 6, 7, 8]


def test_what_arrives_at_the_tables_is_summed_to_the_atoms() -> None:
    incidence = Incidence.of(graph_of("implicit s: [q(x), q(y), p(z, x)]"))
    tables = [torch.full((3, 1), 1.0), torch.full((3, 1), 10.0), torch.full((6, 1), 100.0)]
    assert incidence.sum_at_atoms(tables).flatten().tolist() == [100.0] * 6 + [11.0] * 3


@BOTH
def test_constants_in_a_rule_leave_one_atom_at_their_position(dense: bool) -> None:
    (rule,) = Incidence.of(graph_of('rule r: p("b", "l") -> q(y)'), dense=dense).rules
    assert [table.tolist() for table in rule.tables] == [[4], [6, 7, 8]]
    assert [count.tolist() for count in rule.counts] == [[3], [1, 1, 1]]
    slots = torch.tensor([[5.0], [1.0], [2.0], [3.0]])
    assert rule.index.sum_at_rules(slots).flatten().tolist() == [6, 7, 8]


@BOTH
def test_a_rule_without_variables_has_one_ground_rule(dense: bool) -> None:
    (rule,) = Incidence.of(graph_of('rule r: p("b", "l") -> q("k")'), dense=dense).rules
    assert rule.ground_rules == 1
    assert rule.index.sum_at_rules(torch.tensor([[5.0], [1.0]])).tolist() == [[6.0]]
    assert rule.index.sum_at_atoms(torch.ones(1, 2, 1)).tolist() == [[1.0], [1.0]]


def test_a_guard_leaves_holes_and_so_no_box() -> None:
    graph = graph_of("implicit s: [q(x), q(y)], x != y")
    (rule,) = Incidence.of(graph).rules
    assert isinstance(rule.index, Indexed)
    assert rule.ground_rules == 6


def test_rules_with_as_many_atoms_are_laid_out_as_one() -> None:
    """r and t have two atoms each, s has one; both r and t have q(k), q(l), q(m)."""
    rules = RULE + '\nimplicit s: [q(x)]\nimplicit t: [q(x), p("a", x)]'
    single, pairs = Incidence.of(graph_of(rules), grouped=True).rules
    assert single.owners is not None
    assert pairs.owners is not None
    assert single.owners.rules == (1,)
    assert (pairs.owners.rules, pairs.owners.sizes, pairs.ground_rules) == ((0, 2), (6, 3), 9)
    assert [table.tolist() for table in pairs.tables] == [[0, 1, 2, 3, 4, 5, 6, 7, 8], [6, 7, 8, 0, 1, 2]]
    assert [count.tolist() for count in pairs.counts] == [[1] * 9, [2] * 3 + [1] * 3]
    assert [part.tolist() for part in pairs.received] == [[1] * 9, [2] * 3 + [1] * 3]
    assert pairs.owners.of_slots.tolist() == [0] * 6 + [2] * 3 + [0] * 3 + [2] * 3
    assert pairs.owners.of_ground_rules.tolist() == [0] * 6 + [2] * 3
    slots = torch.arange(15.0).unsqueeze(1)  # r: p at 0-5 and q at 9-11; t: q at 6-8 and p at 12-14
    assert pairs.index.sum_at_rules(slots).flatten().tolist() == [9, 11, 13, 12, 14, 16, 18, 20, 22]


def test_rules_laid_out_as_one_move_with_their_owners() -> None:
    (rule,) = Incidence.of(graph_of(RULE), grouped=True).to(torch.device("meta")).rules
    assert rule.owners is not None
    found = [rule.owners.of_slots, rule.owners.of_ground_rules, *rule.received]
    assert {part.device.type for part in found} == {"meta"}


@BOTH
def test_no_ground_rules_and_no_rules_are_legal(dense: bool) -> None:
    graph = graph_of("rule r: p(x, y) -> q(y)")
    nothing = graph.neighbours[0][:0]
    empty = FactorGraph(graph.atoms, (nothing,), graph.rules, ((0, 3),))
    (rule,) = Incidence.of(empty, dense=dense).rules
    assert rule.index.sum_at_rules(torch.zeros(0, 2)).shape == (0, 2)
    assert rule.index.sum_at_atoms(torch.zeros(0, 2, 4)).shape == (0, 4)
    assert Incidence.of(FactorGraph(graph.atoms, (), (), ()), dense=dense).messages.tolist() == [0] * 9
    (group,) = Incidence.of(empty, grouped=True).rules
    assert group.ground_rules == 0
    assert Incidence.of(FactorGraph(graph.atoms, (), (), ()), grouped=True).rules == ()


@BOTH
def test_an_incidence_moves_with_all_that_its_passes_need(dense: bool) -> None:
    incidence = Incidence.of(graph_of(RULE), dense=dense).to(torch.device("meta"))
    atoms = torch.zeros(9, 2, device="meta", requires_grad=True)
    (slots,) = incidence.at_slots(atoms)
    (rule,) = incidence.rules
    arrived = rule.index.sum_at_atoms(rule.index.at_rules(slots))
    found = [rule.index.sum_at_rules(slots), incidence.sum_at_atoms([arrived]), *rule.index.targets(), *rule.counts]
    assert {part.device.type for part in found} == {"meta"}
