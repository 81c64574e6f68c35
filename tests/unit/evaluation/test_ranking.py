"""Filtered ranking besides its oracle (`properties/test_evaluate.py`): what is left out, samples, shares, memory."""

import re
import tracemalloc
from collections.abc import Callable
from functools import partial
from math import isnan, sqrt
from statistics import mean
from typing import Any

import numpy as np
import pytest
import torch

from r2n.data.herbrand import HerbrandBase
from r2n.data.knowledge_base import Evidence
from r2n.datasets.benchmarks import load
from r2n.errors import DataError
from r2n.evaluation.evaluate import evaluate
from r2n.evaluation.metrics import Ranks, drawn, intervals
from r2n.evaluation.ranking import (
    ALONE,
    BYTES_BY_CODE,
    BYTES_IN_A_ROW,
    MEMORY,
    EvaluationOptions,
    Filter,
    Shard,
    rank,
    row_memory,
)
from r2n.evaluation.report import Report
from r2n.grounding.full import FullGrounder
from r2n.logic.language import Domain, Language, Predicate
from r2n.model.run import prepare_run
from r2n.network.graph_sources import GroundedOnDemand
from r2n.network.r2n import R2N
from tests.noise_problem import noise_problem
from tests.unit.evaluation.three_countries import BASE, evidence, ranked, scorer

THREE = ("locatedIn(italy, europe)", "locatedIn(italy, asia)", "locatedIn(chad, asia)")


def test_what_has_no_choice_is_left_out_and_counted() -> None:
    """The trap of trivial rows: a sure rank 1, averaged in, lifts the rest."""
    queries = evidence({"on(asia, earth)": True})
    report = ranked(scorer({"on(africa, earth)": 1}), queries)
    assert report.metrics["mrr"] == pytest.approx(1 / 2.5)
    assert report.protocol["ranks_left_out_for_a_domain_of_one"] == 1
    assert report.protocol["ranks_left_out_with_no_other_candidate"] == 0
    assert not report.nothing_to_rank
    queries = evidence({"on(asia, earth)": True, "large(chad)": True, "large(italy)": True})
    alone = ranked(scorer({}), queries, "on(africa, earth)", "on(europe, earth)", "large(japan)")
    assert isnan(alone.metrics["mrr"])
    assert alone.by_query is not None
    assert alone.protocol["ranks"] == len(alone.by_query.atoms) == 0
    assert alone.protocol["ranks_left_out_with_no_other_candidate"] == 3
    some = ranked(scorer({"on(africa, earth)": 1}), queries, "on(europe, earth)", "large(japan)")
    assert some.metrics["mrr"] == some.per_predicate["on"]["mrr"] == 0.5
    assert (some.protocol["ranks"], some.protocol["ranks_left_out_with_no_other_candidate"]) == (1, 2)
    assert list(some.per_predicate) == ["on"]


def test_metrics_are_by_position_and_those_of_all_over_the_asked_ones() -> None:
    """Of locatedIn(italy, europe), asia is before europe, and italy is first; of on(asia, earth), asia is second."""
    queries = evidence({"locatedIn(italy, europe)": True, "on(asia, earth)": True})
    logits = {
        "locatedIn(italy, europe)": 1,
        "locatedIn(italy, asia)": 2,
        "on(africa, earth)": 1,
        "on(asia, earth)": 0.5,
    }
    score = scorer(logits)
    every = ranked(score, queries)
    assert every.metrics["mrr"] == pytest.approx((1 + 0.5 + 0.5) / 3)
    assert {name: (part["ranks"], part["mrr"]) for name, part in every.by_position.items()} == {
        "position 1": (2, 0.75),
        "position 2": (1, 0.5),
    }
    assert "asked" not in every.protocol
    one = ranked(score, queries, ask={"locatedIn": (1,), "on": ()})
    assert one.metrics["mrr"] == one.per_predicate["locatedIn"]["mrr"] == 0.5
    assert one.by_position == every.by_position
    assert one.by_query is not None
    assert len(one.by_query.atoms) == 1
    assert one.protocol["asked"] == "the metrics are over position 2 alone: queries.ask"
    both = ranked(score, queries, ask={"locatedIn": (1,)})
    assert both.metrics["mrr"] == pytest.approx((0.5 + 0.5) / 2), "of another predicate, all positions are asked"
    rows = [line.split()[0] for line in str(both).splitlines()[2:]]
    assert rows == ["asked", "position", "position", "locatedIn", "on"]
    alone = ranked(score, evidence({"locatedIn(italy, europe)": True}), ask={"locatedIn": (1,)})
    assert list(alone.by_position) == ["position 1 (country)", "position 2 (region)"]
    assert alone.to_dict()["by_position"]["position 2 (region)"]["mrr"] == 0.5
    assert alone.protocol["asked"] == "the metrics are over position 2 (region) alone: queries.ask"


def test_a_ranking_without_a_choice_says_so_instead_of_numbers() -> None:
    """A domain of one constant, all other candidates known, or no query at all."""
    queries = evidence({"on(asia, earth)": True})
    for report in (
        ranked(scorer({}), queries, positions=(1,)),
        ranked(scorer({}), queries, "on(africa, earth)", "on(europe, earth)"),
        ranked(scorer({}), queries, positions=(1,), sample=1),
    ):
        assert report.nothing_to_rank == "no query has a candidate besides its answer: there is nothing to rank"
        assert repr(report) == f"Report on 'queries' (ranking, 1 query): {report.nothing_to_rank}"
        assert set(report.to_dict()["metrics"].values()) == {None}
        assert report.to_dict()["protocol"]["nothing_to_rank"] == report.nothing_to_rank
    none = ranked(scorer({}), Evidence.empty())
    assert none.nothing_to_rank == "there are no queries: there is nothing to rank"


def test_the_protocol_says_how_it_was_asked() -> None:
    queries = evidence({"locatedIn(italy, europe)": True})
    assert ranked(scorer({}), queries).protocol == {
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
    assert ranked(scorer({}), queries, positions=(0, 1)).protocol["sides"] == "positions 0, 1"


def test_a_side_that_no_predicate_has_is_refused() -> None:
    with pytest.raises(DataError, match=r"no predicate has a position 2\n  positions are counted from 0, or "):
        ranked(scorer({}), evidence({"large(italy)": True}), positions=(2,))
    report = ranked(scorer({}), evidence({"large(italy)": True}), positions=(1,))  # locatedIn has it
    assert report.protocol["ranks"] == 0


def test_a_side_counted_from_the_end_is_the_last_of_each_predicate() -> None:
    called: list[int] = []

    def score(codes: np.ndarray) -> np.ndarray:
        called.extend(codes.ravel().tolist())
        return np.zeros(codes.shape)

    ranked(score, evidence({"large(italy)": True, "locatedIn(italy, europe)": True}), positions=(-1,))
    names = BASE.names(np.unique(called))
    assert all(name.startswith("locatedIn(italy, ") for name in names if name.startswith("locatedIn"))
    assert sum(name.startswith("large") for name in names) > 1


def test_a_row_is_scored_once_and_whole() -> None:
    called: list[np.ndarray] = []

    def score(asked: np.ndarray) -> np.ndarray:
        called.append(asked)
        return np.zeros(len(asked), np.float32)  # single precision is taken too

    queries = evidence(dict.fromkeys(THREE, True))
    ranked(score, queries, positions=(1,))
    regions = ("africa", "asia", "europe")
    assert [BASE.names(part) for part in called] == [
        [f"locatedIn({c}, {r})" for c in ("chad", "italy") for r in regions]
    ]
    called.clear()
    ranked(score, queries, positions=(1,), memory=1)
    assert [len(part) for part in called] == [3, 3]  # italy's row once, for both of its queries


@pytest.mark.parametrize(("at_once", "expected"), [(1, [(1, 4), (2, 4), (3, 4), (4, 4)]), (99, [(2, 4), (4, 4)])])
def test_progress_reaches_the_whole(at_once: int, expected: list[tuple[int, int]]) -> None:
    found: list[tuple[int, int]] = []
    queries = evidence({"locatedIn(italy, europe)": True, "locatedIn(chad, asia)": True})
    ranked(scorer({}), queries, memory=at_once * BYTES_BY_CODE, progress=lambda phase, *step: found.append(step))
    assert found == expected


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
        options = EvaluationOptions(memory=at_once * BYTES_BY_CODE)
        rank(score, Evidence(atoms, np.ones(len(atoms), bool)), base, Filter(atoms, ()), options)
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

    queries = evidence(dict.fromkeys(THREE, True))
    report = ranked(ByRow(rows), queries)
    assert called == [(0, 0, [["asia"], ["europe"]]), (0, 1, [["chad"], ["italy"]])]
    called.clear()
    one_at_a_time = ranked(ByRow(rows), queries, memory=3 * BYTES_IN_A_ROW)
    assert called == [(0, 0, [["asia"]]), (0, 0, [["europe"]]), (0, 1, [["chad"]]), (0, 1, [["italy"]])]
    assert one_at_a_time.to_dict() == report.to_dict()
    assert [row_memory(allowed) for allowed in (None, 80, 10**12, 0)] == [MEMORY, 10, MEMORY, 1]


def test_the_report_says_that_candidates_are_forbidden() -> None:
    queries = evidence({"locatedIn(italy, europe)": True})
    plain = ranked(scorer({}), queries, positions=(1,))
    allowed = ranked(scorer({}), queries, positions=(1,), forbidden=lambda *asked: np.zeros((1, 3), bool))
    text = "candidates that a constraint forbids stand below all others, the true one too"
    assert allowed.protocol == {**plain.protocol, "forbidden": text}


def test_a_sample_asks_some_queries_and_says_so() -> None:
    queries = evidence(
        {"locatedIn(italy, europe)": True, "locatedIn(japan, asia)": True, "locatedIn(chad, africa)": True}
    )
    score = scorer({"locatedIn(italy, europe)": 5, "locatedIn(japan, africa)": 4, "locatedIn(chad, africa)": 3})
    full = ranked(score, queries)
    assert full.intervals == {}
    found = [ranked(score, queries, sample=2, seed=seed) for seed in range(8)]
    assert {(report.protocol["queries"], report.protocol["ranks"]) for report in found} == {(2, 4)}
    assert found[3].protocol["sample"] == "2 of 3 queries, drawn with seed 3"
    assert len({report.metrics["mrr"] for report in found}) > 1
    assert list(found[0].intervals) == list(found[0].metrics)
    for report in found:
        low, high = report.intervals["mrr"]
        assert low <= report.metrics["mrr"] <= high
    again = ranked(score, queries, sample=2, seed=3)
    assert again.to_dict() == found[3].to_dict()
    everything = ranked(score, queries, sample=99)
    assert everything.metrics == full.metrics
    assert everything.intervals["mrr"] == (full.metrics["mrr"], full.metrics["mrr"])


def test_queries_outside_the_sample_are_still_known() -> None:
    queries = evidence({"large(italy)": True, "large(chad)": True, "large(japan)": True})
    report = ranked(scorer({"large(chad)": 5, "large(japan)": 4}), queries, sample=1)
    assert report.protocol["ranks_left_out_with_no_other_candidate"] == 1
    assert report.protocol["ranks"] == 0


def test_queries_of_two_predicates_are_drawn_apart() -> None:
    """One of rank 3 at one side, one of rank 1 at both: the residuals by hand."""
    queries = evidence({"large(chad)": True, "locatedIn(chad, africa)": True, "locatedIn(japan, asia)": True})
    score = scorer({"large(chad)": -1, "locatedIn(chad, africa)": 1, "locatedIn(japan, asia)": 1})
    reports = [ranked(score, queries, sample=2, seed=seed) for seed in range(9)]
    mixed = next(report for report in reports if len(report.per_predicate) == 2)
    mrr = (1 / 3 + 1 + 1) / 3
    residuals = [1 / 3 - mrr, 2 - 2 * mrr]
    half = 1.959964 * sqrt(sum(each**2 for each in residuals) / 2 * (1 - 2 / 3)) / 1.5
    assert mixed.metrics["mrr"] == pytest.approx(mrr)
    assert mixed.intervals["mrr"] == (pytest.approx(mrr - half, abs=1e-6), min(1.0, mrr + half))


def test_three_who_share_a_ranking_find_what_one_finds() -> None:
    score = scorer({"locatedIn(italy, asia)": 3, "locatedIn(italy, europe)": 2, "locatedIn(japan, europe)": 2})
    asked = evidence({"locatedIn(italy, europe)": True, "locatedIn(japan, asia)": True, "large(italy)": True})
    found: dict[int, list[Any]] = {}

    def exchange(number: int, own: list[Any]) -> list[Any]:
        found[number] = own
        return [part for parts in found.values() for part in parts]

    for number in (2, 1, 0):
        together = ranked(score, asked, memory=1, shard=Shard(number, 3, partial(exchange, number)))
    assert together.to_dict() == ranked(score, asked, memory=1).to_dict()
    assert all(found.values())
    assert all(ALONE.takes(number) for number in range(5))
    assert ALONE.together([(10, "b"), (2, "a")]) == ["a", "b"]


def test_a_filter_has_the_true_atoms_of_its_splits() -> None:
    problem = load("countries-s1")
    splits = {"train": problem.train, "valid": problem.valid, "test": problem.test}
    for chosen in (None, ("train",), ("train", "valid")):
        found = Filter.from_problem(problem, chosen)
        names = chosen or tuple(splits)
        assert set(found.facts.tolist()) == {c for n in names for c in splits[n].atoms[splits[n].truth].tolist()}
        assert (np.diff(found.facts) > 0).all()
        assert found.splits == names
    assert Filter.from_problem(problem).words("test") == "other true atoms of train, valid and test are no candidates"
    some = Filter.from_problem(problem, ("train", "valid"))
    assert some.words("valid") == "other true atoms of train and valid are no candidates"


SPLITS = ("train", "valid", "test")
STOPPED = ("training.epochs=2", "training.patience=2", "training.validate_every=1")


def named(report: Report) -> set[str]:
    """The splits that the report names as its filter."""
    return set(re.findall("|".join(SPLITS), str(report.protocol["filter"])))


def test_validation_knows_nothing_of_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, made, init = noise_problem("alike", *STOPPED), list[Report](), Report.__init__

    def kept(self: Report, *given: object, **options: object) -> None:
        init(self, *given, **options)  # pyright: ignore[reportArgumentType]
        made.append(self)

    run = prepare_run(problem, problem.options, 0)
    monkeypatch.setattr(Report, "__init__", kept)
    assert all(epoch.valid is not None for epoch in run.trainer)
    assert [(report.split, named(report)) for report in made] == [("valid", {"train", "valid"})] * 2


def test_without_evidence_only_the_queries_filter() -> None:
    problem = noise_problem("alike")
    source = GroundedOnDemand.from_knowledge(problem.knowledge, FullGrounder())
    torch.manual_seed(0)
    model = R2N.build(problem.knowledge, dim=4, layers=1)
    alone = evaluate(model, source, problem.test)
    assert named(alone) == set()
    assert "queries" in str(alone.protocol["filter"])
    found = evaluate(model, source, problem.test, evidence=problem.train)
    assert re.search("evidence|train", str(found.protocol["filter"]))
    assert not {"valid", "test"} & named(found)


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
    with pytest.raises(DataError, match="a sample of -1 queries says nothing\n  take 1 or more"):
        drawn(10, -1, 0)


def as_ranks(values: list[float]) -> Ranks:
    return Ranks(np.array(values, np.float64), np.array(values, np.float64))


def test_an_interval_by_hand() -> None:
    """Two sides of three of five queries: the spread is that of the queries' own means."""
    found = intervals(as_ranks([1, 2, 4, 1, 2, 2]), np.array([0, 0, 1, 1, 2, 2]), 3, 5)["mrr"]
    means = [0.75, 0.625, 0.5]
    spread = sqrt(sum((m - mean(means)) ** 2 for m in means) / (3 - 1) / 3 * (1 - 3 / 5))
    assert found == pytest.approx((mean(means) - 1.959964 * spread, mean(means) + 1.959964 * spread), abs=1e-6)
    assert all(isnan(bound) for bound in intervals(as_ranks([1, 2]), np.array([0, 0]), 1, 9)["mrr"])
    assert all(isnan(bound) for bound in intervals(as_ranks([]), np.zeros(0, np.int64), 5, 9)["hits@10"])
