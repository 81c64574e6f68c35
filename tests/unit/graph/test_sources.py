"""From atoms to graphs: each atom with all the ground rules that are its own, and nothing else."""

import numpy as np
import pytest
import torch

from r2n.errors import DataError
from r2n.graph.factor_graph import FactorGraph
from r2n.graph.sources import GraphSource, GroundedOnDemand, Ungrounded, WholeGraph
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.full import FullGrounder
from r2n.grounding.ground_rules import Grounder
from r2n.grounding.known_body import KnownBodyGrounder
from r2n.grounding.store import Store
from r2n.knowledge.knowledge_base import KnowledgeBase
from tests.unit.grounding.small_knowledge import codes, knowledge

THEORY = "domain d = {a, b, c, e, f}\npredicate p(d, d)\npredicate q(d, d) closed\n"
RULES = "rule chain: q(x, y) & p(y, z) -> p(x, z)\nrule back: p(x, y) -> p(y, x)\n"
FACTS = "q(a,b) q(b,c) p(c,e) q(f,e)"
GROUNDERS = [FullGrounder(), KnownBodyGrounder(), BackwardGrounder(1, 2), BackwardGrounder(2, 3, prune=False)]


def known() -> KnowledgeBase:
    return knowledge(RULES, FACTS, theory=THEORY)


def ground_rules(graph: FactorGraph, row: int) -> set[tuple[int, tuple[int, ...]]]:
    """The ground rules (rule, codes of atoms) in the connected component of a row."""
    felt, before = {row}, set[int]()
    while felt != before:
        before = set(felt)
        for part in graph.neighbours:
            for rows in part.tolist():
                if felt.intersection(rows):
                    felt.update(rows)
    return {
        (j, tuple(graph.atoms[rows].tolist()))
        for j, part in enumerate(graph.neighbours)
        for rows in part
        if felt.intersection(rows.tolist())
    }


@pytest.mark.parametrize("grounder", GROUNDERS, ids=str)
def test_an_atom_has_the_same_ground_rules_alone_and_among_others(grounder: Grounder) -> None:
    source, everything = GroundedOnDemand.of(known(), grounder), np.arange(known().base.size)
    together = source.around(everything)
    assert together.atoms[: together.answered].tolist() == everything.tolist()
    rows = together.rows(torch.from_numpy(everything))
    for code in everything.tolist():
        alone = source.around(np.array([code]))
        own = ground_rules(alone, int(alone.rows(torch.tensor([code]))))
        assert ground_rules(together, int(rows[code])) == own, code


def test_backward_neighbourhoods_are_those_of_grounding_alone() -> None:
    grounder, store = BackwardGrounder(1, 2), Store(known())
    source = GroundedOnDemand(store, grounder)
    assert source.whole is None
    for code in range(known().base.size):
        expected = {
            (j, tuple(row))
            for j, part in enumerate(grounder.ground(store, np.array([code])).ground_rules)
            for row in part.atoms.tolist()
        }
        assert ground_rules(source.around(np.array([code])), 0) == expected


def test_where_rules_do_not_depend_on_what_is_asked_they_are_grounded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted, ground = [], FullGrounder.ground
    monkeypatch.setattr(FullGrounder, "ground", lambda *given: counted.append(1) or ground(*given))
    source = GroundedOnDemand.of(known(), FullGrounder())
    for code in range(4):
        source.around(np.array([code]))
    assert source.whole is not None
    assert len(counted) == 1


def test_atoms_in_no_ground_rule_are_there_alone() -> None:
    source = GroundedOnDemand.of(known(), KnownBodyGrounder())
    base = known()
    graph = source.around(codes(base, "q(e, e)", "p(a, a)"))
    assert len(graph) == 0
    assert graph.atoms.tolist() == sorted(codes(base, "q(e, e)", "p(a, a)").tolist())


def test_all_of_the_graph_is_the_graph_itself() -> None:
    source = GroundedOnDemand.of(known(), FullGrounder())
    assert source.whole is not None
    assert source.around(source.whole.atoms.numpy()) is source.whole


def test_a_whole_graph_refuses_what_it_was_not_made_for() -> None:
    base = known()
    graph = FactorGraph.from_grounding(KnownBodyGrounder().ground(Store(base)))
    source: GraphSource = WholeGraph(graph)
    part = source.around(graph.atoms.numpy()[:1])
    assert len(part.atoms) <= len(graph.atoms)
    with pytest.raises(DataError, match=r"1 of 2 atoms are not in the graph, that with code \d+ for one"):
        source.around(np.concatenate([graph.atoms.numpy()[:1], codes(base, "q(e, e)")]))


def test_without_rules_atoms_are_alone() -> None:
    graph = Ungrounded().around(np.array([3, 1, 3]))
    assert (graph.atoms.tolist(), len(graph), len(Ungrounded().whole.atoms)) == ([1, 3], 0, 0)


def test_nothing_asked_is_nothing() -> None:
    for grounder in GROUNDERS:
        graph = GroundedOnDemand.of(known(), grounder).around(np.zeros(0, np.int64))
        assert (len(graph.atoms), len(graph), graph.answered) == (0, 0, 0)
