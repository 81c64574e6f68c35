"""Toy theories learned to an average precision of 1.0 in seconds, each by what it alone can be learned by."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from r2n.data.knowledge_base import Evidence, KnowledgeBase
from r2n.data.problem import Problem, load_problem
from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.model.run import Run, prepare_run
from r2n.network.factor_graph import FactorGraph, known_states
from r2n.network.r2n import R2N
from r2n.training.fit import fit
from tests.oracles.metrics import average_precision
from tests.toy_problem import write_toy_problem
from tests.unit.grounding.small_knowledge import codes, knowledge
from tests.unit.training.toy_training import step_of


def precision(model: R2N, graph: FactorGraph, known: KnowledgeBase, queries: dict[str, bool]) -> float:
    states = known_states(known.base, graph.atoms, known.evidence)
    with torch.no_grad():
        logits = model(model.collate(graph), known=states).atoms
    rows = [int(graph.rows(torch.from_numpy(codes(known, query)))) for query in queries]
    return average_precision(logits[rows].tolist(), list(queries.values()))


def whole_graph(known: KnowledgeBase) -> FactorGraph:
    return FactorGraph.from_grounding(FullGrounder().ground(Store(known)), atoms=np.arange(known.base.size))


# a rule that holds: two steps along a chain of parents

PEOPLE = [f"{family}{generation}" for family in "abcdef" for generation in range(4)]
FAMILY = f"""
domain person = {{{", ".join(PEOPLE)}}}
predicate parent(person, person) closed
predicate grandparent(person, person)
"""
TWO_STEPS = "rule two_steps: parent(x, y) & parent(y, z) -> grandparent(x, z)"
PARENTS = [f"parent({f}{g},{f}{g + 1})" for f in "abcdef" for g in range(3)]
GRANDPARENTS = [f"grandparent({f}{g},{f}{g + 2})" for f in "abcd" for g in range(2)]
QUERIES = {f"grandparent({x}, {y})": y in (f"{x[0]}{int(x[1]) + 2}",) for x in PEOPLE[16:] for y in PEOPLE[16:]}


def families(rules: str) -> KnowledgeBase:
    return knowledge(rules, " ".join(PARENTS + GRANDPARENTS), theory=FAMILY)


def test_a_rule_is_learned_and_used_for_families_never_asked_about() -> None:
    """The grandparents of families e and f are unknown, and found by the rule; without it they are guessed."""
    found = {}
    for rules in (TWO_STEPS, ""):
        known = families(rules)
        graph = whole_graph(known)
        torch.manual_seed(0)
        model = R2N.build(known, dim=8, layers=1, input="distmult", isolated="zero")
        for _ in fit(model, graph, known.evidence, epochs=60, corrupted_positions=[1]):
            pass
        found[rules] = precision(model, graph, known, QUERIES)
    assert found[TWO_STEPS] == 1.0
    assert found[""] < 0.5


# no rule, only the hint that three predicates are related

THINGS = [f"t{i:02}" for i in range(40)]
XOR = f"""
domain thing = {{{", ".join(THINGS)}}}
predicate p(thing) closed
predicate q(thing) closed
predicate r(thing)
implicit related: [p(x), q(x), r(x)]
"""


def test_an_implicit_rule_learns_what_it_means() -> None:
    """r is p xor q: the network is told so by thirty things alone, and answers for ten others."""
    truth = {thing: (bool(i & 1), bool(i & 2)) for i, thing in enumerate(THINGS)}
    given, asked = THINGS[:30], THINGS[30:]
    facts = [f"p({t})" for t in THINGS if truth[t][0]] + [f"q({t})" for t in THINGS if truth[t][1]]
    facts += [f"r({t})" for t in given if truth[t][0] != truth[t][1]]
    false = [f"r({t})" for t in given if truth[t][0] == truth[t][1]]
    known = knowledge("", " ".join(facts), " ".join(false), XOR)
    graph = whole_graph(known)
    torch.manual_seed(0)
    model = R2N.build(known, dim=8, layers=1, evidence_input="only")
    for _ in fit(model, graph, known.evidence, epochs=100, hiding=0.5, corrupted_positions=[]):
        pass
    queries = {f"r({t})": truth[t][0] != truth[t][1] for t in asked}
    assert precision(model, graph, known, queries) == 1.0


def with_queries(problem: Problem, split: str, atoms: list[str]) -> Problem:
    queries = codes(problem.knowledge, *atoms)
    return replace(problem, queries={**problem.queries, split: Evidence(queries, np.ones(len(queries), bool))})


def traces(run: Run) -> list[tuple[float, float | None]]:
    return [(epoch.loss, epoch.valid) for epoch in run.trainer]


@pytest.mark.parametrize("kind", ["classification", "ranking"])
def test_what_the_test_split_says_reaches_neither_training_nor_selection(kind: str, tmp_path: Path) -> None:
    """Two problems that differ in the truth of the test queries alone train to the same weights, chosen alike."""
    problem = load_problem(write_toy_problem(tmp_path / "towns", epochs=20))
    if kind == "classification":
        flipped = Evidence(problem.test.atoms, ~problem.test.truth)
        problems = [problem, replace(problem, queries={**problem.queries, "test": flipped})]
    else:
        problem = with_queries(problem, "valid", ["liesIn(n2, north)", "liesIn(s2, south)"])
        tests = (["liesIn(n5, north)", "liesIn(s2, north)"], ["liesIn(n5, south)", "liesIn(n2, south)"])
        problems = [with_queries(problem, "test", atoms) for atoms in tests]
    changes = ("training.patience=10", "training.validate_every=1", "training.corrupted_positions=[0, 1]")
    runs = [prepare_run(each, each.options.changed(changes), seed=0) for each in problems]
    assert torch.equal(*(step_of(run.trainer).graph.atoms for run in runs))
    first, second = (traces(run) for run in runs)
    assert first == second
    for name, value in runs[0].model.state_dict().items():
        assert torch.equal(value, runs[1].model.state_dict()[name]), name
