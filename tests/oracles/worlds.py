"""Marginal probabilities by a sum over all worlds: the second, obvious implementation of inference from rules alone.

A world says of every ground atom whether it is true. Its weight is the product, over all ground rules that hold in it,
of exp(w), with w the rule's weight; a world in which a rule without weight does not hold has weight zero.
"""

from collections.abc import Iterable
from itertools import product
from math import exp

from tests.oracles.formula import ground, holds
from tests.oracles.grounding import GroundAtom, World, substitutions


def marginals(world: World, asked: Iterable[GroundAtom]) -> dict[GroundAtom, float]:
    """The probability of each atom asked for, where what is not known is as likely true as false before the rules."""
    asked = list(asked)
    rules = [rule for rule in world.theory.rules if rule.formula is not None]
    closed = {predicate.name for predicate in world.theory.predicates if predicate.closed}
    factors = [
        (rule, {atom: ground(atom, theta) for atom in rule.atoms})
        for rule in rules
        for theta in substitutions(world, rule)
    ]
    mentioned = {atom for _, atoms in factors for atom in atoms.values()} | set(asked)
    free = sorted(a for a in mentioned - world.facts - world.false_facts if a[0] not in closed)
    total, found = 0.0, dict.fromkeys(asked, 0.0)
    for truths in product([False, True], repeat=len(free)):
        truth = {atom: atom in world.facts for atom in mentioned} | dict(zip(free, truths, strict=True))
        weight = 1.0
        for rule, atoms in factors:
            assert rule.formula is not None
            is_true = holds(rule.formula, {atom: truth[code] for atom, code in atoms.items()})
            if rule.weight is None:
                weight *= is_true
            elif is_true:
                weight *= exp(rule.weight)
        total += weight
        for atom in asked:
            found[atom] += weight * truth[atom]
    return {atom: value / total for atom, value in found.items()}
