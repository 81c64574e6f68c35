"""What would be answered after changes: as a problem grounded again answers, or a pass over each changed graph."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from r2n.data.knowledge_base import with_reciprocals
from r2n.data.problem import Problem
from r2n.explanation import counterfactuals as module
from r2n.explanation.counterfactuals import (
    HIDDEN,
    Changes,
    Counterfactuals,
    ExplainedModel,
    Flip,
    Neighbourhood,
    WhatIf,
    mean_logits,
)
from r2n.grounding.full import FullGrounder
from r2n.logic.parser import parse_theory
from r2n.network.factor_graph import FALSE, TRUE, UNKNOWN, FactorGraph, known_states
from r2n.network.graph_sources import GroundedOnDemand
from r2n.network.r2n import R2N
from r2n.scoring import AtomLogits
from tests.unit.explanation.small_model import codes, explained


def changed_theory(toy: Problem, rule: str) -> Problem:
    declared = "domain town, valley\npredicate liesIn(town, valley)\npredicate near(town, town) closed\n"
    language = toy.knowledge.language
    completed = parse_theory(f"{declared}{rule}\n").completed(language.domains, language.predicates)
    return replace(toy, knowledge=replace(toy.knowledge, theory=completed))


def fact_changes(model: ExplainedModel, near: Neighbourhood) -> Counterfactuals:
    return Counterfactuals(model, near, Flip(near.codes[:1], None), near.codes[:0], (), near.logits)


def test_an_answer_flips_below_half_or_out_of_first_place() -> None:
    logits = np.array([[1.0, 2.0], [-1.0, -2.0]])
    assert Flip(np.array([0]), "half").flips(logits).tolist() == [False, True]
    assert Flip(np.array([0]), "half", half=1.5).flips(logits).tolist() == [True, True]
    assert Flip(np.array([0, 1]), "first").flips(logits).tolist() == [True, False]
    assert Flip(np.array([0]), None).flips(logits).tolist() == [False, False]


@pytest.mark.parametrize("strategy", ["full", "known-body", "backward"])
@pytest.mark.parametrize("by", ["half", "first"])
def test_the_set_that_flips_an_answer_flips_it_and_no_part_in_order_does(toy: Problem, strategy: str, by: str) -> None:
    model = explained(toy, "model.layers=2", "model.evidence_input=only", f"grounding.strategy={strategy}")
    asked = codes(model, "liesIn(n5, north)", "liesIn(n5, south)")
    logits = model.logits(asked)
    if by == "first" and logits[0] < logits[1]:
        asked, logits = asked[::-1], logits[::-1]
    half = float(logits[0]) - 1e-4  # so that something flips it
    flip = Flip(asked[:1], "half", half) if by == "half" else Flip(asked, "first")
    near = Neighbourhood.around(model.members, flip.codes)
    facts = np.sort(codes(model, "near(n4, n5)", "near(n6, n5)", "liesIn(n4, north)", "liesIn(n6, north)"))
    found = Counterfactuals(model, near, flip, facts, ("neighbours",), near.logits)
    flipped = found.minimal_flip_set()
    if by == "half" and strategy != "backward":  # there, no fact lowers this one
        assert flipped is not None
    if flipped is not None:
        gone = codes(model, *flipped.what)
        for size in range(1, len(gone) + 1):
            then = mean_logits(model.networks_if(WhatIf(unknown=np.sort(gone[:size]))), flip.codes)
            assert bool(flip.flips(then[None])[0]) == (size == len(gone))
        assert flipped.turns
        assert flipped.kind == "not known"
    assert {other.kind for other in found.of_facts()} == {"not known", "known to be false"}
    (rule,) = found.of_rules()
    without = mean_logits(model.networks_if(WhatIf(without_rule="neighbours")), asked[:1])
    assert rule.logit == pytest.approx(without[0], abs=1e-9)
    largest, _ = found.largest(1)
    assert [other.kind for other in largest][-1] == "without rule"
    assert abs(largest[0].logit - logits[0]) == max(abs(other.logit - logits[0]) for other in found.of_facts())
    neither = Counterfactuals(model, near, Flip(asked[:1], None), facts[:0], (), near.logits)
    assert neither.minimal_flip_set() is None


def test_a_closed_fact_that_is_taken_back_is_read_as_false(toy: Problem) -> None:
    """An implicit rule keeps its ground rules, and the network reads what is known of their atoms."""
    other = changed_theory(toy, "implicit together: [near(x, y), liesIn(x, z), liesIn(y, z)]")
    model = explained(other, "model.layers=1", "grounding.strategy=full", "model.evidence_input=add")
    asked, fact = codes(model, "liesIn(n5, north)"), codes(model, "near(n4, n5)")
    near = Neighbourhood.around(model.members, asked)
    (logit,) = near.changed(fact_changes(model, near).changes(fact, np.array([[0, 0]]), 1))
    np.testing.assert_allclose(logit, mean_logits(model.networks_if(WhatIf(unknown=fact)), asked), atol=1e-9)
    assert abs(logit[0] - near.logits[0]) > 1e-6, "it is within reach"


def test_which_facts_need_a_new_grounding(toy: Problem) -> None:
    """A closed atom that is no fact makes a denied body known: with a fact less there are ground rules more."""
    model = explained(changed_theory(toy, "rule far: !near(x, y) & liesIn(x, z) -> liesIn(y, z)"))
    made = fact_changes(model, Neighbourhood.around(model.members, codes(model, "liesIn(n5, north)")))
    facts = codes(model, "near(n4, n5)", "liesIn(n4, north)")
    assert made.only_remove(facts).tolist() == [False, True]
    searched = explained(toy, "grounding.strategy=backward")
    made = fact_changes(searched, Neighbourhood.around(searched.members, codes(searched, "liesIn(n5, north)")))
    assert not made.only_remove(searched.knowledge.evidence.atoms).any()
    assert made.are_distinguished
    unread = explained(toy)
    made = fact_changes(unread, Neighbourhood.around(unread.members, codes(unread, "liesIn(n5, north)")))
    assert not made.are_distinguished
    assert all(name.startswith("near") for name in unread.names(made.asserted(100)))


NETWORKS: dict[str, dict[str, Any]] = {
    "mean": {"layers": 2},
    "sum": {"layers": 2, "aggregation": "sum", "evidence_input": "add"},
    "max": {"layers": 2, "aggregation": "max", "evidence_input": "only"},
    "mean-then-sum": {"layers": 3, "aggregation": "mean-then-sum", "evidence_input": "add"},
    "residual": {"layers": 2, "residual": True, "isolated": "zero", "input_score": True},
    "zero": {"layers": 1, "isolated": "zero", "evidence_input": "add"},
    "fgnn": {"layers": 2, "reasoner": "fgnn", "evidence_input": "add"},
    "mean-field": {"layers": 3, "reasoner": "mean-field", "evidence_input": "add"},
    "shared": {"layers": 2, "rule_network": "shared"},
    "none": {"reasoner": "none"},
}


def member(problem: Problem, seed: int, *, reciprocal: bool = False, **options: Any) -> AtomLogits:
    knowledge = with_reciprocals(problem.knowledge) if reciprocal else problem.knowledge
    torch.manual_seed(seed)
    model = R2N.build(knowledge, dim=4, **options).double().eval()
    return AtomLogits(model, GroundedOnDemand.from_knowledge(knowledge, FullGrounder()), knowledge.evidence)


def by_a_pass(logits: AtomLogits, graph: FactorGraph, gone: set[int], states: dict[int, int]) -> np.ndarray:
    """The logits of all atoms of a graph without some ground rules, with other states (HIDDEN, or what is known)."""
    neighbours, number = [], 0
    for part in graph.neighbours:
        kept = [i for i in range(len(part)) if number + i not in gone]
        neighbours.append(part[kept])
        number += len(part)
    changed = FactorGraph(graph.atoms, tuple(neighbours), graph.rules, (None,) * len(neighbours), graph.answered)
    known = known_states(logits.model.base, graph.atoms, logits.evidence)
    hidden = torch.zeros(len(graph.atoms), dtype=torch.bool)
    for row, state in states.items():
        hidden[row] = state == HIDDEN
        known[row] = UNKNOWN if state == HIDDEN else state
    with torch.no_grad():
        return logits.model(logits.model.collate(changed), hidden=hidden, known=known).atoms.numpy()


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("reciprocal", [False, True])
def test_many_changes_at_once_are_passes_over_changed_graphs(
    toy: Problem, name: str, reciprocal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = [member(toy, seed, reciprocal=reciprocal, **NETWORKS[name]) for seed in (0, 1)]
    codes = toy.test.atoms[[0, 3]]
    near = Neighbourhood.around(members, codes)
    np.testing.assert_allclose(near.logits, np.mean([m(codes) for m in members], axis=0), atol=1e-9)
    dice = np.random.default_rng(0)
    count = 5
    gone = [
        set(dice.choice(max(1, len(near.graph)), 1 + k % 4).tolist()) if len(near.graph) else set()
        for k in range(count)
    ]
    rows = [dice.choice(len(near.graph.atoms), min(k % 3, len(near.graph.atoms)), replace=False) for k in range(count)]
    states = [{int(row): int(dice.choice([HIDDEN, UNKNOWN, FALSE, TRUE])) for row in part} for part in rows]
    changes = Changes(
        count,
        np.array([[k, n] for k, part in enumerate(gone) for n in part], np.int64).reshape(-1, 2),
        np.array([[k, row] for k, part in enumerate(states) for row in part], np.int64).reshape(-1, 2),
        np.array([state for part in states for state in part.values()], np.int64),
    )
    if name == "none":
        np.testing.assert_allclose(near.changed(changes), np.tile(near.logits, (count, 1)))
        return
    found = near.changed(changes)
    monkeypatch.setattr(module, "NUMBERS_AT_ONCE", 1)
    np.testing.assert_allclose(near.changed(changes.part(0, 3)), found[:3], atol=1e-9, err_msg="one at a time")
    for k in range(count):
        each = [by_a_pass(m, near.graph, gone[k], states[k]) for m in members]
        expected = [np.mean([logits[own].mean() for logits in each]) for own in near.rows]
        np.testing.assert_allclose(found[k], expected, atol=1e-9)
