"""Ranking on problems small enough to be worked out by hand; how it is asked; how much memory it takes."""

import tracemalloc
from collections.abc import Callable, Sequence
from math import isnan, nan, sqrt
from typing import Any

import numpy as np
import pytest

from r2n.data.herbrand import HerbrandBase
from r2n.data.knowledge_base import Evidence
from r2n.errors import DataError
from r2n.evaluation.ranking import (
    BYTES_BY_CODE,
    BYTES_IN_A_ROW,
    MEMORY,
    EvaluationOptions,
    Filter,
    ForbiddenCandidates,
    in_order,
    rank,
    row_memory,
)
from r2n.logic.language import Domain, Language, Predicate
from tests.unit.evaluation.three_countries import BASE, REGION, code, codes, evidence, filtered, scorer


def test_every_position_is_asked_among_its_domain() -> None:
    score = scorer({"locatedIn(italy, asia)": 3, "locatedIn(italy, europe)": 2, "locatedIn(japan, europe)": 2})
    report = rank(score, evidence({"locatedIn(italy, europe)": True}), BASE, filtered(), split="test")
    # which country is in europe: italy and japan tie, 1.5; where is italy: behind asia, 2
    assert report.metrics == {"mrr": pytest.approx((1 / 1.5 + 1 / 2) / 2), "hits@1": 0, "hits@3": 1, "hits@10": 1}
    assert report.ties["optimistic"]["mrr"] == pytest.approx((1 + 1 / 2) / 2)
    assert report.ties["pessimistic"]["mrr"] == 0.5
    assert report.split == "test"
    assert report.calibration is None


def test_other_known_facts_are_no_candidates_whatever_their_score() -> None:
    score = scorer({"locatedIn(italy, asia)": 3, "locatedIn(italy, europe)": 2})
    queries = evidence({"locatedIn(italy, europe)": True})
    assert rank(score, queries, BASE, filtered(), EvaluationOptions(sides=(1,))).metrics["mrr"] == 0.5
    assert (
        rank(score, queries, BASE, filtered("locatedIn(italy, asia)"), EvaluationOptions(sides=(1,))).metrics["mrr"]
        == 1
    )
    unsorted = np.array([code("locatedIn(italy, europe)"), code("locatedIn(italy, asia)"), 0, 0])
    assert rank(score, queries, BASE, Filter(unsorted, ()), EvaluationOptions(sides=(1,))).metrics["mrr"] == 1
    elsewhere = codes("locatedIn(japan, asia)", "large(italy)")  # known, but not in these rows
    assert rank(score, queries, BASE, Filter(elsewhere, ()), EvaluationOptions(sides=(1,))).metrics["mrr"] == 0.5
    around = evidence(
        {"locatedIn(chad, africa)": True, "locatedIn(japan, asia)": True}
    )  # rows before and after italy's
    between = rank(
        scorer({"locatedIn(japan, europe)": 9}),
        around,
        BASE,
        filtered("locatedIn(italy, europe)"),
        EvaluationOptions(sides=(1,)),
    )
    assert between.metrics["mrr"] == pytest.approx((1 / 2 + 1 / 2.5) / 2)


def test_true_queries_are_known_and_false_ones_are_not_asked() -> None:
    score = scorer({"locatedIn(italy, asia)": 3, "locatedIn(italy, europe)": 2, "locatedIn(italy, africa)": 9})
    queries = {"locatedIn(italy, europe)": True, "locatedIn(italy, asia)": True}
    report = rank(
        score, evidence(queries | {"locatedIn(italy, africa)": False}), BASE, filtered(), EvaluationOptions(sides=(1,))
    )
    assert report.protocol["queries"] == report.protocol["ranks"] == 2
    assert report.metrics["mrr"] == 0.5  # both behind africa, neither behind the other


def test_the_predicates_are_told_apart() -> None:
    score = scorer({"large(chad)": -1, "locatedIn(chad, africa)": 1})
    report = rank(score, evidence({"large(chad)": True, "locatedIn(chad, africa)": True}), BASE, filtered())
    assert list(report.per_predicate) == ["locatedIn", "large"]
    assert report.per_predicate["large"] == {
        "ranks": 1,
        "mrr": pytest.approx(1 / 3),
        "hits@1": 0,
        "hits@3": 1,
        "hits@10": 1,
    }
    assert report.per_predicate["locatedIn"]["mrr"] == 1
    assert report.metrics["mrr"] == pytest.approx((1 + 1 + 1 / 3) / 3)


def test_what_has_no_choice_is_left_out_and_counted() -> None:
    """The trap of trivial rows: a sure rank 1, averaged in, lifts the rest."""
    queries = evidence({"on(asia, earth)": True})
    report = rank(scorer({"on(africa, earth)": 1}), queries, BASE, filtered())
    assert report.metrics["mrr"] == pytest.approx(1 / 2.5)
    assert report.protocol["ranks_left_out_for_a_domain_of_one"] == 1
    assert report.protocol["ranks_left_out_with_no_other_candidate"] == 0
    assert not report.nothing_to_rank
    queries = evidence({"on(asia, earth)": True, "large(chad)": True, "large(italy)": True})
    alone = rank(scorer({}), queries, BASE, filtered("on(africa, earth)", "on(europe, earth)", "large(japan)"))
    assert isnan(alone.metrics["mrr"])
    assert alone.by_query is not None
    assert alone.protocol["ranks"] == len(alone.by_query.atoms) == 0
    assert alone.protocol["ranks_left_out_with_no_other_candidate"] == 3
    some = rank(scorer({"on(africa, earth)": 1}), queries, BASE, filtered("on(europe, earth)", "large(japan)"))
    assert some.metrics["mrr"] == some.per_predicate["on"]["mrr"] == 0.5
    assert (some.protocol["ranks"], some.protocol["ranks_left_out_with_no_other_candidate"]) == (1, 2)
    assert list(some.per_predicate) == ["on"]


def test_a_ranking_without_a_choice_says_so_instead_of_numbers() -> None:
    """A domain of one constant, all other candidates known, or no query at all."""
    queries = evidence({"on(asia, earth)": True})
    for report in (
        rank(scorer({}), queries, BASE, filtered(), EvaluationOptions(sides=(1,))),
        rank(scorer({}), queries, BASE, filtered("on(africa, earth)", "on(europe, earth)")),
        rank(scorer({}), queries, BASE, filtered(), EvaluationOptions(sides=(1,), sample=1)),
    ):
        assert report.nothing_to_rank == "no query has a candidate besides its answer: there is nothing to rank"
        assert repr(report) == f"Report on 'queries' (ranking, 1 query): {report.nothing_to_rank}"
        assert set(report.to_dict()["metrics"].values()) == {None}
        assert report.to_dict()["protocol"]["nothing_to_rank"] == report.nothing_to_rank
    none = rank(scorer({}), Evidence.empty(), BASE, filtered())
    assert none.nothing_to_rank == "there are no queries: there is nothing to rank"


def test_the_protocol_says_how_it_was_asked() -> None:
    queries = evidence({"locatedIn(italy, europe)": True})
    assert rank(scorer({}), queries, BASE, filtered()).protocol == {
        "task": "ranking",
        "ties": "realistic: the mean of the best and the worst rank among equal logits, those that differ by at most"
        " 1e-06 of the largest in the row, or of 1",
        "filter": "other true atoms of queries are no candidates",
        "candidates": "all constants of the position's domain",
        "sides": "all positions",
        "queries": 1,
        "ranks": 2,
        "ranks_left_out_with_no_other_candidate": 0,
        "ranks_left_out_for_a_domain_of_one": 0,
    }
    assert (
        rank(scorer({}), queries, BASE, filtered(), EvaluationOptions(sides=(0, 1))).protocol["sides"]
        == "positions 0, 1"
    )


def test_a_side_that_no_predicate_has_is_refused() -> None:
    with pytest.raises(DataError, match=r"no predicate has a position 2\n  sides are positions counted from 0, or "):
        rank(scorer({}), evidence({"large(italy)": True}), BASE, filtered(), EvaluationOptions(sides=(2,)))
    report = rank(
        scorer({}), evidence({"large(italy)": True}), BASE, filtered(), EvaluationOptions(sides=(1,))
    )  # locatedIn has it
    assert report.protocol["ranks"] == 0


def test_a_side_counted_from_the_end_is_the_last_of_each_predicate() -> None:
    called: list[int] = []

    def score(codes: np.ndarray) -> np.ndarray:
        called.extend(codes.ravel().tolist())
        return np.zeros(codes.shape)

    queries = evidence({"large(italy)": True, "locatedIn(italy, europe)": True})
    rank(score, queries, BASE, filtered(), EvaluationOptions(sides=(-1,)))
    names = BASE.names(np.unique(called))
    assert {name for name in names if name.startswith("locatedIn")} == {
        name for name in names if name.startswith("locatedIn(italy, ")
    }
    assert sum(name.startswith("large") for name in names) > 1


def test_a_row_is_scored_once_and_whole() -> None:
    called: list[np.ndarray] = []

    def score(asked: np.ndarray) -> np.ndarray:
        called.append(asked)
        return np.zeros(len(asked), np.float32)  # single precision is taken too

    queries = evidence(
        {"locatedIn(italy, europe)": True, "locatedIn(italy, asia)": True, "locatedIn(chad, asia)": True}
    )
    rank(score, queries, BASE, filtered(), EvaluationOptions(sides=(1,)))
    row = [
        f"locatedIn({country}, {region})" for country in ("chad", "italy") for region in ("africa", "asia", "europe")
    ]
    assert [BASE.names(part) for part in called] == [row]
    called.clear()
    rank(score, queries, BASE, filtered(), EvaluationOptions(sides=(1,), memory=1))
    assert [len(part) for part in called] == [3, 3]  # italy's row once, for both of its queries


@pytest.mark.parametrize(("at_once", "expected"), [(1, [(1, 4), (2, 4), (3, 4), (4, 4)]), (99, [(2, 4), (4, 4)])])
def test_progress_reaches_the_whole(at_once: int, expected: list[tuple[int, int]]) -> None:
    told: list[tuple[int, int]] = []
    queries = evidence({"locatedIn(italy, europe)": True, "locatedIn(chad, asia)": True})
    rank(
        scorer({}),
        queries,
        BASE,
        filtered(),
        EvaluationOptions(memory=at_once * BYTES_BY_CODE),
        progress=lambda phase, *step: told.append(step),
    )
    assert told == expected


def test_memory_is_bounded_by_a_batch_and_not_by_the_queries() -> None:
    size, number, at_once = 3000, 1500, 2**16
    thing = Domain("thing")
    names = [f"t{i}" for i in range(size)]
    base = HerbrandBase(Language.build([thing], [Predicate("near", (thing, thing))], {"thing": names}))
    random = np.random.default_rng(0)
    atoms = np.unique(random.integers(0, base.size, number))
    most = 0

    def score(asked: np.ndarray) -> np.ndarray:
        nonlocal most
        most = max(most, len(asked))
        return (asked % 1009).astype(np.float64)

    tracemalloc.start()
    try:
        rank(
            score,
            Evidence(atoms, np.ones(len(atoms), bool)),
            base,
            Filter(atoms, ()),
            EvaluationOptions(memory=at_once * BYTES_BY_CODE),
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most <= at_once
    assert peak < 8 * 8 * at_once  # 4 MB; all rows at once would take 36 MB an array


class ByRow:
    """Scores by the row: what a function says of (predicate, position, constants)."""

    def __init__(self, rows: Callable[[int, int, np.ndarray], np.ndarray]) -> None:
        self.rows = rows

    def __call__(self, asked: np.ndarray) -> np.ndarray:
        raise AssertionError("codes were written out")


def test_rows_are_asked_by_their_constants_each_once_as_many_as_memory_holds() -> None:
    called: list[tuple[int, int, list[list[str]]]] = []
    constants = BASE.language.constants

    def rows(predicate: int, position: int, given: np.ndarray) -> np.ndarray:
        names = [[constants[c] for i, c in enumerate(row) if i != position] for row in given]
        called.append((predicate, position, names))
        return np.zeros((len(given), 3), np.float32)

    queries = evidence(
        {"locatedIn(italy, europe)": True, "locatedIn(italy, asia)": True, "locatedIn(chad, asia)": True}
    )
    report = rank(ByRow(rows), queries, BASE, filtered())
    assert called == [(0, 0, [["asia"], ["europe"]]), (0, 1, [["chad"], ["italy"]])]
    called.clear()
    one_at_a_time = rank(ByRow(rows), queries, BASE, filtered(), EvaluationOptions(memory=3 * BYTES_IN_A_ROW))
    assert called == [(0, 0, [["asia"]]), (0, 0, [["europe"]]), (0, 1, [["chad"]]), (0, 1, [["italy"]])]
    assert one_at_a_time.to_dict() == report.to_dict()


def test_rows_at_once_take_a_small_share_of_what_may_be_taken() -> None:
    assert [row_memory(allowed) for allowed in (None, 80, 10**12, 0)] == [MEMORY, 10, MEMORY, 1]


def test_rows_of_another_shape_are_refused() -> None:
    with pytest.raises(DataError, match=r"the model gave scores of shape \(3, 1\) for 1 rows of 3 candidates"):
        rank(ByRow(lambda *_: np.zeros((3, 1))), evidence({"locatedIn(italy, europe)": True}), BASE, filtered())


def test_nan_in_a_row_is_refused_with_the_name_of_its_atom() -> None:
    message = r"the score of locatedIn\(japan, europe\) is NaN, and 0 others of 3\n  the model is broken"
    with pytest.raises(DataError, match=message):
        rank(
            ByRow(lambda *_: np.array([[0.0, 1.0, nan]])),
            evidence({"locatedIn(italy, europe)": True}),
            BASE,
            filtered(),
        )


def test_forbidden_candidates_stand_below_the_others_and_the_report_says_so() -> None:
    queries = evidence({"locatedIn(italy, europe)": True})
    score = scorer({"locatedIn(italy, asia)": 3, "locatedIn(italy, europe)": 2, "locatedIn(italy, africa)": 1})
    asia, europe = (
        BASE.language.members(REGION).tolist().index(BASE.language.constant_id(n)) for n in ("asia", "europe")
    )

    def without(*places: int) -> ForbiddenCandidates:
        def forbidden(predicate: int, position: int, given: np.ndarray) -> np.ndarray:
            assert (predicate, position) == (0, 1)
            assert given[:, 0].tolist() == [BASE.language.constant_id("italy")]
            return np.isin(np.arange(3), places)[None]

        return forbidden

    plain = rank(score, queries, BASE, filtered(), EvaluationOptions(sides=(1,)))
    assert plain.metrics["mrr"] == 1 / 2
    allowed = rank(score, queries, BASE, filtered(), EvaluationOptions(sides=(1,), forbidden=without(asia)))
    assert allowed.metrics["mrr"] == 1
    text = "candidates that a constraint forbids stand below all others, the true one too"
    assert allowed.protocol == {**plain.protocol, "forbidden": text}
    assert (
        rank(score, queries, BASE, filtered(), EvaluationOptions(sides=(1,), forbidden=without(europe))).metrics["mrr"]
        == 1 / 3
    )
    both = rank(score, queries, BASE, filtered(), EvaluationOptions(sides=(1,), forbidden=without(asia, europe)))
    assert both.metrics["mrr"] == 1 / 2.5


def test_a_sample_asks_some_queries_and_says_so() -> None:
    queries = evidence(
        {"locatedIn(italy, europe)": True, "locatedIn(japan, asia)": True, "locatedIn(chad, africa)": True}
    )
    score = scorer({"locatedIn(italy, europe)": 5, "locatedIn(japan, africa)": 4, "locatedIn(chad, africa)": 3})
    whole = rank(score, queries, BASE, filtered())
    assert whole.intervals == {}
    found = [rank(score, queries, BASE, filtered(), EvaluationOptions(sample=2, seed=seed)) for seed in range(8)]
    assert {(report.protocol["queries"], report.protocol["ranks"]) for report in found} == {(2, 4)}
    assert found[3].protocol["sample"] == "2 of 3 queries, drawn with seed 3"
    assert len({report.metrics["mrr"] for report in found}) > 1
    assert list(found[0].intervals) == list(found[0].metrics)
    for report in found:
        low, high = report.intervals["mrr"]
        assert low <= report.metrics["mrr"] <= high
    again = rank(score, queries, BASE, filtered(), EvaluationOptions(sample=2, seed=3))
    assert again.to_dict() == found[3].to_dict()
    everything = rank(score, queries, BASE, filtered(), EvaluationOptions(sample=99))
    assert everything.metrics == whole.metrics
    assert everything.intervals["mrr"] == (whole.metrics["mrr"], whole.metrics["mrr"])


def test_queries_outside_the_sample_are_still_known() -> None:
    queries = evidence({"large(italy)": True, "large(chad)": True, "large(japan)": True})
    report = rank(scorer({"large(chad)": 5, "large(japan)": 4}), queries, BASE, filtered(), EvaluationOptions(sample=1))
    assert report.protocol["ranks_left_out_with_no_other_candidate"] == 1
    assert report.protocol["ranks"] == 0


def test_a_sample_of_nothing_is_refused() -> None:
    with pytest.raises(DataError, match="a sample of 0 queries says nothing\n  take 1 or more"):
        rank(scorer({}), evidence({"large(italy)": True}), BASE, filtered(), EvaluationOptions(sample=0))


def test_queries_of_two_predicates_are_drawn_apart() -> None:
    """One of rank 3 at one side, one of rank 1 at both: the residuals by hand."""
    queries = evidence({"large(chad)": True, "locatedIn(chad, africa)": True, "locatedIn(japan, asia)": True})
    score = scorer({"large(chad)": -1, "locatedIn(chad, africa)": 1, "locatedIn(japan, asia)": 1})
    reports = [rank(score, queries, BASE, filtered(), EvaluationOptions(sample=2, seed=seed)) for seed in range(9)]
    mixed = next(report for report in reports if len(report.per_predicate) == 2)
    mrr = (1 / 3 + 1 + 1) / 3
    residuals = [1 / 3 - mrr, 2 - 2 * mrr]
    half = 1.959964 * sqrt(sum(each**2 for each in residuals) / 2 * (1 - 2 / 3)) / 1.5
    assert mixed.metrics["mrr"] == pytest.approx(mrr)
    assert mixed.intervals["mrr"] == (pytest.approx(mrr - half, abs=1e-6), min(1.0, mrr + half))


class Third:
    """One of three who share a ranking; the first, made last, has what the others found."""

    @property
    def count(self) -> int:
        return 3

    def __init__(self, number: int, others: "list[Third]") -> None:
        self.number, self.others, self.own = number, others, []

    def takes(self, number: int) -> bool:
        return number % self.count == self.number

    def together(self, own: Sequence[tuple[int, Any]]) -> list[Any]:
        self.own = list(own)
        return in_order([*self.own, *(part for other in self.others for part in other.own)])


def test_three_who_share_a_ranking_find_what_one_finds() -> None:
    score = scorer({"locatedIn(italy, asia)": 3, "locatedIn(italy, europe)": 2, "locatedIn(japan, europe)": 2})
    asked = evidence({"locatedIn(italy, europe)": True, "locatedIn(japan, asia)": True, "large(italy)": True})
    alone = rank(score, asked, BASE, filtered(), EvaluationOptions(memory=1))
    second, third = Third(1, []), Third(2, [])
    for share in (second, third):
        rank(score, asked, BASE, filtered(), EvaluationOptions(memory=1, share=share))
    together = rank(score, asked, BASE, filtered(), EvaluationOptions(memory=1, share=Third(0, [second, third])))
    assert together.to_dict() == alone.to_dict()
    assert second.own
    assert third.own
