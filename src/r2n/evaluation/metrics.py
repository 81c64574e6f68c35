"""Metrics of rankings and of classifications, their registry, and samples of queries."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan, sqrt
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float, Float64, Int64
from scipy.special import expit

from r2n.errors import DataError

TOLERANCE = 1e-6  # eight times the spacing of single-precision numbers near 1


@dataclass(frozen=True, slots=True, eq=False)
class Ranks:
    """The rank of each true candidate, from 1, with its equals after it, before it, or half and half."""

    optimistic: Float64[np.ndarray, " batch"]
    pessimistic: Float64[np.ndarray, " batch"]

    @property
    def realistic(self) -> Float64[np.ndarray, " batch"]:
        """The mean of the two: the expected rank when equals are shuffled."""
        return (self.optimistic + self.pessimistic) / 2

    @classmethod
    def pooled(cls, parts: Sequence["Ranks"]) -> "Ranks":
        """All ranks of the parts; none where there is no part."""
        both = np.concatenate([np.zeros((2, 0)), *((part.optimistic, part.pessimistic) for part in parts)], axis=1)
        return cls(both[0], both[1])

    def __len__(self) -> int:
        return len(self.optimistic)


Scores = Float[np.ndarray, " atoms"]
Truth = Bool[np.ndarray, " atoms"]
Groups = Int64[np.ndarray, " atoms"]
Cells = tuple[Int64[np.ndarray, " _"], ...]
"""Cells of a table of scores: their rows, and their candidates."""


def ranks(
    scores: Float[np.ndarray, "rows candidates"],
    row: Int64[np.ndarray, " batch"],
    true: Int64[np.ndarray, " batch"],
    *,
    excluded: Cells | None = None,
    forbidden: Bool[np.ndarray, "rows candidates"] | None = None,
) -> Ranks:
    """The rank of the candidate `true[i]` among those of row `row[i]`; the scores are written over.

    Scores of a row are equal up to `TOLERANCE`. `excluded` cells are no candidates, but the true one
    always is. `forbidden` candidates stand below all others, and are equal among themselves.
    """
    _refuse_nan(scores)
    if len(true) and not 0 <= true.min() <= true.max() < scores.shape[1]:
        raise DataError(f"the true candidate of a row is not one of its {scores.shape[1]} candidates")
    own, margin = scores[row, true].astype(np.float64), _margins(scores)[row]
    most, least = own + margin, own - margin
    if excluded is not None:
        scores[excluded] = nan  # neither above nor equal to anything
    is_candidate = ~np.isnan(scores[row, true])
    below = np.zeros(len(scores), np.int64)
    if forbidden is not None:
        below = np.count_nonzero(forbidden & ~np.isnan(scores), axis=1)
        scores[forbidden] = nan
    above, equal = np.zeros(len(true)), -is_candidate.astype(np.float64)  # an equal of itself that is none
    for batch in _occurrences(row):
        others = scores if len(batch) == len(scores) else scores[row[batch]]
        above[batch] += np.count_nonzero(others > most[batch, None], axis=1)
        equal[batch] += np.count_nonzero(others >= least[batch, None], axis=1)
    equal -= above
    if forbidden is not None:
        is_last = forbidden[row, true]
        others = np.count_nonzero(~np.isnan(scores), axis=1)
        above = np.where(is_last, others[row], above)
        equal = np.where(is_last, below[row] - is_candidate, equal)
    return Ranks(1 + above, 1 + above + equal)


def _margins(scores: Float[np.ndarray, "rows candidates"]) -> Float64[np.ndarray, " rows"]:
    """By how much equal scores of each row may differ."""
    is_finite = np.isfinite(scores)
    largest = np.max(scores, axis=1, initial=1, where=is_finite)
    return TOLERANCE * np.maximum(largest, -np.min(scores, axis=1, initial=-1, where=is_finite)).astype(np.float64)


def _occurrences(row: Int64[np.ndarray, " batch"]) -> list[Int64[np.ndarray, " _"]]:
    """The first entry of each row, in the order of rows; then the second ones; and so on."""
    order = np.argsort(row, kind="stable")
    ordered = row[order]
    number = np.arange(len(row)) - np.searchsorted(ordered, ordered)
    by_number = np.argsort(number, kind="stable")
    return np.split(order[by_number], np.flatnonzero(np.diff(number[by_number])) + 1) if len(row) else []


def average_precision(scores: Scores, truth: Truth) -> float:
    """Average precision of all atoms pooled, as scikit-learn defines it: scores of one level are one threshold."""
    from sklearn.metrics import average_precision_score  # takes seconds to import, and ranking needs none of it

    _refuse_nan(scores)
    if not truth.any():
        return nan
    return float(average_precision_score(truth, levels(scores)))


def roc_auc_by_group(scores: Scores, truth: Truth, groups: Groups) -> Float64[np.ndarray, " _"]:
    """ROC-AUC inside each group, ascending; equal scores count one half. NaN where a group has one class only."""
    _refuse_nan(scores)
    level, group = levels(scores), np.unique(groups, return_inverse=True)[1]
    span = len(scores) + 1  # more than there are levels
    cells, cell = np.unique(group * span + level, return_inverse=True)  # the atoms of one group with one score
    true, false = np.bincount(cell, truth, len(cells)), np.bincount(cell, ~truth, len(cells))
    group = cells // span
    all_true, all_false = np.bincount(group, true), np.bincount(group, false)
    before_group = np.cumsum(all_false) - all_false
    below = np.cumsum(false) - false - before_group[group]
    right = np.bincount(group, true * (below + false / 2))
    pairs = all_true * all_false
    return np.divide(right, pairs, out=np.full(len(pairs), nan), where=pairs > 0)


def roc_auc_macro(scores: Scores, truth: Truth, groups: Groups) -> float:
    """The mean of the groups' ROC-AUC; groups with one class only are left out."""
    each = roc_auc_by_group(scores, truth, groups)
    return _mean(each[~np.isnan(each)])


def _by_surest(logits: Scores, truth: Truth, rows: Groups) -> tuple[Truth, Float64[np.ndarray, " judged"]]:
    """Which queries are of rows that are judged, those with one true query among false ones, and their predictions.

    The prediction is 1 for the query with the highest logit of its row, equal ones share it, and 0 for the others.
    """
    row = np.unique(rows, return_inverse=True)[1]
    count, true = np.bincount(row), np.bincount(row, truth)
    level = levels(logits)
    highest = np.zeros(len(count), np.int64)
    np.maximum.at(highest, row, level)
    is_surest = level == highest[row]
    judged = ((count > 1) & (true == 1))[row] & (rows >= 0)
    return judged, (is_surest / np.bincount(row, is_surest)[row])[judged]


def class_accuracy(logits: Scores, truth: Truth, groups: Groups, rows: Groups) -> float:
    """How often the most probable value of a row is the true one."""
    judged, predicted = _by_surest(logits, truth, rows)
    return _mean(predicted[truth[judged]])


def macro_f1(logits: Scores, truth: Truth, groups: Groups, rows: Groups) -> float:
    """The mean F1 over values: those that are true, or the most probable, in some row."""
    judged, predicted = _by_surest(logits, truth, rows)
    value, true = np.unique(groups[judged], return_inverse=True)[1], truth[judged].astype(np.float64)
    right, both = np.bincount(value, predicted * true), np.bincount(value, predicted + true)
    return _mean(2 * right[both > 0] / both[both > 0])


@dataclass(frozen=True, slots=True)
class Bin:
    """The predictions with probabilities in one interval: mean probability, share of true atoms, how many."""

    lower: float
    upper: float
    confidence: float
    accuracy: float
    count: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """Whether probabilities can be believed: Brier score, expected calibration error, bins, accuracy at one half."""

    accuracy: float
    brier: float
    ece: float
    bins: tuple[Bin, ...]


def calibration(probabilities: Scores, truth: Truth, bins: int = 10) -> Calibration:
    """Brier score, and expected calibration error over `bins` intervals of equal width, closed below (the last both).

    brier = mean (p - y)^2;  ece = sum over bins of (count / all) |mean p - mean y|.
    """
    _refuse_nan(probabilities)
    if bins < 1 or ((probabilities < 0) | (probabilities > 1)).any():
        raise DataError("calibration needs probabilities from 0 to 1, and at least one bin")
    which = np.minimum((probabilities * bins).astype(np.int64), bins - 1)
    count = np.bincount(which, minlength=bins)
    confidence, accuracy = (np.bincount(which, part, bins) / np.maximum(count, 1) for part in (probabilities, truth))
    gap = (count * np.abs(accuracy - confidence)).sum()
    found = zip(range(bins), confidence.tolist(), accuracy.tolist(), count.tolist(), strict=True)
    return Calibration(
        accuracy=_mean((probabilities > 0.5) == truth),
        brier=_mean((probabilities - truth) ** 2),
        ece=float(gap / len(truth)) if len(truth) else nan,
        bins=tuple(Bin(i / bins, (i + 1) / bins, c if n else nan, a if n else nan, n) for i, c, a, n in found),
    )


def levels(scores: Scores) -> Int64[np.ndarray, " atoms"]:
    """The level of each score, from 0: one holds a score and those above it that are equal to it, up to `TOLERANCE`."""
    distinct, level = np.unique(scores.astype(np.float64), return_inverse=True)
    count = len(distinct)
    above = np.searchsorted(distinct, distinct + _margins(distinct[None]), side="right")
    following = np.append(above, count)  # where the next level begins, if one begins here
    begins = np.zeros(count + 1, bool)
    begins[0] = True
    while not begins[count]:  # each time twice as far
        begins[following[begins]] = True
        following = following[following]
    return (np.cumsum(begins) - 1)[level]


def _mean(values: np.ndarray) -> float:
    return float(values.mean(dtype=np.float64)) if len(values) else nan


def _refuse_nan(scores: np.ndarray) -> None:
    if scores.size and np.isnan(scores.min()):  # the smallest of any that has a NaN is NaN
        wrong = int(np.isnan(scores).sum())
        hint = "look for the first NaN in the model; a NaN compared is always false and would pass unseen"
        raise DataError(f"{wrong:,} of {scores.size:,} scores are NaN, which has no rank", hint=hint)


Task = Literal["ranking", "classification", "functional"]
Compute = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of reports: its name, task and function; `upper` is its largest value.

    The function of a ranking maps realistic ranks to one value for each, and the metric is their mean. The function of
    a classification maps logits, truth and groups (those of `roc_auc_by_group`) to one number, and of a functional
    predicate also the row of each query, or -1: its first constants.
    """

    name: str
    task: Task
    compute: Compute
    upper: float = 1.0


METRICS: dict[str, Metric] = {}
"""All metrics by name, in the order in which reports show them. The first of a task is its main metric."""


def metric(name: str, task: Task, *, upper: float = 1.0) -> Callable[[Compute], Compute]:
    """Register a function as a metric: all reports of its task then compute and show it."""

    def register(compute: Compute) -> Compute:
        METRICS[name] = Metric(name, task, compute, upper)
        return compute

    return register


metric("ap", "classification")(lambda logits, truth, groups: average_precision(logits, truth))
metric("roc_auc_macro", "classification")(roc_auc_macro)
metric("accuracy", "classification")(lambda logits, truth, groups: _mean((logits > 0) == truth))
metric("class_accuracy", "functional")(class_accuracy)
metric("macro_f1", "functional")(macro_f1)
metric("pair_accuracy", "functional")(lambda logits, truth, groups, rows: _mean((logits > 0) == truth))
metric("brier", "classification")(lambda logits, truth, groups: _mean((expit(logits) - truth) ** 2))
metric("ece", "classification")(lambda logits, truth, groups: calibration(expit(logits), truth).ece)
metric("mrr", "ranking")(lambda ranks: 1 / ranks)


for k in (1, 3, 10):
    metric(f"hits@{k}", "ranking")(lambda ranks, k=k: (ranks <= k).astype(np.float64))


def ranking_metrics(ranks: Float64[np.ndarray, " batch"]) -> dict[str, float]:
    """All metrics of realistic ranks."""
    return {item.name: _mean(item.compute(ranks)) for item in METRICS.values() if item.task == "ranking"}


def classification_metrics(
    logits: Scores, truth: Truth, groups: Groups, rows: Groups | None = None
) -> dict[str, float]:
    """All metrics of labelled atoms; with `rows`, some of functional predicates, the accuracy is that of pairs."""
    found = dict[str, float]()
    for item in METRICS.values():
        if item.task == "classification" and (rows is None or item.name != "accuracy"):
            found[item.name] = item.compute(logits, truth, groups)
        if item.task == "functional" and rows is not None:
            found[item.name] = item.compute(logits, truth, groups, rows)
    return found


NORMAL_95 = 1.959963984540054  # the quantile at 0.975 of the standard normal distribution


def drawn(population: int, sample: int, seed: int) -> Int64[np.ndarray, " sample"]:
    """`sample` numbers below `population`, drawn without repetition, ascending; all if there are no more."""
    if sample < 1:
        raise DataError(f"a sample of {sample} queries says nothing", hint="take 1 or more")
    return np.sort(np.random.default_rng(seed).permutation(population)[:sample]).astype(np.int64)


def intervals(
    ranks: Ranks, units: Int64[np.ndarray, " batch"], sample: int, population: int
) -> dict[str, tuple[float, float]]:
    """For each metric of realistic ranks, an interval that has that of the population in 95 of 100 samples.

    The ranks of one unit (by number, below `sample`) were drawn together: the positions of a query. A metric is a ratio
    of two sums over units; the interval is normal, with the variance of its residuals, smaller by the share that was
    drawn. NaN if there is one unit alone.
    """
    found = {item.name: (nan, nan) for item in METRICS.values() if item.task == "ranking"}
    for item in map(METRICS.__getitem__, found if sample >= 2 and len(ranks) else ()):
        values = item.compute(ranks.realistic)
        sums, counts = np.bincount(units, values, sample), np.bincount(units, minlength=sample)
        mean = values.mean()
        residuals = sums - mean * counts
        variance = (residuals**2).sum() / (sample * (sample - 1)) * (1 - sample / population)
        half = NORMAL_95 * sqrt(variance) / counts.mean()
        found[item.name] = max(0.0, float(mean - half)), min(item.upper, float(mean + half))
    return found
