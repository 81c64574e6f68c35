"""From atoms to graphs: each atom with all the ground rules that are its own, and nothing else."""

import numpy as np
import pytest
import torch

from r2n.data.knowledge_base import KnowledgeBase
from r2n.errors import DataError
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.counting import RuleCounts, is_counted
from r2n.grounding.full import FullGrounder, KnownBodyGrounder
from r2n.grounding.ground_rules import Grounder
from r2n.grounding.store import Store
from r2n.network.factor_graph import FactorGraph
from r2n.network.graph_sources import Counted, FullGraph, GraphSource, GroundedOnDemand, Ungrounded
from tests.unit.grounding.small_knowledge import codes, knowledge

THEORY = "domain d = {a, b, c, e, f}\npredicate p(d, d)\npredicate q(d, d) closed\n"
RULES = "rule chain: q(x, y) & p(y, z) -> p(x, z)\nrule back: p(x, y) -> p(y, x)\n"
FACTS = "q(a,b) q(b,c) p(c,e) q(f,e)"
GROUNDERS = [FullGrounder(), KnownBodyGrounder(), BackwardGrounder(1, 2), BackwardGrounder(2, 3)]


def known() -> KnowledgeBase:
    return knowledge(RULES, FACTS, theory=THEORY)


def test_where_rules_do_not_depend_on_what_is_asked_they_are_grounded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted, ground = [], FullGrounder.ground
    monkeypatch.setattr(FullGrounder, "ground", lambda *given: counted.append(1) or ground(*given))
    source = GroundedOnDemand.from_knowledge(known(), FullGrounder())
    for code in range(4):
        source.around(np.array([code]))
    assert source.full_graph is not None
    assert len(counted) == 1


def test_atoms_in_no_ground_rule_are_there_alone() -> None:
    source = GroundedOnDemand.from_knowledge(known(), KnownBodyGrounder())
    base = known()
    graph = source.around(codes(base, "q(e, e)", "p(a, a)"))
    assert len(graph) == 0
    assert graph.atoms.tolist() == sorted(codes(base, "q(e, e)", "p(a, a)").tolist())


def test_a_whole_graph_refuses_what_it_was_not_made_for() -> None:
    base = known()
    graph = FactorGraph.from_grounding(KnownBodyGrounder().ground(Store(base)))
    source: GraphSource = FullGraph(graph)
    part = source.around(graph.atoms.numpy()[:1])
    assert len(part.atoms) <= len(graph.atoms)
    with pytest.raises(DataError, match=r"1 of 2 atoms are not in the graph, that with code \d+ for one"):
        source.around(np.concatenate([graph.atoms.numpy()[:1], codes(base, "q(e, e)")]))


@pytest.mark.parametrize("grounder", [*GROUNDERS, BackwardGrounder(0, 1)], ids=str)
def test_what_no_ground_rule_may_reach_is_in_none(grounder: Grounder) -> None:
    source, everything = GroundedOnDemand.from_knowledge(known(), grounder), np.arange(known().base.size)
    asked = np.concatenate([everything[::-1], everything[:3]])
    may = source.may_reach(asked)
    assert may.tolist() == [*may[: len(everything)], *may[: len(everything)][::-1][:3]]
    for code, reached in zip(asked.tolist(), may.tolist(), strict=True):
        alone = source.around(np.array([code]))
        if len(alone) and bool(alone.in_rules[alone.rows(torch.tensor([code]))]):
            assert reached, code
    if not isinstance(grounder, FullGrounder):
        assert not may.all()


UNARY = "domain d = {a, b}\npredicate r(d)\npredicate s(d)\npredicate t(d)\n"
STEPS = "rule last: r(x) -> s(x)\nrule first: t(x) -> r(x)\nrule denied: !t(x) & r(x) -> s(x)\n"


@pytest.mark.parametrize(
    ("grounder", "left_out", "expected"),
    [
        (KnownBodyGrounder(), (), [["r(a)", "s(a)"], ["t(a)", "r(a)"], ["t(b)", "r(b)", "s(b)"], ["r(b)", "s(b)"]]),
        (KnownBodyGrounder(), ("r(a)",), [["t(b)", "r(b)", "s(b)"], ["r(b)", "s(b)"]]),
        (KnownBodyGrounder(), ("t(b)",), [["r(a)", "s(a)"], ["t(a)", "r(a)"], ["r(b)", "s(b)"]]),
        (BackwardGrounder(1, 2), (), [["r(a)", "s(a)"], ["t(b)", "r(b)", "s(b)"], ["r(b)", "s(b)"]]),
        (
            BackwardGrounder(1, 2),
            ("r(a)",),
            [["r(a)", "s(a)"], ["t(a)", "r(a)"], ["t(b)", "r(b)", "s(b)"], ["r(b)", "s(b)"]],
        ),
        (BackwardGrounder(1, 2), ("r(a)", "t(a)"), [["t(b)", "r(b)", "s(b)"], ["r(b)", "s(b)"]]),
    ],
)
def test_what_is_left_out_is_in_no_known_body_and_is_asked_in_its_turn(
    grounder: Grounder, left_out: tuple[str, ...], expected: list[list[str]]
) -> None:
    base = knowledge(STEPS, "r(a) t(a) r(b)", "t(b)", theory=UNARY)
    source = GroundedOnDemand.from_knowledge(base, grounder)
    graph = source.around(codes(base, "s(a)", "s(b)"), without=codes(base, *left_out))
    found = [base.base.names(graph.atoms[rows].numpy()) for part in graph.neighbours for rows in part]
    assert sorted(found) == sorted(expected)
    assert source.known_in_bodies == {"r", "t"}


def test_full_grounding_does_not_read_open_facts() -> None:
    source = GroundedOnDemand.from_knowledge(known(), FullGrounder())
    graph = source.around(codes(known(), "p(c, e)"), without=codes(known(), "p(c, e)"))
    assert source.known_in_bodies == frozenset()
    assert len(graph) == len(source.around(codes(known(), "p(c, e)")))
    assert graph.answered == 1


def test_a_few_steps_of_a_graph_that_was_made_elsewhere() -> None:
    graph = FactorGraph.from_grounding(FullGrounder().ground(Store(known())))
    source, asked = FullGraph(graph), graph.atoms.numpy()[:1]
    near = source.around(asked, steps=1)
    assert 0 < len(near) < len(source.around(asked))
    assert (near.answered, source.known_in_bodies, Ungrounded().known_in_bodies) == (1, frozenset(), frozenset())


def test_rules_are_counted_once_beside_what_a_source_grounds(monkeypatch: pytest.MonkeyPatch) -> None:
    made, of = [], RuleCounts.from_store
    monkeypatch.setattr(RuleCounts, "from_store", lambda *given, **more: made.append(1) or of(*given, **more))
    base = known()
    rules = tuple(rule for rule in base.theory.rules if is_counted(rule))
    grounders = FullGrounder(), GROUNDERS[2]
    for grounded in (Ungrounded(), *(GroundedOnDemand.from_knowledge(base, grounder) for grounder in grounders)):
        source: GraphSource = Counted(grounded, Store(base), rules)
        assert grounded.counts is None
        assert not made, "when it is first asked for"
        counts = source.counts
        assert counts is not None
        assert source.counts is counts
        assert (made.pop(), counts.rules) == (1, rules)
        everything = np.arange(base.base.size)
        assert (source.full_graph is None) == (grounded.full_graph is None)
        assert source.known_in_bodies == grounded.known_in_bodies
        assert source.may_reach(everything).tolist() == grounded.may_reach(everything).tolist()
        some, other = source.around(everything, steps=1), grounded.around(everything, steps=1)
        assert all(map(torch.equal, some.neighbours, other.neighbours))
