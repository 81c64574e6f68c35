"""A reasoning layer computed factored, by index or over a box, gives the numbers of eqs. 2-5 to the letter."""

from collections.abc import Callable
from functools import cache
from itertools import product
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given
from torch import Tensor

from r2n.data.knowledge_base import KnowledgeBase
from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.logic.parser import parse_theory
from r2n.network import scatter
from r2n.network.factor_graph import FALSE, TRUE, UNKNOWN, FactorGraph
from r2n.network.r2n import R2N
from r2n.network.reasoning import ReasoningLayer
from r2n.network.scatter import Box, Incidence, Indexed
from tests.examples import at_most
from tests.model_strategies import (
    AGGREGATIONS,
    Setting,
    layer_for,
    make_choices,
    make_scattered_graph,
    make_setting,
    plain_maps,
    plain_rules,
    plain_shared_rules,
    rows_of,
    seed_of,
    shaken,
    vectors,
)
from tests.oracles import message_passing
from tests.oracles.message_passing import Choices
from tests.theory_strategies import dice, one_in

HEAVY = at_most(25, "each runs a layer by loops over ground rules")
DIM = 3
CLOSE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-9}  # float64: far below the 1e-5 that is promised


def weighed(outputs: list[Tensor], seed: int) -> Tensor:
    """One number that feels every output, for gradients."""
    generator = torch.Generator().manual_seed(seed)
    parts = [(o * torch.randn(o.shape, generator=generator, dtype=o.dtype)).sum() for o in outputs]
    return torch.stack([*parts, torch.zeros((), dtype=torch.float64)]).sum()


def gradients(value: Tensor, inputs: list[Tensor]) -> list[Tensor]:
    if not value.requires_grad:
        return [torch.zeros_like(part) for part in inputs]
    return list(torch.autograd.grad(value, inputs, allow_unused=True, materialize_grads=True))


def library(layer: ReasoningLayer, atoms: Tensor, graph: FactorGraph, **way: bool) -> list[Tensor]:
    updated, rules = layer(atoms, Incidence.of(graph, **way))
    return [updated, *rules]


def plain(layer: ReasoningLayer, atoms: Tensor, graph: FactorGraph, chosen: Choices) -> list[Tensor]:
    updated, per_rule = message_passing.layer(atoms, rows_of(graph), plain_rules(layer), chosen)
    width = layer.parts()[0][0].linear()[-1].out_features if per_rule else 0
    return [updated, *(torch.stack(rules) if rules else atoms.new_zeros(0, width) for rules in per_rule)]


def assert_equal_to_plain(graph: FactorGraph, chosen: Choices, seed: int, rule_network: str = "own") -> None:
    """Values, and gradients by inputs and by every parameter, of all ways to compute a layer, whole and in parts."""
    layer = layer_for(graph, chosen, seed=seed, dim=DIM, rule_network=rule_network)
    atoms = vectors(len(graph.atoms), DIM, seed + 1).requires_grad_()
    inputs = [atoms, *layer.parameters()]
    if rule_network == "own":
        expected, ways = plain(layer, atoms, graph, chosen), [{"dense": True}, {"dense": False}]
    else:
        rules = plain_shared_rules(layer, graph.rules)
        updated, per_rule = message_passing.layer(atoms, rows_of(graph), rules, chosen)
        expected = [updated, *(torch.stack(part) if part else atoms.new_zeros(0, 2) for part in per_rule)]
        ways = [{"grouped": True}]
    expected += gradients(weighed(expected, seed), inputs)
    for way, part in product(ways, (scatter.PART, 5)):
        with patch.object(scatter, "PART", part):
            found = library(layer, atoms, graph, **way)
            found += gradients(weighed(found, seed), inputs)
        for ours, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(ours, theirs, **CLOSE)


GRAPHS: dict[str, Callable[[Random], FactorGraph]] = {
    "of a theory": lambda dice: make_setting(dice).graph,
    "scattered": make_scattered_graph,
    "shared networks": lambda dice: make_setting(dice).graph if one_in(2, dice) else make_scattered_graph(dice),
}


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@HEAVY
@given(dice=dice())
def test_factored_dense_and_grouped_are_plain(aggregation: str, kind: str, dice: Random) -> None:
    graph, rule_network = GRAPHS[kind](dice), "shared" if kind == "shared networks" else "own"
    assert_equal_to_plain(graph, make_choices(dice, aggregation), seed_of(dice), rule_network)


@at_most(20, "each runs a layer by loops over ground rules")
@given(dice=dice())
def test_a_box_stands_where_every_substitution_does(dice: Random) -> None:
    """The property above compares three ways only if the dense one is taken."""
    graph = make_setting(dice).graph
    for dense in (True, False):
        incidence = Incidence.of(graph, dense=dense)
        for rule, rows, shape in zip(incidence.rules, graph.neighbours, graph.shapes, strict=True):
            assert isinstance(rule.index, Box if dense and shape is not None and len(rows) else Indexed)


@HEAVY
@given(dice=dice())
def test_single_precision_stays_within_1e_5(dice: Random) -> None:
    """At weights as small as those a network starts with."""
    graph, seed = make_setting(dice).graph, seed_of(dice)
    chosen = Choices(aggregation="mean", isolated="keep")
    layer = layer_for(graph, chosen, seed=seed, dim=DIM)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.mul_(0.3)
        layer.float()
        atoms = vectors(len(graph.atoms), DIM, seed).float()
        expected = plain(layer, atoms, graph, chosen)
        for dense in (True, False):
            for ours, theirs in zip(library(layer, atoms, graph, dense=dense), expected, strict=True):
                torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


@HEAVY
@given(dice=dice())
def test_the_network_is_its_input_layer_its_layers_and_its_outputs(dice: Random) -> None:
    """Hidden atoms, evidence as input, two layers and both outputs, against loops over atoms and ground rules."""
    setting, seed = make_setting(dice), seed_of(dice)
    reads, reasoner = dice.choice(("off", "add", "only")), dice.choice(("r2n", "fgnn"))
    graph, count = setting.graph, len(setting.graph.atoms)
    network = shaken(
        R2N.build(
            setting.knowledge, input="distmult", dim=DIM, rule_dim=2, layers=2, reasoner=reasoner, evidence_input=reads
        ),
        seed,
    )
    hidden = [one_in(3, dice) for _ in range(count)]
    known = [dice.choice((UNKNOWN, FALSE, TRUE)) for _ in range(count)]
    found = network(
        network.collate(graph),
        hidden=torch.tensor(hidden, dtype=torch.bool),
        known=torch.tensor(known, dtype=torch.int64),
    )
    atoms = plain_input_layer(network, setting, hidden, known)
    chosen = Choices(aggregation="mean", isolated="keep", ordered=reasoner == "r2n")
    rules: list[list[Tensor]] = []
    for layer in network.layers:
        assert isinstance(layer, ReasoningLayer)
        atoms, rules = message_passing.layer(atoms, rows_of(graph), plain_rules(layer), chosen)
    assert network.atom_output is not None
    assert network.rule_output is not None
    to_atom, to_rule = plain_maps(network.atom_output.network), plain_maps(network.rule_output.network)
    assert_logits(found.atoms, [message_passing.mlp(to_atom, atom) for atom in atoms])
    for logits, embeddings in zip(found.rules, rules, strict=True):
        assert_logits(logits, [message_passing.mlp(to_rule, embedding) for embedding in embeddings])


def assert_logits(found: Tensor, expected: list[Tensor]) -> None:
    torch.testing.assert_close(found, torch.cat([found.new_zeros(0), *expected]), **CLOSE)


def plain_input_layer(network: R2N, setting: Setting, hidden: list[bool], known: list[int]) -> Tensor:
    """Emb^0 atom by atom: DistMult's product, what is known of the atom, and nothing of either where it is hidden."""
    which, arguments = setting.knowledge.base.decode(setting.graph.atoms.numpy())
    vectors_of = network.constants.vectors
    rows = []
    for row, (predicate, constants) in enumerate(zip(which.tolist(), arguments.tolist(), strict=True)):
        embedding = network.atom_embedding.vectors[predicate]  # pyright: ignore
        for constant in constants:
            embedding = embedding * vectors_of[constant] if constant >= 0 else embedding
        if network.belief_input is not None:
            belief = 1 / (1 + torch.exp(-embedding.sum()))
            embedding = network.belief_input.weight[:, 0] * belief + network.belief_input.bias
        if hidden[row]:
            embedding = torch.zeros_like(embedding)
        if network.known is not None:
            state = network.known[UNKNOWN if hidden[row] else known[row]]
            embedding = state if network.evidence_input == "only" else embedding + state
        rows.append(embedding)
    return torch.stack(rows) if rows else vectors_of.new_zeros(0, DIM)


SIX_ATOMS = ("p(x, y)", "q(x)", "p(y, x)", "q(y)", "p(x, x)", 'p("a", y)')


@cache
def graph_of_one_rule(atoms: int) -> FactorGraph:
    """All ground atoms of a language, and a rule of so many atoms."""
    theory = parse_theory(
        f"""domain d = {{a, b, c}}
        predicate p(d, d)
        predicate q(d)
        implicit related: [{", ".join(SIX_ATOMS[:atoms])}]"""
    )
    knowledge = KnowledgeBase.build(theory)
    grounding = FullGrounder().ground(Store(knowledge))
    return FactorGraph.from_grounding(grounding, atoms=np.arange(knowledge.base.size))


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("atoms", range(1, 7))
def test_rules_of_one_to_six_atoms(atoms: int, aggregation: str) -> None:
    """With one atom in several positions of a ground rule, a repeated variable and a constant."""
    graph = graph_of_one_rule(atoms)
    assert graph.shapes == ((3, 3),)
    assert_equal_to_plain(graph, Choices(aggregation=aggregation, isolated="keep"), seed=atoms)
