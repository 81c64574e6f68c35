"""What a sample says: which queries are drawn, and how often the interval has the truth in it."""

from math import isnan, sqrt
from statistics import mean

import numpy as np
import pytest

from r2n.errors import DataError
from r2n.evaluation.metrics import Ranks, drawn, intervals, ranking_metrics


def test_a_sample_is_drawn_without_repetition_and_ascending() -> None:
    for seed in range(20):
        found = drawn(10, 4, seed).tolist()
        assert len(set(found)) == 4
        assert found == sorted(found)
        assert set(found) <= set(range(10))
    assert drawn(10, 4, 7).tolist() == drawn(10, 4, 7).tolist()
    assert len({tuple(drawn(10, 4, seed)) for seed in range(20)}) > 10
    assert drawn(3, 99, 0).tolist() == [0, 1, 2]
    assert drawn(0, 5, 0).tolist() == []


def test_a_sample_of_nothing_is_refused() -> None:
    with pytest.raises(DataError, match="a sample of -1 queries says nothing"):
        drawn(10, -1, 0)


def ranks(values: list[float]) -> Ranks:
    return Ranks(np.array(values, np.float64), np.array(values, np.float64))


def test_an_interval_by_hand() -> None:
    """Two sides of three of five queries: the spread is that of the queries' own means."""
    found = intervals(ranks([1, 2, 4, 1, 2, 2]), np.array([0, 0, 1, 1, 2, 2]), 3, 5)["mrr"]
    means = [0.75, 0.625, 0.5]
    spread = sqrt(sum((m - mean(means)) ** 2 for m in means) / (3 - 1) / 3 * (1 - 3 / 5))
    assert found == pytest.approx((mean(means) - 1.959964 * spread, mean(means) + 1.959964 * spread), abs=1e-6)


def test_sides_of_one_query_are_no_two_witnesses() -> None:
    """Two equal sides say no more than one: the interval is as wide."""
    once = intervals(ranks([1, 2, 4]), np.array([0, 1, 2]), 3, 100)
    twice = intervals(ranks([1, 2, 4, 1, 2, 4]), np.array([0, 1, 2, 0, 1, 2]), 3, 100)
    for name in once:
        assert twice[name] == pytest.approx(once[name])


def test_one_query_says_nothing_of_the_spread_and_none_nothing_at_all() -> None:
    assert all(isnan(bound) for bound in intervals(ranks([1, 2]), np.array([0, 0]), 1, 9)["mrr"])
    assert all(isnan(bound) for bound in intervals(ranks([]), np.zeros(0, np.int64), 5, 9)["hits@10"])


def test_intervals_have_the_truth_in_about_95_of_100_samples() -> None:
    """Queries of one or two sides, whose ranks hang together: 1,000 samples by fixed seeds, so no luck."""
    random = np.random.default_rng(0)
    population = 400
    sides = random.integers(1, 3, population)
    hard = random.geometric(0.2, population)
    of_query = [hard[i] + random.integers(0, 2, sides[i]) for i in range(population)]
    truth = ranking_metrics(np.concatenate(of_query).astype(np.float64))
    inside = dict.fromkeys(truth, 0)
    for seed in range(1000):
        chosen = drawn(population, 100, seed).tolist()
        units = np.repeat(np.arange(100), [len(of_query[i]) for i in chosen])
        found = intervals(ranks(np.concatenate([of_query[i] for i in chosen]).tolist()), units, 100, population)
        for name, (low, high) in found.items():
            inside[name] += low <= truth[name] <= high
    assert 935 <= inside.pop("mrr") <= 965
    for name, count in inside.items():  # shares near 0 or 1 are not so normal
        assert 910 <= count <= 975, name
