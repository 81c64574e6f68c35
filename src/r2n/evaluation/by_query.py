"""Results query by query, and paired tests of two models."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import nan

import numpy as np
from jaxtyping import Bool, Float64, Int8, Int32, Int64
from scipy.special import expit

from r2n.data.herbrand import Codes, HerbrandBase
from r2n.evaluation.metrics import METRICS, Ranks, average_precision, levels

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
    """A rank for each query (ascending) and position, with its equals after it and before it."""

    atoms: Int64[np.ndarray, " ranks"]
    positions: Int8[np.ndarray, " ranks"]
    optimistic: Int32[np.ndarray, " ranks"]
    pessimistic: Int32[np.ndarray, " ranks"]

    @classmethod
    def from_ranks(cls, atoms: Codes, positions: np.ndarray, ranks: Ranks) -> "RankedQueries":
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
    """The curve of all queries, then those of predicates with a true query (if several), the most queries first."""
    from sklearn.metrics import precision_recall_curve  # takes seconds to import, and ranking needs none of it

    found = []
    for name, which in _parts(queries.atoms, base):
        logits, truth = queries.logits[which], queries.truth[which]
        if truth.any():
            precision, recall, _ = precision_recall_curve(truth, levels(logits))
            kept = np.unique(np.linspace(0, len(recall) - 1, min(points, len(recall))).round().astype(np.int64))[::-1]
            curve = tuple(recall[kept].tolist()), tuple(precision[kept].tolist())
            ap = average_precision(logits, truth)
            found.append(PrecisionRecall(name, *curve, ap, len(truth), int(truth.sum())))
    return found if len(found) != 2 else found[1:]


def rank_counts(queries: RankedQueries, base: HerbrandBase) -> list[RankCounts]:
    """Of all ranks, then of each predicate's, the one with the most ranks first."""
    bucket, last = np.searchsorted(LAST_RANKS, queries.realistic), len(LAST_RANKS)
    parts = ((name, np.bincount(bucket[own], minlength=last + 1)) for name, own in _parts(queries.atoms, base))
    found = [RankCounts(name, tuple(counts.tolist())) for name, counts in parts]
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


SEED = 0
WORK = 2**23  # numbers drawn for a test, about
AT_ONCE = 2**21
FEWEST, MOST_SWAPS, MOST_DRAWS = 199, 4_999, 1_999
COMPARED = ("mrr", "hits@1", "hits@10")  # of rankings

Values = Float64[np.ndarray, " queries"]


@dataclass(frozen=True, slots=True)
class PairedTest:
    """The second network's metric minus the first's over `queries`, its 95 % interval, and p."""

    metric: str
    queries: int
    difference: float
    low: float
    high: float
    p: float


def compare_queries(first: ByQuery | None, second: ByQuery | None) -> list[PairedTest]:
    """The tests for two results on the same queries, of either kind; none where something else was asked."""
    if isinstance(first, RankedQueries) and isinstance(second, RankedQueries):
        return compare_rankings(first, second)
    if isinstance(first, ClassifiedQueries) and isinstance(second, ClassifiedQueries):
        return compare_classifications(first, second)
    return []


def compare_rankings(first: RankedQueries, second: RankedQueries) -> list[PairedTest]:
    """Both are of the same queries and positions, in the same order."""
    _, query = np.unique(first.atoms, return_inverse=True)
    ranks = np.bincount(query).astype(np.float64)
    pair = first.realistic, second.realistic
    found = []
    for name in COMPARED:
        a, b = (np.bincount(query, METRICS[name].compute(part), len(ranks)) for part in pair)
        found.append(compare_sums(name, (b - a).astype(np.float64), ranks))
    return found


def compare_classifications(first: ClassifiedQueries, second: ClassifiedQueries) -> list[PairedTest]:
    """Both are of the same queries, in the same order."""
    truth, both = first.truth, (first.logits, second.logits)
    ones = np.ones(len(truth))
    found = [compare_average_precision(*both, truth)] if truth.any() else []
    brier = [(expit(part) - truth) ** 2 for part in both]
    loss = [np.logaddexp(0, np.where(truth, -part, part)) for part in both]
    return [*found, compare_sums("log_loss", loss[1] - loss[0], ones), compare_sums("brier", brier[1] - brier[0], ones)]


def compare_sums(metric: str, differences: Values, counts: Values) -> PairedTest:
    """For a metric that is a sum over queries divided by a count: the difference of each query's part of the sum."""
    n, total = len(differences), max(1.0, float(counts.sum()))
    difference = float(differences.sum() / total)
    if not differences.any():
        return PairedTest(metric, n, 0.0, 0.0, 0.0, 1.0)
    p = _p((differences[differences != 0],), lambda x, axis: x.sum(axis))  # the others are the same if swapped
    low, high = _interval((differences, counts), lambda d, c: d.sum(-1) / c.sum(-1))
    return PairedTest(metric, n, difference, low, high, p)


def compare_average_precision(first: Values, second: Values, truth: Bool[np.ndarray, " queries"]) -> PairedTest:
    """Networks that score on other scales are compared by ranks: what is swapped is an atom's rank among all."""
    from scipy.stats import rankdata  # takes a second to import

    a, b = rankdata(levels(first)), rankdata(levels(second))
    if np.array_equal(a, b):
        return PairedTest("ap", len(truth), 0.0, 0.0, 0.0, 1.0)

    def difference(x: np.ndarray, y: np.ndarray, true: np.ndarray = truth, axis: int = -1) -> np.ndarray:
        return np.asarray(average_precisions(y, true) - average_precisions(x, true))

    p = _p((a, b), difference)
    low, high = _interval((a, b, truth), difference)
    return PairedTest("ap", len(truth), float(difference(a, b)), low, high, p)


def average_precisions(scores: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Average precision along the last axis, many at once; equal scores are one threshold. NaN where none is true."""
    order = np.argsort(-scores, axis=-1)
    ordered = np.take_along_axis(scores, order, -1)
    hits = np.take_along_axis(np.broadcast_to(truth, scores.shape), order, -1)
    positions = np.arange(scores.shape[-1])
    is_last = np.ones(scores.shape, bool)  # of those that score the same
    is_last[..., :-1] = ordered[..., 1:] != ordered[..., :-1]
    last = np.where(is_last, positions, len(positions))
    last = np.minimum.accumulate(last[..., ::-1], axis=-1)[..., ::-1]
    precision = np.take_along_axis(np.cumsum(hits, axis=-1) / (positions + 1), last, -1)
    with np.errstate(invalid="ignore"):
        return np.asarray((precision * hits).sum(-1) / hits.sum(-1))


def _p(data: tuple[np.ndarray, ...], statistic: Callable[..., np.ndarray]) -> float:
    """By a permutation test; one query alone could as well have been swapped."""
    if (n := len(data[0])) < 2:
        return 1.0
    from scipy.stats import permutation_test

    times, batch = _times(n, MOST_SWAPS), _at_once(n)
    found = permutation_test(
        data, statistic, permutation_type="samples", vectorized=True, n_resamples=times, batch=batch, rng=SEED
    )
    return min(1.0, float(found.pvalue))


def _interval(data: tuple[np.ndarray, ...], statistic: Callable[..., np.ndarray]) -> tuple[float, float]:
    """The interval of the statistic in 95 of 100 draws of the queries; NaN for one query alone.

    A draw without a true atom says nothing, and is left out: scipy's bootstrap would give NaN for all.
    """
    n, generator = len(data[0]), np.random.default_rng(SEED)
    if n < 2:
        return nan, nan
    left, found = _times(n, MOST_DRAWS), []
    while left > 0:
        drawn = generator.integers(n, size=(min(left, _at_once(n)), n))
        found.append(statistic(*(part[drawn] for part in data)))
        left -= len(drawn)
    low, high = np.nanquantile(np.concatenate(found), (0.025, 0.975)).tolist()
    return low, high


def _times(n: int, most: int) -> int:
    return int(np.clip(WORK // max(1, n), FEWEST, most))


def _at_once(n: int) -> int:
    return max(1, AT_ONCE // max(1, n))
