"""What a report keeps of each query, and the curves and counts that come of it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from r2n.evaluation.by_query import (
    LAST_RANKS,
    POOLED,
    ClassifiedQueries,
    RankedQueries,
    precision_recall,
    rank_counts,
)
from r2n.evaluation.metrics import Ranks
from r2n.evaluation.ranking import EvaluationOptions, rank
from r2n.evaluation.report import classify
from tests.examples import at_most
from tests.unit.evaluation.three_countries import BASE, code, evidence, filtered, scorer

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
        kept = rank(score, queries, BASE, filtered(), EvaluationOptions(memory=memory)).by_query
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


def test_a_sample_keeps_what_was_asked() -> None:
    queries = evidence({"locatedIn(japan, asia)": True, "locatedIn(italy, europe)": True, "large(chad)": True})
    kept = rank(scorer({}), queries, BASE, filtered(), EvaluationOptions(sample=1, seed=3)).by_query
    assert isinstance(kept, RankedQueries)
    assert len(np.unique(kept.atoms)) == 1
    assert "by_query" not in rank(scorer({}), queries, BASE, filtered(), EvaluationOptions(sample=1)).to_dict()


def test_curves_are_pooled_first_and_of_predicates_with_a_true_query() -> None:
    queries = evidence(LABELLED)
    kept = classify(scorer(SCORES), queries, BASE).by_query
    assert isinstance(kept, ClassifiedQueries)
    curves = precision_recall(kept, BASE)
    assert [(curve.name, curve.queries, curve.true) for curve in curves] == [
        (POOLED, 6, 3),
        ("locatedIn", 3, 2),
        ("large", 2, 1),
    ]
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
    assert rank_counts(RankedQueries.of(empty, empty, Ranks.pooled([])), BASE) == []


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
    queries = RankedQueries.of(atoms.astype(np.int64), np.zeros(len(drawn), np.int64), Ranks(best, worst))
    expected: dict[str, list[int]] = {}
    for i, rank_ in enumerate(((best + worst) / 2).tolist()):
        bucket = sum(rank_ > last for last in LAST_RANKS)
        for name in (POOLED, "large" if i % 3 == 0 else "on"):
            expected.setdefault(name, [0] * (len(LAST_RANKS) + 1))[bucket] += 1
    found = {part.name: list(part.counts) for part in rank_counts(queries, BASE)}
    assert found == (expected if len(expected) == 3 else {"large": expected["large"]})
    assert all(part.ranks == sum(part.counts) for part in rank_counts(queries, BASE))
