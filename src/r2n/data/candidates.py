"""Candidates: the atoms of a predicate that ground rules may hold, if not all of them.

The atoms that are labelled (evidence) or queries are candidates if there are true and false ones: else every candidate
would be true. More are given in tables, or found by blocking: pairs of constants whose texts share words.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from r2n.data.features import Features, bags_of_words
from r2n.data.herbrand import Codes, HerbrandBase, closed_atoms
from r2n.data.knowledge_base import Evidence, encode_facts
from r2n.data.tables import Table, read_facts
from r2n.errors import ConfigError, DataError, Location, nearest
from r2n.logic.language import Predicate
from r2n.logic.theory import Theory

MOST_PAIRS = 50_000_000


@dataclass(frozen=True, slots=True)
class Candidates:
    """Further candidates: the atoms in `tables`, whatever their truth, and pairs whose texts share words.

    `shared_words` is the least number of them; a word in more than the share `rarer_than` of the texts does not count.
    """

    tables: tuple[Table, ...] = ()
    shared_words: int | None = None
    rarer_than: float = 1.0

    def __post_init__(self) -> None:
        if self.shared_words is not None and self.shared_words < 1:
            raise ConfigError(f"shared_words is 1 or more, not {self.shared_words}")
        if not 0 < self.rarer_than <= 1:
            raise ConfigError(f"rarer_than is a share above 0 and up to 1, not {self.rarer_than}")


@dataclass(frozen=True, eq=False)
class CandidateSource:
    """Where a predicate's candidates come from, for facts added later; `notes`: rows that were read as headers."""

    options: Candidates
    given: Codes
    labelled: bool
    notes: tuple[str, ...] = ()


def candidate_sources(
    base: HerbrandBase,
    wanted: Mapping[str, Candidates],
    train: Evidence,
    queries: Mapping[str, Evidence],
    where: Location | None = None,
) -> dict[str, CandidateSource]:
    """Read the tables, and find for each predicate whether its labelled atoms and queries are all true."""
    found: dict[str, CandidateSource] = {}
    is_open = ~closed_atoms(base, train.atoms)  # atoms under a closed world have no label
    labels = {"the facts": Evidence(train.atoms[is_open], train.truth[is_open])}
    labels |= {f"the queries '{split}'": part for split, part in queries.items()}
    for name, options in wanted.items():
        names = [predicate.name for predicate in base.language.predicates]
        if name not in names:
            hint = nearest(name, names) or f"the predicates are: {', '.join(names)}"
            raise DataError(f"candidates are given for predicate '{name}', which does not exist", hint=hint)
        predicate = base.language.predicate(name)
        theory = Theory(base.language.domains, base.language.predicates)
        read = [read_facts(table, theory=theory) for table in options.tables]
        groups = [facts for part in read for facts in part.facts]
        other = next((facts for facts in groups if facts.predicate != name), None)
        if other is not None:
            what = f"a candidate of {other.predicate} among those of {name}"
            raise DataError(what, where=other.location(0), hint="give each predicate its own table")
        truths = ((what, part.truth[_rows_of(base, predicate, part.atoms)]) for what, part in labels.items())
        one_sided = next((what for what, truth in truths if truth.all() and len(truth)), None)
        if one_sided and not options.tables and options.shared_words is None:
            raise ConfigError(
                f"[candidates.{name}] leaves only atoms that are labelled or asked for, but {one_sided} of {name} are"
                " all true: to be a candidate would give the answer away",
                where=where,
                hint=f"give {name} tables or shared_words, or false atoms too, or leave out [candidates.{name}]",
            )
        given = np.unique(encode_facts(base, groups)[0].codes)
        notes = tuple(part.first.note for part in read if part.first is not None and part.first.is_header)
        found[name] = CandidateSource(options, given, one_sided is None, notes)
    return found


def find_candidates(
    base: HerbrandBase, sources: Mapping[str, CandidateSource], atoms: Codes, features: Mapping[str, Features]
) -> dict[str, Codes]:
    """The candidates of each predicate, as codes in ascending order; `atoms` (ascending) are labelled or asked for."""
    found: dict[str, Codes] = {}
    for name, source in sources.items():
        predicate = base.language.predicate(name)
        parts = [source.given]
        if source.labelled:
            parts.append(atoms[_rows_of(base, predicate, atoms)])
        if source.options.shared_words is not None:
            parts.append(_sharing_words(base, predicate, source.options, features))
        found[name] = np.unique(np.concatenate(parts))
    return found


def _rows_of(base: HerbrandBase, predicate: Predicate, codes: Codes) -> slice:
    """The slice of a predicate's atoms among codes in ascending order."""
    index = base.language.predicate_index(predicate.name)
    return slice(*np.searchsorted(codes, base.offsets[index : index + 2]))


def _sharing_words(
    base: HerbrandBase, predicate: Predicate, options: Candidates, features: Mapping[str, Features]
) -> Codes:
    """Pairs whose texts share words, by one product of sparse matrices."""
    if predicate.arity != 2:
        what = f"candidates by shared words are pairs, but {predicate.name} takes {predicate.arity} constants"
        raise ConfigError(what, hint="give its candidates in a table")
    first, second = (base.language.members(domain) for domain in predicate.domains)
    if not len(first) or not len(second):
        return np.zeros(0, np.int64)
    texts: list[list[str]] = []
    for domain in predicate.domains:  # the feature of each constant, else its name
        of_constant = {int(i): base.language.constants[i] for i in base.language.members(domain)}
        for part in features.values():
            own = zip(part.constants.tolist(), part.texts or (), strict=False)
            of_constant |= {constant: text for constant, text in own if constant in of_constant}
        texts.append(list(of_constant.values()))
    words = bags_of_words(texts[0] + texts[1], np.ones(len(first) + len(second), bool)).every
    left, right = words[: len(first)], words[len(first) :]
    common = np.maximum(*(np.asarray(part.mean(axis=0)).reshape(-1) for part in (left, right)))
    counted = np.flatnonzero(common <= options.rarer_than)
    left, right = left[:, counted], right[:, counted]
    pairs = int(np.asarray(left.sum(axis=0)).reshape(-1) @ np.asarray(right.sum(axis=0)).reshape(-1))
    if pairs > MOST_PAIRS:
        hint = "lower rarer_than, so that common words do not count"
        raise ConfigError(f"about {pairs:,} pairs of {predicate.name} share words, more than {MOST_PAIRS:,}", hint=hint)
    shared = (left @ right.T).tocoo()
    enough = shared.data >= (options.shared_words or 1)
    rows, columns = (axis[enough].astype(np.int64) for axis in shared.coords)
    return base.encode_columns(predicate, [first[rows], second[columns]])
