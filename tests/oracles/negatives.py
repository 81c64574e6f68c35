"""Negative samples by plain loops over names: which atoms a fact can be corrupted into."""

from r2n.logic.language import Domain, Predicate
from tests.oracles.grounding import GroundAtom, World, leaves


def narrowest(world: World, domain: Domain, constant: str) -> list[str]:
    """The names of the smallest leaf domains that hold the constant: one, or several of the same size."""
    holding = [name for name in sorted(leaves(domain)) if constant in world.members[name]]
    smallest = min(len(world.members[name]) for name in holding)
    return [name for name in holding if len(world.members[name]) == smallest]


def corruptions(world: World, fact: GroundAtom, position: int) -> list[set[GroundAtom]]:
    """The corruptions of a fact in a position that are no training facts: one set for each narrowest domain."""
    predicate = predicate_of(world, fact)
    found = []
    for name in narrowest(world, predicate.domains[position], fact[1 + position]):
        others = set()
        for constant in world.members[name]:
            other = (*fact[: 1 + position], constant, *fact[2 + position :])
            if other not in world.facts:
                others.add(other)
        found.append(others)
    return found


def predicate_of(world: World, atom: GroundAtom) -> Predicate:
    return next(p for p in world.theory.predicates if p.name == atom[0])


def is_closed(world: World, atom: GroundAtom) -> bool:
    """Whether what is not known of this atom is false: its predicate is closed, or a part of it that holds the atom."""
    predicate = predicate_of(world, atom)
    for part in predicate.closed_parts:
        if all(c in world.members[domain.name] for c, domain in zip(atom[1:], part, strict=True)):
            return True
    return predicate.closed


def labels(world: World, atom: GroundAtom, positions: list[int] | None) -> set[int]:
    """The labels that an atom may have: 1 true, 0 false, -1 unknown; several where narrowest domains tie."""
    if atom in world.facts:
        return {1}
    if atom in world.false_facts or is_closed(world, atom):
        return {0}
    possible = {-1}
    for fact in world.facts:
        predicate = predicate_of(world, fact)
        if is_closed(world, fact):
            continue
        asked = [p for p in positions if p < predicate.arity] if positions is not None else range(predicate.arity)
        for position in asked:
            sets = corruptions(world, fact, position)
            if all(atom in found for found in sets):
                return {0}
            if any(atom in found for found in sets):
                possible = {-1, 0}
    return possible
