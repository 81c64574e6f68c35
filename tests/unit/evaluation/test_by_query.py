"""Results query by query: curves and counts, and paired tests of two networks on the same queries."""

from math import isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from r2n.evaluation import by_query
from r2n.evaluation.by_query import (
    LAST_RANKS,
    POOLED,
    ClassifiedQueries,
    RankedQueries,
    average_precisions,
    compare_average_precision,
    compare_classifications,
    compare_rankings,
    compare_sums,
    precision_recall,
    rank_counts,
)
from r2n.evaluation.metrics import Ranks
from r2n.evaluation.report import classify
from tests.examples import at_most
from tests.oracles import metrics
from tests.oracles.paired import Pairs, mean_difference, share_at_least
from tests.unit.evaluation.three_countries import BASE, code, evidence, ranked, scorer

LABELLED = {
    "locatedIn(italy, europe)": True,
    "locatedIn(italy, asia)": False,
    "locatedIn(chad, africa)": True,
    "large(chad)": True,
    "large(japan)": False,
    "on(asia, earth)": False,
}
SCORES = {"locatedIn(italy, europe)": 2.0, "locatedIn(chad, africa)": -1.0, "large(japan)": 1.0}


def test_a_classification_keeps_its_logits_and_stays_small_as_json() -> None:
    queries = evidence(LABELLED)
    report = classify(scorer(SCORES), queries, BASE)
    assert isinstance(report.by_query, ClassifiedQueries)
    assert report.by_query.atoms.tolist() == queries.atoms.tolist()
    assert report.by_query.logits[queries.atoms == code("locatedIn(chad, africa)")].tolist() == [-1.0]
    assert "by_query" not in report.to_dict()
    assert report.to_dict()["metrics"]["ap"] == report.metrics["ap"]


def test_a_ranking_keeps_a_rank_for_each_query_and_position_in_order() -> None:
    """Whatever is scored at once: the order is that of atoms and positions."""
    queries = evidence({"locatedIn(japan, asia)": True, "locatedIn(italy, europe)": True, "large(chad)": True})
    score = scorer({"locatedIn(italy, asia)": 3, "locatedIn(italy, europe)": 2, "locatedIn(japan, europe)": 2})
    for memory in (1, 2**20):
        kept = ranked(score, queries, memory=memory).by_query
        assert isinstance(kept, RankedQueries)
        names = BASE.names(kept.atoms)
        found = dict(zip(zip(names, kept.positions.tolist(), strict=True), kept.realistic.tolist(), strict=True))
        assert found == {
            ("locatedIn(italy, europe)", 0): 1.5,
            ("locatedIn(italy, europe)", 1): 2.0,
            ("locatedIn(japan, asia)", 0): 2.5,
            ("locatedIn(japan, asia)", 1): 2.5,
            ("large(chad)", 0): 2.0,
        }
        assert kept.optimistic.dtype == np.int32
        assert [*zip(kept.atoms, kept.positions, strict=True)] == sorted(zip(kept.atoms, kept.positions, strict=True))


def test_curves_are_pooled_first_and_of_predicates_with_a_true_query() -> None:
    queries = evidence(LABELLED)
    kept = classify(scorer(SCORES), queries, BASE).by_query
    assert isinstance(kept, ClassifiedQueries)
    curves = precision_recall(kept, BASE)
    expected = [(POOLED, 6, 3), ("locatedIn", 3, 2), ("large", 2, 1)]
    assert [(curve.name, curve.queries, curve.true) for curve in curves] == expected
    located = curves[1]  # the surest is true, then come a false and a true one at once, or one after the other
    assert located.recall == (0.0, 0.5, 0.5, 1.0)
    assert located.precision == pytest.approx((1.0, 1.0, 0.5, 2 / 3))


def test_one_predicate_alone_has_one_curve_and_nothing_has_none() -> None:
    queries = evidence({"large(chad)": True, "large(japan)": False})
    kept = classify(scorer({}), queries, BASE).by_query
    assert isinstance(kept, ClassifiedQueries)
    assert [curve.name for curve in precision_recall(kept, BASE)] == ["large"]
    false = ClassifiedQueries(kept.atoms, np.zeros(2, bool), kept.logits)
    assert precision_recall(false, BASE) == []
    empty = np.zeros(0, np.int64)
    assert precision_recall(ClassifiedQueries(empty, np.zeros(0, bool), np.zeros(0)), BASE) == []
    assert rank_counts(RankedQueries.from_ranks(empty, empty, Ranks.pooled([])), BASE) == []


@at_most(60, "scikit-learn is slow on small arrays")
@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=40), st.integers(2, 12))
def test_a_curve_is_as_good_as_its_average_precision(labelled: list[tuple[int, bool]], points: int) -> None:
    """All points give the area; thinned ones begin and end where the whole curve does."""
    logits, truth = np.array([float(a) for a, _ in labelled]), np.array([b for _, b in labelled])
    atoms = np.full(len(truth), code("large(chad)"), np.int64)
    queries = ClassifiedQueries(atoms, truth, logits)
    if not truth.any():
        assert precision_recall(queries, BASE) == []
        return
    (curve,) = precision_recall(queries, BASE)
    area = sum((b - a) * p for a, b, p in zip(curve.recall[:-1], curve.recall[1:], curve.precision[1:], strict=True))
    assert area == pytest.approx(average_precision_score(truth, logits))
    assert curve.ap == pytest.approx(area)
    (thin,) = precision_recall(queries, BASE, points)
    assert len(thin.recall) <= points
    assert (thin.recall[0], thin.recall[-1]) == (curve.recall[0], curve.recall[-1])
    assert list(thin.recall) == sorted(thin.recall)
    assert thin.ap == curve.ap


@given(st.lists(st.tuples(st.integers(1, 200), st.integers(0, 3)), min_size=1, max_size=40))
def test_ranks_are_counted_as_by_hand(drawn: list[tuple[int, int]]) -> None:
    best = np.array([float(a) for a, _ in drawn])
    worst = best + [b for _, b in drawn]
    atoms = np.where(np.arange(len(drawn)) % 3 == 0, code("large(chad)"), code("on(asia, earth)"))
    queries = RankedQueries.from_ranks(atoms.astype(np.int64), np.zeros(len(drawn), np.int64), Ranks(best, worst))
    expected: dict[str, list[int]] = {}
    for i, rank_ in enumerate(((best + worst) / 2).tolist()):
        bucket = sum(rank_ > last for last in LAST_RANKS)
        for name in (POOLED, "large" if i % 3 == 0 else "on"):
            expected.setdefault(name, [0] * (len(LAST_RANKS) + 1))[bucket] += 1
    found = {part.name: list(part.counts) for part in rank_counts(queries, BASE)}
    assert found == (expected if len(expected) == 3 else {"large": expected["large"]})
    assert all(part.ranks == sum(part.counts) for part in rank_counts(queries, BASE))


SMALL = st.integers(-3, 3).map(float)


def classified(logits: np.ndarray, truth: np.ndarray) -> ClassifiedQueries:
    return ClassifiedQueries(np.arange(len(truth)), truth, logits.astype(np.float64))


def ranks_of(atoms: list[int], positions: list[int], ranks: list[float]) -> RankedQueries:
    both = np.array(ranks, np.float64)
    return RankedQueries.from_ranks(np.array(atoms, np.int64), np.array(positions, np.int64), Ranks(both, both))


@at_most(30, "the bootstrap draws 2,000 times for each")
@given(st.lists(st.tuples(SMALL, SMALL), min_size=2, max_size=8))
def test_p_is_that_of_all_swaps(pairs: list[tuple[float, float]]) -> None:
    values = np.array(pairs)
    found = compare_sums("m", values[:, 1] - values[:, 0], np.ones(len(pairs)))
    assert found.difference == pytest.approx(mean_difference(pairs))
    assert found.p == pytest.approx(share_at_least(pairs, mean_difference))
    assert found.low <= found.difference + 1e-9
    assert found.difference <= found.high + 1e-9
    assert found.queries == len(pairs)


@at_most(20, "the bootstrap draws 2,000 times for each")
@given(st.lists(st.tuples(SMALL, SMALL, st.booleans()), min_size=2, max_size=7))
def test_p_of_average_precision_swaps_places(drawn: list[tuple[float, float, bool]]) -> None:
    first, second = (np.array([item[i] for item in drawn]) for i in (0, 1))
    truth = [item[2] for item in drawn]
    if not any(truth):
        return

    def places(scores: np.ndarray) -> list[float]:
        return [sum(scores < s) + (sum(scores == s) + 1) / 2 for s in scores]

    def difference(pairs: Pairs) -> float:
        a, b = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        return metrics.average_precision(b, truth) - metrics.average_precision(a, truth)

    pairs = list(zip(places(first), places(second), strict=True))
    found = compare_average_precision(first, second, np.array(truth))
    assert found.difference == pytest.approx(difference(pairs))
    assert found.p == pytest.approx(share_at_least(pairs, difference))


@at_most(60, "scikit-learn is slow on small arrays")
@given(st.lists(st.tuples(SMALL, st.booleans()), min_size=1, max_size=20))
def test_many_average_precisions_are_those_of_one_by_one(drawn: list[tuple[float, bool]]) -> None:
    scores, truth = np.array([a for a, _ in drawn]), np.array([b for _, b in drawn])
    both = np.stack([scores, -scores])
    found = average_precisions(both, truth)
    for row, value in zip(both, found, strict=True):
        assert isnan(value) if not truth.any() else value == pytest.approx(average_precision_score(truth, row))
    each = average_precisions(both, np.stack([truth, truth]))
    np.testing.assert_allclose(each, found)


def test_the_same_twice_differs_in_nothing() -> None:
    logits, truth = np.linspace(-2, 2, 9), np.arange(9) % 2 == 0
    tests = compare_classifications(classified(logits, truth), classified(logits.copy(), truth))
    assert [test.metric for test in tests] == ["ap", "log_loss", "brier"]
    ranks = (ranks_of([1, 1, 2], [0, 1, 0], [3, 1, 7]) for _ in range(2))
    for test in tests + compare_rankings(*ranks):
        assert (test.difference, test.low, test.high, test.p) == (0, 0, 0, 1)


def test_the_ranks_of_a_query_belong_together() -> None:
    """Two queries with two ranks each: four swaps, not sixteen, and each rank counts alike in the mean."""
    first = ranks_of([1, 1, 2, 2, 3], [0, 1, 0, 1, 0], [2, 2, 4, 4, 1])
    second = ranks_of([1, 1, 2, 2, 3], [0, 1, 0, 1, 0], [1, 1, 2, 2, 1])
    mrr, first_hits, tenth_hits = compare_rankings(first, second)
    assert mrr.queries == 3
    assert mrr.difference == pytest.approx((1 / 1 * 2 + 1 / 2 * 2 - 1 / 2 * 2 - 1 / 4 * 2) / 5)
    assert mrr.p == 0.5  # two queries differ: both for the second in one of four swaps, doubled
    assert first_hits.difference == pytest.approx(2 / 5)
    assert tenth_hits.p == 1


def test_chance_alone_is_seldom_taken_for_a_difference() -> None:
    """Of two networks of the same quality p is below 0.05 in about one of twenty trials, and the interval misses 0."""
    small = misses = 0
    for seed in range(40):
        generator = np.random.default_rng(seed)
        differences = generator.normal(size=25)
        found = compare_sums("m", differences, np.ones(25))
        small += found.p < 0.05
        misses += not found.low <= 0 <= found.high
    assert small <= 6
    assert misses <= 7


def test_few_or_no_queries() -> None:
    one = compare_sums("m", np.array([0.5]), np.ones(1))
    assert (one.difference, one.p) == (0.5, 1.0)
    assert isnan(one.low)
    assert isnan(one.high)
    none = compare_sums("m", np.zeros(0), np.zeros(0))
    assert (none.queries, none.difference, none.p) == (0, 0, 1)
    empty = compare_classifications(*(classified(np.zeros(0), np.zeros(0, bool)) for _ in range(2)))
    assert [test.metric for test in empty] == ["log_loss", "brier"]  # no atom is true: there is no ap
    assert [test.p for test in compare_rankings(ranks_of([], [], []), ranks_of([], [], []))] == [1, 1, 1]


def test_many_queries_cost_fewer_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_query, "WORK", 2**12)
    assert by_query._times(10, 9_999) == 409
    assert by_query._times(10**9, 9_999) == by_query.FEWEST
    assert by_query._times(0, 1_999) == 1_999
    assert by_query._at_once(10**9) == 1
