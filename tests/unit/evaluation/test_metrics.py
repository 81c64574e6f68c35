"""What metrics refuse, and what they make of nothing and of ties; `properties/test_metrics.py` has their oracles."""

from math import inf, isnan, nan

import numpy as np
import pytest

from r2n.errors import DataError
from r2n.evaluation.metrics import (
    Ranks,
    average_precision,
    calibration,
    ranking_metrics,
    ranks,
    roc_auc_by_group,
    roc_auc_macro,
)

NO_SCORES, NO_TRUTH, NO_GROUPS = np.zeros(0), np.zeros(0, bool), np.zeros(0, np.int64)


def one_row(scores: list[float], true: int) -> tuple[float, float, float]:
    found = ranks(np.array([scores]), np.array([0]), np.array([true]))
    return found.optimistic[0], found.realistic[0], found.pessimistic[0]


def test_scores_that_differ_in_the_last_bits_are_equal() -> None:
    assert one_row([5e-4, 5.0001e-4, 6e-4], true=0) == (2, 2.5, 3)  # what is left of sums of about 1
    for scale in (1.0, 1e30):
        assert one_row([3 * scale, 2.9999999 * scale, 2.99998 * scale, -inf], true=1) == (1, 1.5, 2)
        assert one_row([1 * scale, 0.9999999 * scale, -2 * scale, inf], true=0) == (2, 2.5, 3)


def test_nan_is_refused() -> None:
    wrong = np.array([[1.0, nan], [nan, 2.0]])
    with pytest.raises(DataError, match=r"^2 of 4 scores are NaN, which has no rank\n  look for the first NaN"):
        ranks(wrong, np.array([0, 1]), np.array([0, 1]))
    truth = np.array([True, False])
    for metric in (average_precision, calibration):
        with pytest.raises(DataError, match="1 of 2 scores are NaN"):
            metric(wrong[0], truth)
    with pytest.raises(DataError, match="1 of 2 scores are NaN"):
        roc_auc_by_group(wrong[0], truth, np.zeros(2, np.int64))


@pytest.mark.parametrize("true", [-1, 2])
def test_a_true_candidate_outside_its_row_is_refused(true: int) -> None:
    with pytest.raises(DataError, match="the true candidate of a row is not one of its 2 candidates"):
        ranks(np.zeros((2, 2)), np.array([0, 1]), np.array([0, true]))


def test_nothing_gives_nan_and_no_warning() -> None:
    nothing = Ranks.pooled([])
    assert len(nothing) == 0
    assert all(isnan(value) for value in ranking_metrics(nothing.realistic).values())
    assert len(ranks(np.zeros((0, 3)), NO_GROUPS, NO_GROUPS, forbidden=np.zeros((0, 3), bool))) == 0
    assert isnan(average_precision(NO_SCORES, NO_TRUTH))
    assert isnan(average_precision(np.zeros(4), np.zeros(4, bool)))
    assert isnan(roc_auc_macro(NO_SCORES, NO_TRUTH, NO_GROUPS))
    empty = calibration(NO_SCORES, NO_TRUTH, bins=2)
    assert isnan(empty.brier)
    assert isnan(empty.ece)
    assert [part.count for part in empty.bins] == [0, 0]


@pytest.mark.parametrize(("probability", "bins"), [(-0.1, 10), (1.1, 10), (0.5, 0)])
def test_calibration_refuses_what_is_no_probability(probability: float, bins: int) -> None:
    with pytest.raises(DataError, match="calibration needs probabilities from 0 to 1, and at least one bin"):
        calibration(np.array([probability]), np.array([True]), bins)
