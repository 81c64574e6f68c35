"""A layer computed factored, by index, over a box or over grids gives the numbers of eqs. 2-5 to the letter."""

from collections.abc import Callable
from itertools import product
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import event, given
from torch import Tensor

from r2n.data.knowledge_base import KnowledgeBase
from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.logic.parser import parse_theory
from r2n.network import scatter
from r2n.network.collate import GraphBatch
from r2n.network.factor_graph import FALSE, TRUE, UNKNOWN, FactorGraph
from r2n.network.mlp import Output
from r2n.network.r2n import R2N, Predictions
from r2n.network.reasoning import ReasoningLayer
from r2n.network.scatter import Box, Incidence, Indexed
from tests.examples import at_most
from tests.model_strategies import (
    AGGREGATIONS,
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
from tests.oracles.atom_logit import input_vector
from tests.oracles.message_passing import Choices
from tests.strategies import named_atoms
from tests.theory_strategies import dice, one_in

HEAVY = at_most(15, "each runs a layer by loops over ground rules")
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
    updated, rules = layer(atoms, Incidence.from_graph(graph, **way))
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
        incidence = Incidence.from_graph(graph, dense=dense)
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
    named = named_atoms(setting.knowledge, graph.atoms.numpy())
    inputs = [input_vector(network, *each) for each in zip(named, known, hidden, strict=True)]
    atoms = torch.stack(inputs) if inputs else network.constants.vectors.new_zeros(0, DIM)
    chosen = Choices(aggregation="mean", isolated="keep", ordered=reasoner == "r2n")
    rules: list[list[Tensor]] = []
    for layer in network.layers:
        assert isinstance(layer, ReasoningLayer)
        atoms, rules = message_passing.layer(atoms, rows_of(graph), plain_rules(layer), chosen)
    assert isinstance(network.atom_output, Output)
    assert network.rule_output is not None
    to_atom, to_rule = plain_maps(network.atom_output.network), plain_maps(network.rule_output.network)
    assert_logits(found.atoms, [message_passing.mlp(to_atom, atom) for atom in atoms])
    for logits, embeddings in zip(found.rules, rules, strict=True):
        assert_logits(logits, [message_passing.mlp(to_rule, embedding) for embedding in embeddings])


def assert_logits(found: Tensor, expected: list[Tensor]) -> None:
    torch.testing.assert_close(found, torch.cat([found.new_zeros(0), *expected]), **CLOSE)


# over grids

DOMAINS = "domain d = {a, b, c}\ndomain e = {k, l}\n"
PREDICATES = {"p": ("d", "d"), "q": ("d", "d"), "r": ("d", "e"), "s": ("e", "e"), "u": ("d",), "v": ("e",)}
VARIABLES = {"d": ("x", "y", "z"), "e": ("m", "n")}


def make_grid_theory(dice: Random) -> str:
    """Rules of one to five atoms, each with distinct variables: every one has the form of a grid."""
    used = dice.sample(sorted(PREDICATES), dice.randint(1, 4))
    lines = [f"predicate {name}({', '.join(PREDICATES[name])})" for name in used]
    for number in range(dice.randint(1, 3)):
        atoms = []
        for _ in range(dice.randint(1, 5)):
            name = dice.choice(used)
            left = {domain: list(names) for domain, names in VARIABLES.items()}
            terms = [left[domain].pop(dice.randrange(len(left[domain]))) for domain in PREDICATES[name]]
            atoms.append(f"{name}({', '.join(terms)})")
        lines.append(f"implicit r{number}: [{', '.join(dict.fromkeys(atoms))}]")
    return DOMAINS + "\n".join(lines) + "\n"


def whole_graph(text: str) -> tuple[KnowledgeBase, FactorGraph]:
    knowledge = KnowledgeBase.build(parse_theory(text))
    grounding = FullGrounder().ground(Store(knowledge))
    return knowledge, FactorGraph.from_grounding(grounding, atoms=np.arange(knowledge.base.size))


def outputs(network: R2N, batch: GraphBatch) -> tuple[Predictions, list[Tensor]]:
    """What the network says, and the gradient of a number that feels all of it."""
    said = network(batch)
    parts = [said.atoms, *said.rules]
    feels = sum((part * torch.arange(1.0, len(part) + 1).double().cos()).sum() for part in parts)
    assert isinstance(feels, Tensor)
    return said, list(torch.autograd.grad(feels, list(network.parameters()), allow_unused=True, materialize_grads=True))


def assert_same(network: R2N, graph: FactorGraph) -> None:
    """The kind that is chosen by itself and the dense one say what the indexed one says."""
    theirs, their_gradients = outputs(network, network.collate(graph, "indexed"))
    for kind in ("auto", "dense"):
        ours, our_gradients = outputs(network, network.collate(graph, kind))
        for one, other in zip(
            [ours.atoms, *ours.rules, *our_gradients], [theirs.atoms, *theirs.rules, *their_gradients], strict=True
        ):
            torch.testing.assert_close(one, other, rtol=1e-7, atol=1e-7)


def is_grid(network: R2N, graph: FactorGraph) -> bool:
    return network.collate(graph).kind == "grid"


@at_most(60, "each runs a network in two ways, with gradients")
@given(dice=dice())
def test_grids_and_indices_agree_on_random_theories(dice: Random) -> None:
    knowledge, graph = whole_graph(make_grid_theory(dice))
    network = R2N.build(
        knowledge,
        input=dice.choice(("distmult", "complex", "transe", "rotate")),
        dim=3,
        rule_dim=2,
        layers=dice.randint(0, 3),
        reasoner=dice.choice(("r2n", "r2n", "fgnn")),
        aggregation=dice.choice(("sum", "mean", "mean-then-sum")),
        residual=one_in(2, dice),
        isolated=dice.choice(("keep", "zero")),
        mlp="shallow",
        output=dice.choice(("linear", "mlp")),
        input_score=one_in(2, dice),
    )
    shaken(network, seed_of(dice))
    assert is_grid(network, graph) == (network.belief_input is None)
    event("grids" if is_grid(network, graph) else "beliefs as input")
    assert_same(network, graph)
    hidden = torch.tensor([one_in(3, dice) for _ in graph.atoms])
    by_kind = [network(network.collate(graph, kind), hidden=hidden).atoms for kind in ("auto", "indexed")]
    torch.testing.assert_close(*by_kind, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(
    "rule",
    [
        "implicit r: [p(x, x), q(x, y)]",  # a variable twice
        'implicit r: [p("a", x), q(x, y)]',  # a constant
        "implicit r: [p(x, y), q(x, y)], x != y",  # not every substitution
    ],
)
def test_what_has_not_the_form_of_a_grid_goes_the_other_way(rule: str) -> None:
    knowledge, graph = whole_graph(DOMAINS + "predicate p(d, d)\npredicate q(d, d)\n" + rule)
    network = shaken(R2N.build(knowledge, dim=3, layers=1, mlp="shallow"), seed=0)
    assert not is_grid(network, graph)
    assert_same(network, graph)


def test_a_graph_that_misses_an_atom_and_evidence_as_input_go_the_other_way() -> None:
    text = DOMAINS + "predicate p(d, d)\npredicate q(d, d)\nimplicit r: [p(x, y), p(y, x)]\n"
    knowledge, graph = whole_graph(text)
    shallow = R2N.build(knowledge, dim=3, layers=1, mlp="shallow")
    assert is_grid(shallow, graph)
    assert not is_grid(shallow, FactorGraph(graph.atoms[:-1], graph.neighbours, graph.rules, graph.shapes))
    assert not is_grid(R2N.build(knowledge, layers=1, mlp="shallow", evidence_input="add"), graph)
    assert not is_grid(R2N.build(knowledge, layers=1, mlp="shallow", input="mlp"), graph)
