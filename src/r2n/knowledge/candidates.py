"""What is known: which atoms of a predicate ground rules may hold, where not all are worth it.

The atoms that are labelled (evidence) or asked for (queries) are always candidates. More are given in tables, or found
by blocking: pairs of constants whose texts share words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from r2n.errors import ConfigError, DataError, nearest
from r2n.knowledge.encoding import encode_facts
from r2n.knowledge.features import Features
from r2n.knowledge.herbrand import Codes, HerbrandBase
from r2n.knowledge.tables import Facts, Table
from r2n.knowledge.words import bags_of_words
from r2n.logic.language import Domain, Language, Predicate

MOST_PAIRS = 50_000_000


@dataclass(frozen=True, slots=True)
class Candidates:
    """Candidate atoms of a predicate besides those labelled or asked for.

    `tables` hold atoms of the predicate; what they say of their truth is not read. `shared_words`: all pairs of
    constants whose texts (features of their domain, else their names) share so many words; a word in more than the
    share `rarer_than` of a domain's texts does not count.
    """

    tables: tuple[Table, ...] = ()
    shared_words: int | None = None
    rarer_than: float = 1.0

    def __post_init__(self) -> None:
        """Check what can be told without reading."""
        if self.shared_words is not None and self.shared_words < 1:
            raise ConfigError(f"shared_words is 1 or more, not {self.shared_words}")
        if not 0 < self.rarer_than <= 1:
            raise ConfigError(f"rarer_than is a share above 0 and up to 1, not {self.rarer_than}")


def find_candidates(
    base: HerbrandBase,
    wanted: Mapping[str, Candidates],
    given: Mapping[str, Sequence[Facts]],
    always: Sequence[Codes],
    features: Mapping[str, Features],
) -> dict[str, Codes]:
    """The candidates of each predicate, as codes in ascending order.

    `given` are the facts read from its tables, `always` the atoms labelled or asked for.
    """
    found: dict[str, Codes] = {}
    for name, options in wanted.items():
        predicate = _predicate(base.language, name)
        parts = [_of_predicate(base, predicate, codes) for codes in always]
        for facts in given.get(name, ()):
            if facts.predicate != name:
                raise DataError(
                    f"a candidate of {facts.predicate} among those of {name}",
                    where=facts.location(0),
                    hint="give each predicate its own table",
                )
        parts.append(encode_facts(base, given.get(name, ()))[0].codes)
        if options.shared_words is not None:
            parts.append(_sharing_words(base, predicate, options, features))
        found[name] = np.unique(np.concatenate(parts))
    return found


def widened(base: HerbrandBase, candidates: Mapping[str, Codes], atoms: Codes) -> dict[str, Codes]:
    """The candidates with more atoms (ascending) that are labelled or asked for."""
    return {
        name: np.union1d(codes, _of_predicate(base, base.language.predicate(name), atoms))
        for name, codes in candidates.items()
    }


def _predicate(language: Language, name: str) -> Predicate:
    names = [predicate.name for predicate in language.predicates]
    if name not in names:
        hint = nearest(name, names) or f"the predicates are: {', '.join(names)}"
        raise DataError(f"candidates are given for predicate '{name}', which does not exist", hint=hint)
    return language.predicate(name)


def _of_predicate(base: HerbrandBase, predicate: Predicate, codes: Codes) -> Codes:
    index = base.language.predicate_index(predicate.name)
    start, end = np.searchsorted(codes, base.offsets[index : index + 2])
    return codes[start:end]


def _sharing_words(
    base: HerbrandBase, predicate: Predicate, options: Candidates, features: Mapping[str, Features]
) -> Codes:
    """Pairs whose texts share words, by one product of sparse matrices."""
    if predicate.arity != 2:
        raise ConfigError(
            f"candidates by shared words are pairs, but {predicate.name} takes {predicate.arity} constants",
            hint="give its candidates in a table",
        )
    first, second = (base.language.members(domain) for domain in predicate.domains)
    if not len(first) or not len(second):
        return np.zeros(0, np.int64)
    texts = [_texts(base.language, domain, features) for domain in predicate.domains]
    words = bags_of_words(texts[0] + texts[1], np.ones(len(first) + len(second), bool)).every
    left, right = words[: len(first)], words[len(first) :]
    common = np.maximum(*(np.asarray(part.mean(axis=0)).reshape(-1) for part in (left, right)))
    counted = np.flatnonzero(common <= options.rarer_than)
    left, right = left[:, counted], right[:, counted]
    pairs = int(np.asarray(left.sum(axis=0)).reshape(-1) @ np.asarray(right.sum(axis=0)).reshape(-1))
    if pairs > MOST_PAIRS:
        raise ConfigError(
            f"about {pairs:,} pairs of {predicate.name} share words, more than {MOST_PAIRS:,}",
            hint="lower rarer_than, so that common words do not count",
        )
    shared = (left @ right.T).tocoo()
    enough = shared.data >= (options.shared_words or 1)
    rows, columns = (axis[enough].astype(np.int64) for axis in shared.coords)
    return base.encode_columns(predicate, [first[rows], second[columns]])


def _texts(language: Language, domain: Domain, features: Mapping[str, Features]) -> list[str]:
    """The text of each constant of a domain: its feature, or where there is none its name."""
    texts = {int(i): language.constants[i] for i in language.members(domain)}
    for part in features.values():
        if part.texts is not None:
            own = zip(part.constants.tolist(), part.texts, strict=True)
            texts |= {constant: text for constant, text in own if constant in texts}
    return list(texts.values())
