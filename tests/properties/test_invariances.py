"""What must make no difference to a network makes none."""

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import torch
from hypothesis import given
from torch import Tensor

from r2n.data.knowledge_base import KnowledgeBase
from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.logic.formula import And, Atom, Constant, Formula, Iff, Implies, Not, Or, Term, Unequal, Xor
from r2n.logic.language import Domain, Predicate
from r2n.logic.theory import Rule, Theory
from r2n.network.factor_graph import FALSE, TRUE, UNKNOWN, FactorGraph, subgraph
from r2n.network.graph_sources import GroundedOnDemand
from r2n.network.r2n import R2N
from r2n.network.reasoning import ReasoningLayer
from r2n.network.scatter import Incidence
from r2n.training.fit import fit
from tests.examples import at_most
from tests.model_strategies import (
    AGGREGATIONS,
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
from tests.strategies import codes_of, knowledge_of, named_atoms
from tests.theory_strategies import dice, one_in

CLOSE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-9}
HEAVY = at_most(20, "each builds, grounds and runs two networks")
LAYERS = 2

# renaming constants


class Renaming:
    """A one-to-one renaming of constants, carried into everything that names them."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def term(self, term: Term) -> Term:
        return Constant(self.names[term.name]) if isinstance(term, Constant) else term

    def formula(self, formula: Formula) -> Formula:
        match formula:
            case Atom(predicate, terms):
                return Atom(predicate, tuple(map(self.term, terms)))
            case Not(part):
                return Not(self.formula(part))
            case And(parts) | Or(parts):
                return type(formula)(tuple(map(self.formula, parts)))
            case Implies(left, right) | Iff(left, right) | Xor(left, right):
                return type(formula)(self.formula(left), self.formula(right))
        raise TypeError(formula)

    def rule(self, rule: Rule) -> Rule:
        atoms = tuple(Atom(atom.predicate, tuple(map(self.term, atom.terms))) for atom in rule.atoms)
        guards = tuple(Unequal(self.term(guard.left), self.term(guard.right)) for guard in rule.guards)
        formula = None if rule.formula is None else self.formula(rule.formula)
        return replace(rule, formula=formula, atoms=atoms, guards=guards)

    def domain(self, domain: Domain) -> Domain:
        listed = None if domain.listed is None else tuple(self.names[name] for name in domain.listed)
        return Domain(domain.name, listed, tuple(map(self.domain, domain.parts)))

    def predicate(self, predicate: Predicate) -> Predicate:
        parts = tuple(tuple(map(self.domain, part)) for part in predicate.closed_parts)
        return replace(predicate, domains=tuple(map(self.domain, predicate.domains)), closed_parts=parts)

    def atom(self, atom: tuple[str, ...]) -> tuple[str, ...]:
        return (atom[0], *(self.names[name] for name in atom[1:]))

    def world(self, world: World) -> World:
        theory = world.theory
        predicates = tuple(map(self.predicate, theory.predicates))
        renamed = Theory(tuple(map(self.domain, theory.domains)), predicates, tuple(map(self.rule, theory.rules)))
        members = {name: tuple(sorted(self.names[m] for m in own)) for name, own in world.members.items()}
        facts, false = frozenset(map(self.atom, world.facts)), frozenset(map(self.atom, world.false_facts))
        return World(renamed, members, facts, false)


def full_graph(knowledge: KnowledgeBase) -> FactorGraph:
    grounding = FullGrounder().ground(Store(knowledge))
    return FactorGraph.from_grounding(grounding, atoms=np.arange(knowledge.base.size))


@HEAVY
@given(dice=dice())
def test_renaming_constants_permutes_the_output(dice: Random) -> None:
    """Other names mean other ids, other codes, another order of ground rules, and the same predictions."""
    world, seed = make_small_world(dice), seed_of(dice)
    names = sorted({name for own in world.members.values() for name in own})
    renaming = Renaming(dict(zip(names, dice.sample([f"n{i}" for i in range(len(names))], len(names)), strict=True)))
    before, after = knowledge_of(world), knowledge_of(renaming.world(world))
    reads = dice.choice(("off", "add"))
    build = {"input": "mlp", "dim": 3, "layers": LAYERS, "aggregation": dice.choice(AGGREGATIONS)}
    network, renamed = (shaken(R2N.build(k, evidence_input=reads, **build), seed) for k in (before, after))
    with torch.no_grad():
        for i, name in enumerate(before.language.constants):
            there = after.language.constant_id(renaming.names[name])
            renamed.constants.vectors[there] = network.constants.vectors[i]
    graph, other = full_graph(before), full_graph(after)
    named = [renaming.atom(atom) for atom in named_atoms(before, graph.atoms.numpy())]
    rows = other.rows(torch.from_numpy(codes_of(after.base, after.language, named)))
    known = torch.tensor([dice.choice((UNKNOWN, FALSE, TRUE)) for _ in named], dtype=torch.int64)
    known_there = torch.zeros_like(known)
    known_there[rows] = known
    expected, found = network(network.collate(graph), known=known), renamed(renamed.collate(other), known=known_there)
    torch.testing.assert_close(found.atoms[rows], expected.atoms, **CLOSE)
    for ours, theirs in zip(found.rules, expected.rules, strict=True):
        torch.testing.assert_close(ours.sort().values, theirs.sort().values, **CLOSE)


# unrelated rules


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
    felt = oracle.reach(rows_of(graph), touched, LAYERS - 1)[-1]
    far = [row for row in range(len(graph.atoms)) if row not in felt]
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
        atoms, _ = layer(atoms, Incidence.of(graph))
    return atoms


# batches


@HEAVY
@given(dice=dice())
def test_a_batch_is_answered_as_in_the_whole_graph(dice: Random) -> None:
    """The subgraph within as many steps as there are layers; known and hidden atoms go with it."""
    setting = make_setting(dice)
    graph, knowledge = setting.graph, setting.knowledge
    count = len(graph.atoms)
    asked = torch.tensor([dice.randrange(count) for _ in range(dice.randrange(4))] if count else [], dtype=torch.int64)
    reasoner = dice.choice(("r2n", "r2n", "fgnn"))
    options = {"input": "distmult", "dim": 3, "layers": LAYERS, "aggregation": dice.choice(AGGREGATIONS)}
    options |= {"residual": one_in(2, dice), "isolated": dice.choice(("keep", "zero"))}
    network = shaken(R2N.build(knowledge, reasoner=reasoner, evidence_input="add", **options), seed_of(dice))
    hidden = torch.tensor([one_in(3, dice) for _ in range(count)], dtype=torch.bool)
    known = torch.tensor([dice.choice((UNKNOWN, FALSE, TRUE)) for _ in range(count)], dtype=torch.int64)
    batch = subgraph(graph, asked, LAYERS)
    found = network(network.collate(batch.graph), hidden=hidden[batch.kept], known=known[batch.kept]).atoms[batch.rows]
    torch.testing.assert_close(found, network(network.collate(graph), hidden=hidden, known=known).atoms[asked], **CLOSE)


# no semantic loss


@at_most(12, "each builds, grounds and runs two networks")
@given(dice=dice())
def test_no_semantic_weight_is_no_rule_output(dice: Random) -> None:
    """With semantic_weight = 0, training gives the weights of a network that has no rule output, bit for bit."""
    setting, seed = make_setting(dice), seed_of(dice)
    evidence, source = setting.knowledge.evidence, GroundedOnDemand.of(setting.knowledge, FullGrounder())
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
