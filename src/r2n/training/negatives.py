"""Negative samples, made by corrupting facts within their domains.

A corruption puts another constant in one position of a fact. It is *typed*: the other constant comes from the
narrowest domain that the first one is in. It is never a training fact, and it is filtered by nothing else: leaving out
a corruption that a held-out split has as true would leak the answer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from r2n.data.herbrand import Codes, HerbrandBase, closed_atoms
from r2n.data.knowledge_base import Evidence, KnowledgeBase
from r2n.errors import ConfigError, counted
from r2n.logic.language import Domain, Language, Predicate
from r2n.options import SamplingOptions, TrainingOptions

MOST_LISTED = 50_000_000


@dataclass(frozen=True, eq=False)
class Negatives:
    """For each fact and corrupted position one row: the fact's code, and the codes of its negatives (-1: none)."""

    facts: Int64[np.ndarray, " rows"]
    atoms: Int64[np.ndarray, "rows negatives"]

    @classmethod
    def none(cls) -> "Negatives":
        """No fact is corrupted."""
        return cls(np.zeros(0, np.int64), np.zeros((0, 0), np.int64))

    @property
    def codes(self) -> Codes:
        """All negatives, sorted and distinct."""
        return np.unique(self.atoms[self.atoms >= 0])

    @classmethod
    def stacked(cls, parts: Sequence["Negatives"]) -> "Negatives":
        """The rows of all parts, one below the other."""
        if not parts:
            return cls.none()
        width = max(part.atoms.shape[1] for part in parts)
        padded = [np.pad(part.atoms, ((0, 0), (0, width - part.atoms.shape[1])), constant_values=-1) for part in parts]
        return cls(np.concatenate([part.facts for part in parts]), np.concatenate(padded))


def narrowest_domains(language: Language, domain: Domain) -> tuple[list[Domain], np.ndarray]:
    """The parts of a domain that have no parts, and for each constant (by id) the smallest that holds it, or -1."""
    leaves = sorted(_leaves(domain), key=lambda leaf: -len(language.members(leaf)))
    narrowest = np.full(len(language.constants), -1)
    for i, leaf in enumerate(leaves):  # the smallest last
        narrowest[language.members(leaf)] = i
    return leaves, narrowest


def _leaves(domain: Domain) -> list[Domain]:
    return list(dict.fromkeys(leaf for part in domain.parts for leaf in _leaves(part))) or [domain]


def corruptions(
    base: HerbrandBase,
    facts: Codes,
    known: Codes,
    *,
    positions: Sequence[int] | None = None,
    samples: int | None = None,
    generator: np.random.Generator | None = None,
) -> Negatives:
    """The corruptions of facts in `positions` (all by default; negative ones count from the end).

    All corruptions are listed, or `samples` of them drawn by `generator`, none twice. `known` are the training facts,
    which are no negatives.
    """
    arguments = base.decode(facts)[1]
    parts: list[Negatives] = []
    for predicate, position, which, members in corruption_groups(base, facts, positions):
        others = members[None, :]
        if samples is None or samples >= len(members):
            if len(which) * len(members) > MOST_LISTED:
                raise ConfigError(
                    f"{len(which):,} facts have {len(members):,} corruptions each, too many to list",
                    hint="draw a sample: set training.negatives to a number",
                )
        elif generator is None:
            raise ConfigError("sampled corruptions need a generator")
        elif len(which) * samples <= len(members):  # without a permutation of all members, which may be millions
            others = generator.choice(members, (len(which), samples), replace=False)
        else:
            first = generator.integers(len(members), size=(len(which), 1))
            others = generator.permutation(members)[(first + np.arange(samples)) % len(members)]
        columns = [arguments[which, p, None] for p in range(predicate.arity)]
        columns[position] = others
        codes = np.broadcast_to(base.encode_columns(predicate, columns), (len(which), others.shape[1]))
        parts.append(Negatives(facts[which], codes))
    found = Negatives.stacked(parts)
    found.atoms[np.isin(found.atoms, known)] = -1
    return found


def asked_positions(positions: Sequence[int] | None, arity: int) -> list[int]:
    """Those of `positions` (all by default; negative ones count from the end) that there are, in order."""
    return sorted({p % arity for p in (range(arity) if positions is None else positions) if -arity <= p < arity})


def corruption_groups(
    base: HerbrandBase, facts: Codes, positions: Sequence[int] | None
) -> Iterator[tuple[Predicate, int, np.ndarray, np.ndarray]]:
    """Facts (by index) corrupted in one position of a predicate by the members of one narrowest domain."""
    index, arguments = base.decode(facts)
    narrowest_in: dict[Domain, tuple[list[Domain], np.ndarray]] = {}
    for i in np.unique(index):
        predicate = base.language.predicates[i]
        for position in asked_positions(positions, predicate.arity):
            domain = predicate.domains[position]
            if domain not in narrowest_in:
                narrowest_in[domain] = narrowest_domains(base.language, domain)
            leaves, narrowest = narrowest_in[domain]
            of_fact = narrowest[arguments[:, position]]
            for number, leaf in enumerate(leaves):
                which = np.flatnonzero((index == i) & (of_fact == number))
                if len(which):
                    yield predicate, position, which, base.language.members(leaf)


def draw_negatives(
    base: HerbrandBase,
    evidence: Evidence,
    options: SamplingOptions,
    generator: np.random.Generator,
    facts: Codes | None = None,
) -> Negatives:
    """Negatives of the training facts (or of some `facts` among them), filtered by all training facts.

    Facts of open predicates are corrupted in the positions of the options, unless their labels are all that training
    asks for (`labels_only`); those of closed predicates are not, or (`ask_closed`) in every position.
    """
    known = evidence.facts
    return Negatives.stacked(
        [
            corruptions(base, part, known, positions=positions, samples=options.negatives, generator=generator)
            for part, positions in corrupted_facts(base, known if facts is None else facts, options)
        ]
    )


def count_negatives(base: HerbrandBase, evidence: Evidence, options: SamplingOptions) -> int:
    """An upper bound of the number of negatives of `draw_negatives`, without making them."""
    return sum(
        len(which) * min(options.negatives or len(members), len(members))
        for part, positions in corrupted_facts(base, evidence.facts, options)
        for _, _, which, members in corruption_groups(base, part, positions)
    )


def assumed_false(knowledge: KnowledgeBase, options: TrainingOptions) -> list[str]:
    """A warning for each unary predicate with true facts only: all its other atoms are asked as false."""
    base, evidence = knowledge.base, knowledge.evidence
    facts, is_asked = evidence.facts, not options.compares_facts and options.prior is None
    corrupted, positions = corrupted_facts(base, facts, options)[0]
    groups = corruption_groups(base, corrupted, positions) if is_asked else ()
    asked = {p.name: p for p, _, _, _ in groups if p.arity == 1 and not len(knowledge.false_facts(p))}
    others = "every other constant" if options.negatives is None else f"{options.negatives:,} other constants a fact"
    return [
        f"{name} has {counted(len(knowledge.facts(predicate)), 'true fact')} and no false one, so that training asks"
        f" {others} as false, those of queries among them: label some facts of it false (a column 'label' with 0) and"
        " name it in training.labels_only, and training asks these instead"
        for name, predicate in asked.items()
    ]


def labelled_shares(base: HerbrandBase, evidence: Evidence, prior: float) -> Float64[np.ndarray, " predicates"]:
    """The share of a predicate's true atoms that are labelled: 1, or if it has true facts only, by the prior."""
    index, shares = base.decode(evidence.atoms)[0], np.ones(len(base.shapes))
    for i, predicate in enumerate(base.language.predicates):
        truth = evidence.truth[index == i]
        if predicate.arity == 1 and not predicate.closed and truth.any() and truth.all():
            shares[i] = min(1.0, len(truth) / (prior * base.shapes[i][0]))
    return shares


def corrupted_facts(
    base: HerbrandBase, facts: Codes, options: SamplingOptions
) -> list[tuple[Codes, tuple[int, ...] | None]]:
    """Facts that are corrupted, and in which positions."""
    closed = closed_atoms(base, facts)
    names = [predicate.reciprocal_of or predicate.name for predicate in base.language.predicates]
    labels_only = np.isin(names, options.labels_only)[base.decode(facts)[0]]
    parts: list[tuple[Codes, tuple[int, ...] | None]] = [(facts[~closed & ~labels_only], options.corrupted_positions)]
    return [*parts, (facts[closed], None)] if options.ask_closed else parts
