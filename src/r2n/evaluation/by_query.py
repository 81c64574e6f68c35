"""Predictions -> numbers: what a report rests on, query by query, and its curves and counts by predicate."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int8, Int32, Int64

from r2n.evaluation.metrics import Ranks, average_precision, levels
from r2n.knowledge.herbrand import Codes, HerbrandBase

POOLED = "all predicates"
MOST_POINTS = 200
LAST_RANKS = (1, 3, 10, 100)
"""Ranks are counted up to these, and beyond the last."""


@dataclass(frozen=True, eq=False)
class ClassifiedQueries:
    """The queries of a classification (ascending), their truth, and the logits that they were given."""

    atoms: Codes
    truth: Bool[np.ndarray, " atoms"]
    logits: Float64[np.ndarray, " atoms"]


@dataclass(frozen=True, eq=False)
class RankedQueries:
    """A rank for each query (ascending) and position asked: with its equals placed behind it, and before it."""

    atoms: Int64[np.ndarray, " ranks"]
    positions: Int8[np.ndarray, " ranks"]
    optimistic: Int32[np.ndarray, " ranks"]
    pessimistic: Int32[np.ndarray, " ranks"]

    @classmethod
    def of(cls, atoms: Codes, positions: np.ndarray, ranks: Ranks) -> "RankedQueries":
        """In order, and in as little memory as it needs."""
        order = np.lexsort((positions, atoms))
        both = (part[order].astype(np.int32) for part in (ranks.optimistic, ranks.pessimistic))
        return cls(atoms[order], positions[order].astype(np.int8), *both)

    @property
    def realistic(self) -> Float64[np.ndarray, " ranks"]:
        """The mean of the two."""
        return (self.optimistic.astype(np.float64) + self.pessimistic) / 2


ByQuery = ClassifiedQueries | RankedQueries


@dataclass(frozen=True, slots=True)
class PrecisionRecall:
    """The precision at each recall, from the surest atom on, of a predicate's queries or of all; points are thinned."""

    name: str
    recall: tuple[float, ...]
    precision: tuple[float, ...]
    ap: float
    queries: int
    true: int


@dataclass(frozen=True, slots=True)
class RankCounts:
    """How many ranks of a predicate, or of all, are up to each of `LAST_RANKS` and above the one before, and beyond."""

    name: str
    counts: tuple[int, ...]

    @property
    def ranks(self) -> int:
        """How many there are."""
        return sum(self.counts)


def precision_recall(
    queries: ClassifiedQueries, base: HerbrandBase, points: int = MOST_POINTS
) -> list[PrecisionRecall]:
    """The curve of all queries, then those of the predicates, the one with the most queries first.

    A predicate of which no query is true has none; nor has one that stands alone a second one.
    """
    found = [
        _precision_recall(name, queries.logits[which], queries.truth[which], points)
        for name, which in _parts(queries.atoms, base)
        if queries.truth[which].any()
    ]
    return found if len(found) != 2 else found[1:]


def _precision_recall(name: str, logits: np.ndarray, truth: np.ndarray, points: int) -> PrecisionRecall:
    from sklearn.metrics import precision_recall_curve  # takes seconds to import, and ranking needs none of it

    precision, recall, _ = precision_recall_curve(truth, levels(logits))
    kept = np.unique(np.linspace(0, len(recall) - 1, min(points, len(recall))).round().astype(np.int64))[::-1]
    ap = average_precision(logits, truth)
    return PrecisionRecall(
        name, tuple(recall[kept].tolist()), tuple(precision[kept].tolist()), ap, len(truth), int(truth.sum())
    )


def rank_counts(queries: RankedQueries, base: HerbrandBase) -> list[RankCounts]:
    """Of all ranks, then of each predicate's, the one with the most ranks first."""
    bucket = np.searchsorted(LAST_RANKS, queries.realistic)
    found = [
        RankCounts(name, tuple(np.bincount(bucket[which], minlength=len(LAST_RANKS) + 1).tolist()))
        for name, which in _parts(queries.atoms, base)
    ]
    return found if len(found) != 2 else found[1:]


def _parts(atoms: Codes, base: HerbrandBase) -> Iterator[tuple[str, np.ndarray]]:
    """All atoms, then those of each predicate, the most frequent first."""
    if not len(atoms):
        return
    yield POOLED, np.arange(len(atoms))
    index = base.decode(atoms)[0]
    order = np.argsort(index, kind="stable")
    predicates, starts = np.unique(index[order], return_index=True)
    parts = np.split(order, starts[1:])
    for i in sorted(range(len(parts)), key=lambda i: -len(parts[i])):
        yield base.language.predicates[int(predicates[i])].name, parts[i]
