"""The logit of one atom, by plain loops from its text to its number: grounded alone, embedded and passed on by hand."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from r2n.data.knowledge_base import KnowledgeBase
from r2n.network.factor_graph import FALSE, TRUE, UNKNOWN
from r2n.network.mlp import Output
from r2n.network.r2n import R2N
from tests.model_strategies import plain_maps, plain_rules
from tests.oracles import message_passing
from tests.oracles.grounding import GroundAtom, Substitution, World, rows, without_closed_rules
from tests.oracles.message_passing import Choices
from tests.oracles.negatives import is_closed

GroundAlone = Callable[[World, GroundAtom], list[list[Substitution]]]
"""A strategy: the substitutions of each rule around one atom."""


def reciprocal_world(world: World, knowledge: KnowledgeBase) -> World:
    """The world with p^-1(y, x) beside each p(x, y); the rules are those of `knowledge`, which has them too."""
    return replace(
        world,
        theory=knowledge.theory,
        facts=world.facts | {reciprocal(atom) for atom in world.facts if len(atom) == 3},
        false_facts=world.false_facts | {reciprocal(atom) for atom in world.false_facts if len(atom) == 3},
        candidates=dict(world.candidates)
        | {
            f"{name}^-1": frozenset(map(reciprocal, atoms))
            for name, atoms in world.candidates.items()
            if any(p.name == f"{name}^-1" for p in knowledge.theory.predicates)
        },
    )


def reciprocal(atom: GroundAtom) -> GroundAtom:
    """p^-1(y, x) of p(x, y)."""
    predicate, first, second = atom
    return (f"{predicate}^-1", second, first)


def atom_logit(network: R2N, world: World, ground: GroundAlone, atom: GroundAtom, choices: Choices) -> float:
    """The atom's logit; where it has a reciprocal, the mean of both."""
    names = {predicate.name for predicate in world.theory.predicates}
    both = [atom, reciprocal(atom)] if len(atom) == 3 and f"{atom[0]}^-1" in names else [atom]
    found = [_logit(network, world, ground(world, each), each, choices) for each in both]
    return sum(found) / len(found)


@torch.no_grad()
def _logit(
    network: R2N, world: World, substitutions: list[list[Substitution]], atom: GroundAtom, choices: Choices
) -> float:
    ground_rules = rows(world, without_closed_rules(world, substitutions))
    met = [other for per_rule in ground_rules for row in per_rule for other in row]
    place = {name: number for number, name in enumerate(dict.fromkeys([atom, *met]))}
    neighbours = [[tuple(place[other] for other in row) for row in per_rule] for per_rule in ground_rules]
    atoms = torch.stack([input_vector(network, name, state_of(world, name)) for name in place])
    for layer in network.layers:
        atoms, _ = message_passing.layer(atoms, neighbours, plain_rules(layer), choices)  # pyright: ignore
    assert isinstance(network.atom_output, Output)
    return float(message_passing.mlp(plain_maps(network.atom_output.network), atoms[0]))


def state_of(world: World, atom: GroundAtom) -> int:
    """What is known of an atom."""
    is_false = atom in world.false_facts or is_closed(world, atom)
    return TRUE if atom in world.facts else FALSE if is_false else UNKNOWN


def input_vector(network: R2N, atom: GroundAtom, state: int, hidden: bool = False) -> Tensor:
    """Emb^0(a), with what is known of the atom, and nothing of either if it is hidden."""
    embedding = _embedding(network, atom)
    if network.belief_input is not None:
        belief = 1 / (1 + torch.exp(-embedding.sum()))
        embedding = network.belief_input.weight[:, 0] * belief + network.belief_input.bias
    if hidden:
        embedding = torch.zeros_like(embedding)
    if network.known is None:
        return embedding
    known = network.known[UNKNOWN if hidden else state]
    return known if network.evidence_input == "only" else embedding + known


def _embedding(network: R2N, atom: GroundAtom) -> Tensor:
    """f_P of the constants (eq. 1), for distmult, complex and mlp."""
    language, kind = network.base.language, type(network.atom_embedding).__name__
    index = language.predicate_index(atom[0])
    constants = [network.constants.vectors[language.constant_id(name)] for name in atom[1:]]
    layer: object = network.atom_embedding
    if kind == "AtomMLP":
        return message_passing.mlp(plain_maps(layer.networks[index]), torch.cat(constants))  # pyright: ignore
    product = layer.vectors[index]  # pyright: ignore
    if kind == "DistMult":
        for vector in constants:
            product = product * vector
        return product
    assert kind == "ComplEx"
    total = torch.complex(*product.chunk(2))
    for number, vector in enumerate(constants):
        factor = torch.complex(*vector.chunk(2))
        total = total * (factor if number == 0 else factor.conj())
    return total.real
