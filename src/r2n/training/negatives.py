"""Predictions -> a trained network: negative examples, made by corrupting facts within their domains.

A corruption puts another constant in one position of a fact. It is *typed*: the other constant comes from the
narrowest domain that the first one is in. It is never a training fact, and it is filtered by nothing else: to leave
out a corruption because a held-out split says it is true would tell the network the answer.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int64

from r2n.errors import ConfigError
from r2n.knowledge.closed_world import closed_atoms
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
                        np.broadcast_to(base.encode_columns(predicate, columns), (len(which), others.shape[1]))
                    )
    return _joined(rows, candidates, known)


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


def fact_corruptions(
    base: HerbrandBase,
    evidence: Evidence,
    *,
    positions: Sequence[int] | None = None,
    ask_closed: bool = False,
    samples: int | None = None,
    generator: np.random.Generator | None = None,
) -> tuple[Int64[np.ndarray, " rows"], Int64[np.ndarray, "rows candidates"]]:
    """Corruptions of the facts that training asks for, filtered by the training facts.

    Facts of open predicates are corrupted in `positions`. Those of closed predicates are left alone, or
    (`ask_closed`) corrupted in every position, since all that is no fact of theirs is false.
    """
    facts = evidence.atoms[evidence.truth]
    closed = closed_atoms(base, facts)
    options = {"samples": samples, "generator": generator}
    rows, candidates = corruptions(base, facts[~closed], facts, positions=positions, **options)
    if not ask_closed:
        return rows, candidates
    more_rows, more = corruptions(base, facts[closed], facts, **options)
    width = max(candidates.shape[1], more.shape[1])
    padded = [np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=-1) for part in (candidates, more)]
    return np.concatenate([rows, more_rows]), np.concatenate(padded)
