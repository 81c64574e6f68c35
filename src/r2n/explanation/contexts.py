"""A trained network, explained: where a rule helps and where it hurts, told by what the atoms have in common.

Of every mark that an atom may have (its predicate, the domain of a constant, a word of a constant's text, a constant)
and every rule, the atoms with and without the mark are compared: how many the rule helps, how many it hurts. A
difference is told only where drawing atoms blindly would hardly make it (Fisher's exact test, both sides), with all
comparisons of all rules in one family (Bonferroni): on noise nothing is told, in 99 of 100 cases.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float64, Int64
from scipy.sparse import csc_array, csr_array, hstack
from scipy.stats import hypergeom

from r2n.explanation.rule_records import Context
from r2n.knowledge.features import Features
from r2n.knowledge.herbrand import Codes, HerbrandBase
from r2n.knowledge.words import bags_of_words

FELT = 0.01  # of a probability: below, a change neither helps nor hurts
SUPPORT = 5  # atoms with a mark that feel the rule, and as many without it
LEVEL = 0.01
MOST = 4  # contexts of a rule

MarkKind = Literal["predicate", "domain", "word", "constant"]
_Part = tuple[MarkKind, list[str], csr_array]
Gains = Float64[np.ndarray, " atoms"]
"""How much more probable a rule makes the truth of each atom."""


@dataclass(frozen=True, eq=False)
class Marks:
    """What atoms have: `has[i, m]` is 1 where atom i has mark m, of this kind and name."""

    kinds: tuple[MarkKind, ...]
    names: tuple[str, ...]
    has: csc_array

    @classmethod
    def of(cls, base: HerbrandBase, codes: Codes, features: Mapping[str, Features]) -> "Marks":
        """The marks of atoms: those of a kind that is told sooner come first."""
        index, arguments = base.decode(codes)
        predicates, constants = base.language.predicates, base.language.constants
        parts: list[_Part] = [("predicate", [p.name for p in predicates], _indicators(index, len(predicates)))]
        names, has = _domains(base, index, arguments)
        parts.append(("domain", names, has))
        for part in features.values():
            names, has = _words(part, arguments, len(constants))
            parts.append(("word", names, has))
        parts.append(("constant", list(constants), _constants(arguments, len(constants))))
        kinds: list[MarkKind] = [kind for kind, names, _ in parts for _ in names]
        names = [name for _, names, _ in parts for name in names]
        everything = csc_array(hstack([matrix for _, _, matrix in parts], format="csc"), dtype=np.int64)
        used = np.flatnonzero(np.diff(everything.indptr) >= SUPPORT)
        return cls(tuple(kinds[m] for m in used), tuple(names[m] for m in used), csc_array(everything[:, used]))


def _indicators(number: Int64[np.ndarray, " atoms"], size: int) -> csr_array:
    return csr_array((np.ones(len(number)), (np.arange(len(number)), number)), shape=(len(number), size))


def _constants(arguments: Int64[np.ndarray, "atoms positions"], size: int) -> csr_array:
    """Which constants stand in each atom, once each."""
    rows, columns = np.nonzero(arguments >= 0)
    found = csr_array((np.ones(len(rows)), (rows, arguments[rows, columns])), shape=(len(arguments), size))
    found.data[:] = 1
    return found


def _domains(base: HerbrandBase, index: np.ndarray, arguments: np.ndarray) -> tuple[list[str], csr_array]:
    """Which part of a position's domain the constant there is in, where it has parts."""
    names, columns = [], [csr_array((len(index), 0))]
    for p, predicate in enumerate(base.language.predicates):
        for position, domain in enumerate(predicate.domains):
            for part in domain.parts:
                inside = index == p
                inside[inside] = base.place(part, arguments[inside, position]) >= 0
                names.append(f"{part.name} at position {position + 1} of {predicate.name}")
                columns.append(csr_array(inside[:, None].astype(np.float64)))
    return names, csr_array(hstack(columns, format="csr"))


def _words(features: Features, arguments: np.ndarray, constants: int) -> tuple[list[str], csr_array]:
    """Which words the texts of each atom's constants have."""
    if features.texts is None:
        return [], csr_array((len(arguments), 0))
    bags = bags_of_words(features.texts, np.ones(len(features), bool))
    row = np.full(constants + 1, -1, np.int64)
    row[features.constants] = np.arange(len(features))
    found = csr_array((len(arguments), len(bags.vocabulary)))
    for position in range(arguments.shape[1]):
        rows = row[arguments[:, position]]
        at = np.flatnonzero(rows >= 0)
        pick = csr_array((np.ones(len(at)), (at, rows[at])), shape=(len(arguments), len(features)))
        found = found + pick @ bags.known
    found = csr_array(found)
    found.data[:] = 1
    return [f"{word} ({features.domain.name})" for word in bags.vocabulary], found


def find_contexts(marks: Marks, gains: Mapping[str, Gains], *, most: int = MOST) -> dict[str, tuple[Context, ...]]:
    """For each rule, by name, the marks that part the atoms it helps from those it hurts, the surest first."""
    tested = {name: _tested(marks, gain) for name, gain in gains.items()}
    tests = sum(len(part.marks) for part in tested.values())
    return {name: _told(marks, part, tests)[:most] for name, part in tested.items()}


@dataclass(frozen=True, eq=False)
class _Tested:
    """Marks (by number) that were compared, how many atoms with and without them are helped and hurt, and p."""

    marks: Int64[np.ndarray, " marks"]
    helped: Int64[np.ndarray, " marks"]
    hurt: Int64[np.ndarray, " marks"]
    all_helped: int
    all_hurt: int
    p: Float64[np.ndarray, " marks"]
    same: Int64[np.ndarray, " marks"]


def _tested(marks: Marks, gain: Gains) -> _Tested:
    helped, hurt = gain > FELT, gain < -FELT
    helps, hurts = int(helped.sum()), int(hurt.sum())
    with_help, with_hurt = _count(marks, helped), _count(marks, hurt)
    size = with_help + with_hurt
    tried = np.flatnonzero((size >= SUPPORT) & (helps + hurts - size >= SUPPORT)) if helps and hurts else size[:0]
    drawn = hypergeom(helps + hurts, helps, size[tried])
    p = np.minimum(1.0, 2 * np.minimum(drawn.cdf(with_help[tried]), drawn.sf(with_help[tried] - 1)))
    same = _first_of_equals(marks, helped | hurt)[tried]
    return _Tested(tried, with_help[tried], with_hurt[tried], helps, hurts, p, same)


def _count(marks: Marks, which: Bool[np.ndarray, " atoms"]) -> Int64[np.ndarray, " marks"]:
    return np.asarray(marks.has.T @ which.astype(np.int64), np.int64)


def _first_of_equals(marks: Marks, felt: Bool[np.ndarray, " atoms"]) -> Int64[np.ndarray, " marks"]:
    """For each mark the first one that the same atoms have, among those that feel the rule: by a number for a set."""
    numbers = np.random.default_rng(0).integers(1, 2**62, len(felt)) * felt
    sums = np.asarray(marks.has.T @ numbers)  # wraps around, for equal sets alike
    _, first, back = np.unique(sums, return_index=True, return_inverse=True)
    return first[back]


def _told(marks: Marks, tested: _Tested, tests: int) -> tuple[Context, ...]:
    """What is sure enough; of marks that the same atoms have, the first."""
    p = np.minimum(1.0, tested.p * tests)
    found, seen = [], set()
    for i in np.lexsort((tested.marks, p)):
        if p[i] > LEVEL or tested.same[i] in seen:
            continue
        seen.add(tested.same[i])
        helped, hurt, mark = int(tested.helped[i]), int(tested.hurt[i]), int(tested.marks[i])
        found.append(
            Context(
                marks.kinds[mark],
                marks.names[mark],
                helped * tested.all_hurt > hurt * tested.all_helped,
                helped,
                hurt,
                tested.all_helped - helped,
                tested.all_hurt - hurt,
                float(p[i]),
            )
        )
    return tuple(found)
