"""Metrics on cases small enough to be worked out by hand, and what they refuse."""

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


FIRST = np.array([0])


def one_row(
    scores: list[float], true: int, allowed: list[bool] | None = None, forbidden: list[bool] | None = None
) -> tuple[float, float, float]:
    excluded = None if allowed is None else np.nonzero(~np.array([allowed]))
    refused = None if forbidden is None else np.array([forbidden])
    found = ranks(np.array([scores]), FIRST, np.array([true]), excluded=excluded, forbidden=refused)
    return found.optimistic[0], found.realistic[0], found.pessimistic[0]


def test_equals_stand_before_and_behind_and_half_and_half() -> None:
    assert one_row([3.0, 1.0, 1.0, 1.0, 0.0], true=2) == (2, 3, 4)
    assert one_row([3.0, 1.0, 1.0, 0.0], true=1) == (2, 2.5, 3)


def test_what_is_not_allowed_does_not_count_but_the_true_one_always_does() -> None:
    assert one_row([3.0, 1.0, 1.0, 1.0], true=1, allowed=[False, False, False, True]) == (1, 1.5, 2)
    assert one_row([3.0, 1.0], true=1, allowed=[False, False]) == (1, 1, 1)


def test_scores_that_differ_in_the_last_bits_are_equal() -> None:
    assert one_row([5e-4, 5.0001e-4, 6e-4], true=0) == (2, 2.5, 3)  # what is left of sums of about 1
    for scale in (1.0, 1e30):
        assert one_row([3 * scale, 2.9999999 * scale, 2.99998 * scale, -inf], true=1) == (1, 1.5, 2)
        assert one_row([1 * scale, 0.9999999 * scale, -2 * scale, inf], true=0) == (2, 2.5, 3)


def test_saturated_scores_are_no_first_place() -> None:
    """The trap of optimistic ties: a thousand sigmoids that are all exactly 1."""
    found = ranks(np.ones((1, 1000)), FIRST, FIRST)
    assert found.realistic[0] == 500.5
    assert ranking_metrics(found.realistic)["hits@10"] == 0


def test_a_true_one_that_is_forbidden_stands_among_the_forbidden_as_their_equal() -> None:
    assert one_row([3.0, 1.0, -inf, 0.0], true=0, forbidden=[True, True, False, False]) == (3, 3.5, 4)
    assert one_row([3.0, 1.0, 0.0], true=0, forbidden=[True, True, True], allowed=[False, False, True]) == (1, 1.5, 2)
    assert one_row([3.0, 1.0], true=0, forbidden=[True, False], allowed=[True, False]) == (1, 1, 1)


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


def test_ranking_metrics_by_hand() -> None:
    found = ranking_metrics(np.array([1.0, 1.5, 3.0, 10.0, 11.0]))
    assert found == {
        "mrr": pytest.approx((1 + 2 / 3 + 1 / 3 + 1 / 10 + 1 / 11) / 5),
        "hits@1": 0.2,
        "hits@3": 0.6,
        "hits@10": 0.8,
    }


def test_nothing_gives_nan_and_no_warning() -> None:
    nothing = Ranks.pooled([])
    assert len(nothing) == 0
    assert all(isnan(value) for value in ranking_metrics(nothing.realistic).values())
    assert len(ranks(np.zeros((0, 3)), NO_GROUPS, NO_GROUPS, forbidden=np.zeros((0, 3), bool))) == 0
    assert isnan(average_precision(NO_SCORES, NO_TRUTH))
    assert isnan(roc_auc_macro(NO_SCORES, NO_TRUTH, NO_GROUPS))
    empty = calibration(NO_SCORES, NO_TRUTH, bins=2)
    assert isnan(empty.brier)
    assert isnan(empty.ece)
    assert [part.count for part in empty.bins] == [0, 0]


def test_average_precision_by_hand() -> None:
    scores, truth = np.array([4.0, 3.0, 2.0, 1.0]), np.array([True, False, True, False])
    assert average_precision(scores, truth) == pytest.approx((1 / 1 + 2 / 3) / 2)
    assert average_precision(np.zeros(4), truth) == 0.5  # equal scores are one threshold: the share of true atoms
    assert average_precision(np.array([inf, inf, -inf, -inf]), truth) == pytest.approx(0.5 * 0.5 + 0.5 * 0.5)
    assert isnan(average_precision(scores, np.zeros(4, bool)))
    assert average_precision(scores, np.ones(4, bool)) == 1


def test_macro_roc_auc_is_blind_to_what_pooled_average_precision_sees() -> None:
    """Why Countries must report both: each region ordered rightly inside, but not against the other."""
    scores = np.array([9.0, 8.0, 1.0, 0.0])
    truth = np.array([True, False, True, False])
    regions = np.array([0, 0, 1, 1])
    assert roc_auc_macro(scores, truth, regions) == 1
    assert average_precision(scores, truth) < 0.9


def test_calibration_by_hand() -> None:
    found = calibration(np.array([0.0, 0.2, 0.5, 0.9, 1.0]), np.array([False, True, False, True, True]), bins=2)
    assert found.brier == pytest.approx((0 + 0.64 + 0.25 + 0.01 + 0) / 5)
    assert [(part.lower, part.upper, part.count) for part in found.bins] == [(0, 0.5, 2), (0.5, 1, 3)]
    assert [part.confidence for part in found.bins] == pytest.approx([0.1, 0.8])
    assert [part.accuracy for part in found.bins] == pytest.approx([0.5, 2 / 3])
    assert found.ece == pytest.approx(2 / 5 * 0.4 + 3 / 5 * (0.8 - 2 / 3))


@pytest.mark.parametrize(("probability", "bins"), [(-0.1, 10), (1.1, 10), (0.5, 0)])
def test_calibration_refuses_what_is_no_probability(probability: float, bins: int) -> None:
    with pytest.raises(DataError, match="calibration needs probabilities from 0 to 1, and at least one bin"):
        calibration(np.array([probability]), np.array([True]), bins)
