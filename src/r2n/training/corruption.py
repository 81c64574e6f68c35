"""Predictions -> a trained network: negative examples, made by corrupting facts within their domains.

A corruption puts another constant in one position of a fact. It is *typed*: the other constant comes from the
narrowest domain that the first one is in. It is never a training fact, and it is filtered by nothing else: to leave
out a corruption because a held-out split says it is true would tell the network the answer.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int64

from r2n.errors import ConfigError
from r2n.knowledge.herbrand import Codes, HerbrandBase
from r2n.knowledge.knowledge_base import Evidence
from r2n.logic.language import Domain, Language

MOST_CANDIDATES = 50_000_000


def narrowest_domains(language: Language, domain: Domain) -> tuple[list[Domain], np.ndarray]:
    """The parts of a domain that have no parts, and for each constant (by id) the smallest that holds it, or -1."""
    leaves = sorted(_leaves(domain), key=lambda leaf: -len(language.members(leaf)))
    narrowest = np.full(len(language.constants), -1)
    for i, leaf in enumerate(leaves):  # the smallest last
        narrowest[language.members(leaf)] = i
    return leaves, narrowest


def _leaves(domain: Domain) -> list[Domain]:
    found = [leaf for part in domain.parts for leaf in _leaves(part)] if domain.parts else [domain]
    return list(dict.fromkeys(found))


def corruptions(
    base: HerbrandBase,
    facts: Codes,
    known: Codes,
    *,
    positions: Sequence[int] | None = None,
    samples: int | None = None,
    generator: np.random.Generator | None = None,
) -> tuple[Int64[np.ndarray, " rows"], Int64[np.ndarray, "rows candidates"]]:
    """For each fact and corrupted position one row: the fact's code, and the codes of its corruptions (-1: none).

    `positions` are those to corrupt (all by default; negative ones count from the end). All corruptions are
    listed, or `samples` of them drawn with replacement by `generator`. `known` are the training facts.
    """
    index, arguments = base.decode(facts)
    rows: list[np.ndarray] = []
    candidates: list[np.ndarray] = []
    for i in np.unique(index):
        predicate = base.language.predicates[i]
        chosen = range(predicate.arity) if positions is None else positions
        for position in sorted({p % predicate.arity for p in chosen if -predicate.arity <= p < predicate.arity}):
            leaves, narrowest = narrowest_domains(base.language, predicate.domains[position])
            of_fact = narrowest[arguments[:, position]]
            for number, leaf in enumerate(leaves):
                which = np.flatnonzero((index == i) & (of_fact == number))
                if len(which):
                    members = base.language.members(leaf)
                    others = _others(members, len(which), samples, generator)
                    columns = [arguments[which, p, None] for p in range(predicate.arity)]
                    columns[position] = others
                    rows.append(facts[which])
                    candidates.append(
                        np.broadcast_to(base.encode_columns(predicate, columns), others_shape(which, others))
                    )
    return _joined(rows, candidates, known)


def others_shape(which: np.ndarray, others: np.ndarray) -> tuple[int, int]:
    """The shape of the candidates of some facts."""
    return len(which), others.shape[1]


def _others(members: np.ndarray, facts: int, samples: int | None, generator: np.random.Generator | None) -> np.ndarray:
    """Constants to put in the place of the fact's own: all of them, or a sample for each fact."""
    if samples is None:
        if facts * len(members) > MOST_CANDIDATES:
            raise ConfigError(
                f"{facts:,} facts have {len(members):,} corruptions each, too many to list",
                hint="draw a sample: set training.negatives to a number",
            )
        return members[None, :]
    if generator is None:
        raise ConfigError("sampled corruptions need a generator")
    return generator.choice(members, size=(facts, samples))


def _joined(rows: list[np.ndarray], candidates: list[np.ndarray], known: Codes) -> tuple[np.ndarray, np.ndarray]:
    """All rows under each other, padded to one width, without training facts."""
    if not rows:
        return np.zeros(0, np.int64), np.zeros((0, 0), np.int64)
    width = max(part.shape[1] for part in candidates)
    padded = [np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=-1) for part in candidates]
    joined = np.concatenate(padded)
    joined[np.isin(joined, known)] = -1
    return np.concatenate(rows), joined


def with_corruptions(base: HerbrandBase, evidence: Evidence, *, positions: Sequence[int] | None = None) -> Evidence:
    """The evidence under a local closed world: every typed corruption of a fact that is no fact itself is false.

    A constant without any fact in a position's domain keeps its atoms unknown.
    """
    facts = evidence.atoms[evidence.truth]
    open_facts = facts[~is_closed(base, facts)]
    _, candidates = corruptions(base, open_facts, facts, positions=positions)
    false = np.unique(candidates[candidates >= 0])
    atoms = np.union1d(evidence.atoms, false)
    return Evidence(atoms, np.isin(atoms, facts))


def is_closed(base: HerbrandBase, codes: Codes) -> np.ndarray:
    """Whether each atom is of a predicate that is closed as a whole; bool (atoms,)."""
    closed = np.array([predicate.closed for predicate in base.language.predicates], bool)
    return closed[base.decode(codes)[0]]
