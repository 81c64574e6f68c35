"""Hypothesis: tiny knowledge bases, queries and graphs over the theories of `theory_strategies`."""

from dataclasses import replace
from itertools import product
from random import Random

import numpy as np
from hypothesis.strategies import SearchStrategy

from r2n.data.herbrand import HerbrandBase
from r2n.data.knowledge_base import Evidence, KnowledgeBase
from r2n.logic.formula import And, Formula, Implies
from r2n.logic.language import Language
from r2n.logic.theory import Theory
from tests.oracles.grounding import GroundAtom, World
from tests.theory_strategies import (
    FORMS,
    Form,
    Members,
    Scope,
    dice,
    disjunctive,
    given_members,
    horn,
    make_theory,
    one_in,
    share_of,
    with_denials,
)

# what is known and asked


def ground_atoms(theory: Theory, members: Members) -> list[GroundAtom]:
    return [
        (predicate.name, *constants)
        for predicate in theory.predicates
        for constants in product(*(members[domain.name] for domain in predicate.domains))
    ]


def make_world(dice: Random, forms: tuple[Form | None, ...] = FORMS, with_false: bool = True, least: int = 0) -> World:
    """A theory of at least so many rules, its constants and some evidence, in names."""
    theory, members = make_theory(dice, forms, least)
    known = share_of(ground_atoms(theory, members), dice, (0.3, 0.15, 0.5, 0.4))
    false = share_of(known, dice, (0.1, 0.2)) if with_false and one_in(2, dice) else []
    return World(theory, members, frozenset(known) - frozenset(false), frozenset(false))


def worlds() -> SearchStrategy[World]:
    return dice().map(make_world)


def horn_worlds() -> SearchStrategy[World]:
    """Horn rules without negation and true facts alone: what has a least model."""

    def positive(scope: Scope) -> Formula:
        parts = tuple(scope.atom() for _ in range(scope.dice.randint(1, 3)))
        return Implies(parts[0] if len(parts) == 1 else And(parts), scope.atom())

    return dice().map(lambda dice: make_world(dice, (positive,), with_false=False))


Asked = tuple[World, list[GroundAtom]]
"""A world, and the atoms that are asked."""


def make_asked(dice: Random, forms: tuple[Form | None, ...] = FORMS, least: int = 0) -> Asked:
    """A world with some atoms to ask, known or not: none, a few, or a part of the base."""
    world = make_world(dice, forms, least=least)
    return world, share_of(ground_atoms(world.theory, world.members), dice, (0.1, 0.3))


def asked_worlds() -> SearchStrategy[Asked]:
    return dice().map(make_asked)


def chained_worlds() -> SearchStrategy[Asked]:
    """More rules with bodies, so that the heads of some are in the bodies of others."""
    return dice().map(lambda dice: make_asked(dice, (horn, with_denials, disjunctive), least=3))


def make_candidates(dice: Random, asks: Asked) -> Asked:
    """The same where some predicates have candidates: a part of their atoms, or none."""
    world, asked = asks
    atoms = ground_atoms(world.theory, world.members)
    chosen = [p.name for p in world.theory.predicates if not one_in(3, dice)]
    candidates = {
        name: frozenset(share_of([atom for atom in atoms if atom[0] == name], dice, (0.4, 0.7))) for name in chosen
    }
    return replace(world, candidates=candidates), asked


def candidate_worlds() -> SearchStrategy[Asked]:
    """Any theory, evidence, queries and candidates."""
    return dice().map(lambda dice: make_candidates(dice, make_asked(dice)))


def codes_of(base: HerbrandBase, language: Language, atoms: list[GroundAtom]) -> np.ndarray:
    codes = []
    for predicate, *constants in atoms:
        ids = np.array([[language.constant_id(c) for c in constants]], dtype=np.int64)
        codes.append(int(base.encode(language.predicate(predicate), ids)[0]))
    return np.array(codes, dtype=np.int64)


def knowledge_of(world: World) -> KnowledgeBase:
    theory = world.theory
    language = Language.build(theory.domains, theory.predicates, given_members(theory.domains, world.members))
    known = sorted(world.facts | world.false_facts)
    codes = codes_of(HerbrandBase(language), language, known)
    truth = np.array([atom in world.facts for atom in known], dtype=bool)
    order = np.argsort(codes)
    candidates = {
        name: np.sort(codes_of(HerbrandBase(language), language, sorted(atoms)))
        for name, atoms in world.candidates.items()
    }
    return KnowledgeBase(theory, language, Evidence(codes[order], truth[order]), candidates=candidates)


def knowledge_bases() -> SearchStrategy[KnowledgeBase]:
    """A knowledge base of the library."""
    return worlds().map(knowledge_of)


def named_atoms(knowledge: KnowledgeBase, codes: np.ndarray) -> list[GroundAtom]:
    which, arguments = knowledge.base.decode(np.asarray(codes, dtype=np.int64))
    named = []
    for p, ids in zip(which.tolist(), arguments.tolist(), strict=True):
        predicate = knowledge.language.predicates[p]
        named.append((predicate.name, *(knowledge.language.constants[i] for i in ids[: predicate.arity])))
    return named


# graphs

Graph = tuple[list[int], list[list[tuple[int, ...]]]]
"""Codes that are asked for, and per rule the codes of its ground rules."""


def make_graph(dice: Random) -> Graph:
    """Any shape, also none at all; codes near each other or far apart."""
    scale = dice.choice((1, 7, 10**15))
    codes = [code * scale for code in range(dice.choice((6, 13)))]
    per_rule = []
    for _ in range(dice.choice((2, 1, 3, 0))):
        positions = dice.choice((3, 2, 1))
        rows = {tuple(dice.choice(codes) for _ in range(positions)) for _ in range(dice.randrange(7))}
        per_rule.append(sorted(rows))
    return [dice.choice(codes) for _ in range(dice.randrange(6))], per_rule


def graphs() -> SearchStrategy[Graph]:
    return dice().map(make_graph)
