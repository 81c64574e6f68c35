"""Logits where the graph is changed, against a pass over each changed graph."""

from typing import Any

import numpy as np
import pytest
import torch

from r2n.data.knowledge_base import with_reciprocals
from r2n.data.problem import Problem
from r2n.explanation import counterfactuals as module
from r2n.explanation.counterfactuals import HIDDEN, Changes, Neighbourhood
from r2n.grounding.full import FullGrounder
from r2n.network.factor_graph import FALSE, TRUE, UNKNOWN, FactorGraph, known_states
from r2n.network.graph_sources import GroundedOnDemand
from r2n.network.r2n import R2N
from r2n.scoring import AtomLogits

NETWORKS: dict[str, dict[str, Any]] = {
    "mean": {"layers": 2},
    "sum": {"layers": 2, "aggregation": "sum", "evidence_input": "add"},
    "max": {"layers": 2, "aggregation": "max", "evidence_input": "only"},
    "mean-then-sum": {"layers": 3, "aggregation": "mean-then-sum", "evidence_input": "add"},
    "residual": {"layers": 2, "residual": True, "isolated": "zero", "input_score": True},
    "zero": {"layers": 1, "isolated": "zero", "evidence_input": "add"},
    "fgnn": {"layers": 2, "reasoner": "fgnn", "evidence_input": "add"},
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
