"""What must make no difference to a network makes none; a graph says what its grounding says."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from torch import Tensor

from r2n.data.knowledge_base import KnowledgeBase
from r2n.errors import R2NError
from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.logic.formula import Constant
from r2n.logic.language import Domain
from r2n.network.factor_graph import FALSE, TRUE, UNKNOWN, FactorGraph
from r2n.network.graph_sources import GroundedOnDemand
from r2n.network.r2n import R2N
from r2n.network.reasoning import ReasoningLayer
from r2n.network.scatter import Incidence
from r2n.training.fit import fit
from tests.examples import at_most
from tests.model_strategies import (
    AGGREGATIONS,
    graph_of_rows,
    layer_for,
    make_choices,
    make_scattered_graph,
    make_setting,
    make_small_world,
    rows_of,
    seed_of,
    shaken,
    vectors,
)
from tests.oracles import factor_graph as oracle
from tests.oracles.grounding import World
from tests.strategies import Graph, codes_of, graphs, knowledge_of, named_atoms
from tests.theory_strategies import dice

CLOSE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-9}
HEAVY = at_most(20, "each builds, grounds and runs two networks")
LAYERS = 2

# renaming constants


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, tuple):
        return tuple(renamed(part, names) for part in value)
    if isinstance(value, Constant):
        return Constant(names[value.name])
    if not is_dataclass(value) or isinstance(value, type):
        return value
    parts = {field.name: renamed(getattr(value, field.name), names) for field in fields(value) if field.init}
    if isinstance(value, Domain) and value.listed is not None:
        parts["listed"] = tuple(names[name] for name in value.listed)
    return replace(value, **parts)


def renamed_world(world: World, names: Mapping[str, str]) -> World:
    members = {name: tuple(sorted(names[member] for member in own)) for name, own in world.members.items()}
    facts, false = (frozenset(renamed_atom(atom, names) for atom in part) for part in (world.facts, world.false_facts))
    return World(renamed(world.theory, names), members, facts, false)


def renamed_atom(atom: tuple[str, ...], names: Mapping[str, str]) -> tuple[str, ...]:
    return (atom[0], *(names[name] for name in atom[1:]))


def full_graph(knowledge: KnowledgeBase) -> FactorGraph:
    grounding = FullGrounder().ground(Store(knowledge))
    return FactorGraph.from_grounding(grounding, atoms=np.arange(knowledge.base.size))


@HEAVY
@given(dice=dice())
def test_renaming_constants_permutes_the_output(dice: Random) -> None:
    """Other names mean other ids, other codes, another order of ground rules, and the same predictions."""
    world, seed = make_small_world(dice), seed_of(dice)
    names = sorted({name for own in world.members.values() for name in own})
    others = dict(zip(names, dice.sample([f"n{i}" for i in range(len(names))], len(names)), strict=True))
    before, after = knowledge_of(world), knowledge_of(renamed_world(world, others))
    reads = dice.choice(("off", "add"))
    build = {"input": "mlp", "dim": 3, "layers": LAYERS, "aggregation": dice.choice(AGGREGATIONS)}
    network, other_network = (shaken(R2N.build(k, evidence_input=reads, **build), seed) for k in (before, after))
    with torch.no_grad():
        for i, name in enumerate(before.language.constants):
            there = after.language.constant_id(others[name])
            other_network.constants.vectors[there] = network.constants.vectors[i]
    graph, other = full_graph(before), full_graph(after)
    named = [renamed_atom(atom, others) for atom in named_atoms(before, graph.atoms.numpy())]
    rows = other.rows(torch.from_numpy(codes_of(after.base, after.language, named)))
    known = torch.tensor([dice.choice((UNKNOWN, FALSE, TRUE)) for _ in named], dtype=torch.int64)
    known_there = torch.zeros_like(known)
    known_there[rows] = known
    expected, found = (
        network(network.collate(graph), known=known),
        other_network(other_network.collate(other), known=known_there),
    )
    torch.testing.assert_close(found.atoms[rows], expected.atoms, **CLOSE)
    for ours, theirs in zip(found.rules, expected.rules, strict=True):
        torch.testing.assert_close(ours.sort().values, theirs.sort().values, **CLOSE)


@HEAVY
@given(dice=dice())
def test_an_unrelated_rule_changes_nothing(dice: Random) -> None:
    """One rule more: atoms that are further from its atoms than there are layers do not feel it."""
    graph, seed = make_scattered_graph(dice), seed_of(dice)
    if not graph.rules:
        return
    chosen = make_choices(dice, dice.choice(AGGREGATIONS))
    without = FactorGraph(graph.atoms, graph.neighbours[:-1], graph.rules[:-1], graph.shapes[:-1])
    layers = [layer_for(graph, chosen, seed=seed + i) for i in range(LAYERS)]
    fewer = [without_last_rule(layer) for layer in layers]
    atoms = vectors(len(graph.atoms), 3, seed)
    expected, found = run(fewer, atoms, without), run(layers, atoms, graph)
    touched = {row for rows in graph.neighbours[-1].tolist() for row in rows}
    reachable = oracle.reach(rows_of(graph), touched, LAYERS - 1)[-1]
    far = [row for row in range(len(graph.atoms)) if row not in reachable]
    torch.testing.assert_close(found[far], expected[far], **CLOSE)


def without_last_rule(layer: ReasoningLayer) -> ReasoningLayer:
    parts = layer.parts()[:-1]
    return ReasoningLayer(
        [update for update, _ in parts],
        [to_atoms for _, to_atoms in parts],
        aggregation=layer.aggregation,
        residual=layer.residual,
        isolated=layer.isolated,
        rule_dropout=layer.rule_dropout,
    )


def run(layers: list[ReasoningLayer], atoms: Tensor, graph: FactorGraph) -> Tensor:
    for layer in layers:
        atoms, _ = layer(atoms, Incidence.from_graph(graph))
    return atoms


@at_most(12, "each builds, grounds and runs two networks")
@given(dice=dice())
def test_no_semantic_weight_is_no_rule_output(dice: Random) -> None:
    """With semantic_weight = 0, training gives the weights of a network that has no rule output, bit for bit."""
    setting, seed = make_setting(dice), seed_of(dice)
    evidence, source = setting.knowledge.evidence, GroundedOnDemand.from_knowledge(setting.knowledge, FullGrounder())
    networks = []
    for has_output in (True, False):
        network = shaken(R2N.build(setting.knowledge, input="distmult", dim=3, layers=1), seed)
        networks.append(network)
        if not has_output:
            network.rule_output = None
        for epoch in fit(network, source, evidence, epochs=3, semantic_weight=0.0, seed=seed):
            assert epoch.semantic == 0.0
    before = R2N.build(setting.knowledge, input="distmult", dim=3, layers=1)
    start = shaken(before, seed).state_dict()
    with_output, without = networks[0].state_dict(), networks[1].state_dict()
    for name, value in with_output.items():
        expected = start[name] if name.startswith("rule_output") else without[name]
        assert torch.equal(value, expected), name


@given(graphs())
def test_rows_point_back_to_the_codes(drawn: Graph) -> None:
    extra, per_rule = drawn
    graph = graph_of_rows(*drawn)
    assert graph.atoms.tolist() == oracle.atoms_of(per_rule, extra)
    assert graph.atoms.dtype == torch.int64
    assert len(graph.neighbours) == len(graph.rules) == len(per_rule)
    for part, rows in zip(graph.neighbours, per_rule, strict=True):
        assert part.dtype == torch.int64
        assert [tuple(row) for row in graph.atoms[part].tolist()] == rows


@given(graphs(), st.data())
def test_rows_are_found_by_code_and_strangers_refused(drawn: Graph, data: DataObject) -> None:
    graph = graph_of_rows(*drawn)
    codes = graph.atoms.tolist()
    asked = data.draw(st.lists(st.sampled_from(codes), max_size=5)) if codes else []
    assert graph.rows(torch.tensor(asked, dtype=torch.int64)).tolist() == [codes.index(code) for code in asked]
    stranger = data.draw(st.sampled_from([-1, 5, 10**16]).filter(lambda code: code not in codes))
    with pytest.raises(R2NError, match="not in the graph"):
        graph.rows(torch.tensor([*asked, stranger], dtype=torch.int64))
