"""Predictions -> numbers: what a sample of the queries says of all of them."""

from math import sqrt

import numpy as np
from jaxtyping import Int64

from r2n.errors import DataError
from r2n.evaluation.metrics import HITS, Ranks

NORMAL_95 = 1.959963984540054  # the quantile at 0.975 of the standard normal distribution


def drawn(population: int, sample: int, seed: int) -> Int64[np.ndarray, " sample"]:
    """So many of a population's numbers, drawn without repetition, ascending; all where there are no more."""
    if sample < 1:
        raise DataError(f"a sample of {sample} queries says nothing", hint="take 1 or more")
    return np.sort(np.random.default_rng(seed).permutation(population)[:sample]).astype(np.int64)


def intervals(
    ranks: Ranks, units: Int64[np.ndarray, " batch"], sample: int, population: int
) -> dict[str, tuple[float, float]]:
    """For each metric of realistic ranks, an interval that has that of the whole population in 95 of 100 samples.

    The ranks of one unit (by number, below `sample`) were drawn together: the sides of a query. A metric is a ratio of
    two sums over units, of values and of ranks; the interval is normal, with the variance of its residuals, smaller by
    the share that was drawn. NaN where one unit alone says nothing of the spread.
    """
    realistic = ranks.realistic
    values = {"mrr": 1 / realistic} | {f"hits@{k}": realistic <= k for k in HITS}
    return {name: _interval(value.astype(np.float64), units, sample, population) for name, value in values.items()}


def _interval(values: np.ndarray, units: np.ndarray, sample: int, population: int) -> tuple[float, float]:
    if sample < 2 or not len(values):
        return float("nan"), float("nan")
    sums, counts = np.bincount(units, values, sample), np.bincount(units, minlength=sample)
    mean = values.mean()
    residuals = sums - mean * counts
    variance = (residuals**2).sum() / (sample * (sample - 1)) * (1 - sample / population)
    half = NORMAL_95 * sqrt(variance) / counts.mean()
    return max(0.0, float(mean - half)), min(1.0, float(mean + half))
