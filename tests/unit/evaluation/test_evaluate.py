"""The two protocols on problems small enough to be worked out by hand; what a report says; how much memory it takes."""

import json
import tracemalloc
from math import isnan, nan

import numpy as np
import pytest

from r2n.datasets.benchmarks import load
from r2n.errors import DataError
from r2n.evaluation.evaluate import Score, classify, rank
from r2n.evaluation.filters import Filter
from r2n.knowledge.herbrand import HerbrandBase
from r2n.knowledge.knowledge_base import Evidence
from r2n.logic.language import Domain, Language, Predicate

COUNTRY, REGION, PLANET = Domain("country"), Domain("region"), Domain("planet")
BASE = HerbrandBase(
    Language.build(
        [COUNTRY, REGION, PLANET],
        [
            Predicate("locatedIn", (COUNTRY, REGION)),
            Predicate("large", (COUNTRY,)),
            Predicate("on", (REGION, PLANET)),
        ],
        {"country": ["chad", "italy", "japan"], "region": ["africa", "asia", "europe"], "planet": ["earth"]},
    )
)
ATOMS = BASE.names(np.arange(BASE.size))


def code(atom: str) -> int:
    return ATOMS.index(atom)


def evidence(atoms: dict[str, bool]) -> Evidence:
    codes = sorted((code(atom), truth) for atom, truth in atoms.items())
    return Evidence(np.array([c for c, _ in codes], np.int64), np.array([t for _, t in codes], bool))


def codes(*atoms: str) -> np.ndarray:
    return np.array(sorted(map(code, atoms)), np.int64)


def filtered(*names: str) -> Filter:
    return Filter(codes(*names), ())


def scorer(logits: dict[str, float], otherwise: float = 0.0) -> Score:
    table = np.full(BASE.size, otherwise)
    table[[code(atom) for atom in logits]] = list(logits.values())
    return table.__getitem__


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
    assert rank(score, queries, BASE, filtered(), sides=(1,)).metrics["mrr"] == 0.5
    assert rank(score, queries, BASE, filtered("locatedIn(italy, asia)"), sides=(1,)).metrics["mrr"] == 1
    unsorted = np.array([code("locatedIn(italy, europe)"), code("locatedIn(italy, asia)"), 0, 0])
    assert rank(score, queries, BASE, Filter(unsorted, ()), sides=(1,)).metrics["mrr"] == 1
    elsewhere = codes("locatedIn(japan, asia)", "large(italy)")  # known, but not in these rows
    assert rank(score, queries, BASE, Filter(elsewhere, ()), sides=(1,)).metrics["mrr"] == 0.5
    around = evidence(
        {"locatedIn(chad, africa)": True, "locatedIn(japan, asia)": True}
    )  # rows before and after italy's
    between = rank(
        scorer({"locatedIn(japan, europe)": 9}), around, BASE, filtered("locatedIn(italy, europe)"), sides=(1,)
    )
    assert between.metrics["mrr"] == pytest.approx((1 / 2 + 1 / 2.5) / 2)


def test_true_queries_are_known_and_false_ones_are_not_asked() -> None:
    score = scorer({"locatedIn(italy, asia)": 3, "locatedIn(italy, europe)": 2, "locatedIn(italy, africa)": 9})
    queries = {"locatedIn(italy, europe)": True, "locatedIn(italy, asia)": True}
    report = rank(score, evidence(queries | {"locatedIn(italy, africa)": False}), BASE, filtered(), sides=(1,))
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


def test_positions_without_a_choice_are_left_out_and_rows_without_one_counted() -> None:
    """The trap of trivial rows: a sure rank 1, averaged in, lifts the rest."""
    queries = evidence({"on(asia, earth)": True})
    report = rank(scorer({"on(africa, earth)": 1}), queries, BASE, filtered())
    assert report.metrics["mrr"] == pytest.approx(1 / 2.5)
    assert report.protocol["ranks_left_out_for_a_domain_of_one"] == 1
    assert report.protocol["ranks_with_no_other_candidate"] == 0
    queries = evidence({"on(asia, earth)": True, "large(chad)": True, "large(italy)": True})
    alone = rank(scorer({}), queries, BASE, filtered("on(africa, earth)", "on(europe, earth)", "large(japan)"))
    assert alone.metrics["mrr"] == 1
    assert alone.protocol["ranks_with_no_other_candidate"] == alone.protocol["ranks"] == 3


def test_the_protocol_says_how_it_was_asked() -> None:
    queries = evidence({"locatedIn(italy, europe)": True})
    assert rank(scorer({}), queries, BASE, filtered()).protocol == {
        "task": "ranking",
        "ties": "realistic: the mean of the best and the worst rank among equal logits",
        "filter": "other true atoms of queries are no candidates",
        "candidates": "all constants of the position's domain",
        "sides": "all positions",
        "queries": 1,
        "ranks": 2,
        "ranks_with_no_other_candidate": 0,
        "ranks_left_out_for_a_domain_of_one": 0,
    }
    assert rank(scorer({}), queries, BASE, filtered(), sides=(0, 1)).protocol["sides"] == "positions 0, 1"


def test_a_side_that_no_predicate_has_is_refused() -> None:
    with pytest.raises(DataError, match=r"no predicate has a position 2\n  sides are positions counted from 0; the lo"):
        rank(scorer({}), evidence({"large(italy)": True}), BASE, filtered(), sides=(2,))
    report = rank(scorer({}), evidence({"large(italy)": True}), BASE, filtered(), sides=(1,))  # locatedIn has it
    assert report.protocol["ranks"] == 0


def test_a_row_is_scored_once_and_whole() -> None:
    called: list[np.ndarray] = []

    def score(asked: np.ndarray) -> np.ndarray:
        called.append(asked)
        return np.zeros(len(asked), np.float32)  # single precision is taken too

    queries = evidence(
        {"locatedIn(italy, europe)": True, "locatedIn(italy, asia)": True, "locatedIn(chad, asia)": True}
    )
    rank(score, queries, BASE, filtered(), sides=(1,))
    row = [
        f"locatedIn({country}, {region})" for country in ("chad", "italy") for region in ("africa", "asia", "europe")
    ]
    assert [BASE.names(part) for part in called] == [row]
    called.clear()
    rank(score, queries, BASE, filtered(), sides=(1,), atoms_at_once=1)
    assert [len(part) for part in called] == [3, 3, 3]


@pytest.mark.parametrize(
    ("at_once", "expected"), [(1, [(1, 4), (2, 4), (3, 4), (4, 4)]), (99, [(1, 4), (2, 4), (4, 4)])]
)
def test_progress_reaches_the_whole(at_once: int, expected: list[tuple[int, int]]) -> None:
    told: list[tuple[int, int]] = []
    queries = evidence({"locatedIn(italy, europe)": True, "large(italy)": True, "large(chad)": True})
    rank(scorer({}), queries, BASE, filtered(), atoms_at_once=at_once, progress=lambda phase, *step: told.append(step))
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
        rank(score, Evidence(atoms, np.ones(len(atoms), bool)), base, Filter(atoms, ()), atoms_at_once=at_once)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most <= at_once
    assert peak < 8 * 8 * at_once  # 4 MB; all rows at once would take 36 MB an array


@pytest.mark.parametrize("wrong", [np.zeros(1), np.zeros((6, 1)), np.zeros(())])
def test_scores_of_another_shape_are_refused(wrong: np.ndarray) -> None:
    queries = evidence({"locatedIn(italy, europe)": True, "locatedIn(chad, asia)": True})
    for ask in (
        lambda: rank(lambda _: wrong, queries, BASE, filtered()),
        lambda: classify(lambda _: wrong, queries, BASE),
    ):
        with pytest.raises(DataError, match="the model gave scores of shape"):
            ask()


def test_nan_is_refused_with_the_name_of_its_atom() -> None:
    queries = evidence({"locatedIn(italy, europe)": True})
    broken = scorer({"locatedIn(japan, europe)": nan})
    message = r"the score of locatedIn\(japan, europe\) is NaN, and 0 others of 3\n  the model is broken"
    with pytest.raises(DataError, match=message):
        rank(broken, queries, BASE, filtered())
    with pytest.raises(DataError, match=r"the score of locatedIn\(italy, europe\) is NaN, and 0 others of 1"):
        classify(lambda asked: np.full(len(asked), nan), queries, BASE)


def test_queries_of_another_base_are_refused() -> None:
    strangers = Evidence(np.array([BASE.size]), np.array([True]))
    for ask in (lambda: rank(scorer({}), strangers, BASE, filtered()), lambda: classify(scorer({}), strangers, BASE)):
        with pytest.raises(
            DataError, match="a code outside the Herbrand base of 15 atoms\n  take queries and base from"
        ):
            ask()


def test_classification_by_hand() -> None:
    queries = {
        "locatedIn(italy, europe)": (True, 2.0),
        "locatedIn(japan, europe)": (False, -1.0),
        "locatedIn(italy, asia)": (False, 1.0),
        "locatedIn(japan, asia)": (True, 0.0),
        "locatedIn(chad, africa)": (True, 5.0),
        "large(italy)": (False, -1.0),
        "large(chad)": (True, 3.0),
    }
    score = scorer({atom: logit for atom, (_, logit) in queries.items()})
    report = classify(score, evidence({atom: truth for atom, (truth, _) in queries.items()}), BASE, split="valid")
    # europe is right, asia wrong, africa has one class; large, a unary predicate, is one group, and right
    assert report.metrics["roc_auc_macro"] == pytest.approx(2 / 3)
    assert report.per_predicate["locatedIn"]["roc_auc_macro"] == 0.5
    assert report.per_predicate["large"]["roc_auc_macro"] == 1
    # from the top: true true true false true, then two false ones
    assert report.metrics["ap"] == pytest.approx((1 + 1 + 1 + 4 / 5) / 4)
    assert report.metrics["accuracy"] == pytest.approx(5 / 7)  # a logit of 0 is held false
    assert report.calibration is not None
    assert report.metrics["brier"] == report.calibration.brier
    assert report.metrics["ece"] == report.calibration.ece
    assert sum(part.count for part in report.calibration.bins) == 7
    assert {name: (part["queries"], part["true"]) for name, part in report.per_predicate.items()} == {
        "locatedIn": (5, 3),
        "large": (2, 1),
    }
    assert list(report.metrics) == ["ap", "roc_auc_macro", "accuracy", "brier", "ece"]
    assert (report.protocol["groups"], report.protocol["groups_of_one_class_left_out"]) == (4, 1)
    assert (report.protocol["queries"], report.protocol["true"]) == (7, 4)


def test_infinite_logits_are_certain() -> None:
    score = scorer({"large(italy)": -np.inf, "large(chad)": np.inf})
    report = classify(score, evidence({"large(italy)": False, "large(chad)": True}), BASE)
    assert report.metrics == {"ap": 1, "roc_auc_macro": 1, "accuracy": 1, "brier": 0, "ece": 0}


def test_a_report_is_json_even_of_nothing() -> None:
    for report in (classify(scorer({}), Evidence.empty(), BASE), rank(scorer({}), Evidence.empty(), BASE, filtered())):
        assert all(isnan(value) for value in report.metrics.values())
        text = json.dumps(report.to_dict(), allow_nan=False)
        assert set(json.loads(text)["metrics"].values()) == {None}
        assert report.per_predicate == {}
    empty = HerbrandBase(Language.build([], []))
    assert isnan(classify(lambda _: np.zeros(0), Evidence.empty(), empty).metrics["ap"])
    assert isnan(rank(lambda _: np.zeros(0), Evidence.empty(), empty, filtered()).metrics["mrr"])


def test_a_report_round_trips_through_json() -> None:
    report = classify(scorer({}), evidence({"large(italy)": False, "large(chad)": True}), BASE, split="test")
    document = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert document["split"] == "test"
    assert document["metrics"] == report.metrics
    assert document["protocol"]["task"] == "classification"
    assert len(document["calibration"]["bins"]) == 10
    assert document["calibration"]["bins"][0]["accuracy"] is None


def test_countries_is_24_countries_by_5_regions() -> None:
    """The protocol of the paper's tables: 120 atoms, 24 of them true, a group a region."""
    problem = load("countries-s3")
    truth = dict(zip(problem.test.atoms.tolist(), problem.test.truth.tolist(), strict=True))
    report = classify(
        lambda asked: np.array([truth[c] for c in asked.tolist()]) * 2.0 - 1, problem.test, problem.knowledge.base
    )
    assert (report.metrics["ap"], report.metrics["roc_auc_macro"], report.metrics["accuracy"]) == (1, 1, 1)
    assert (report.protocol["queries"], report.protocol["true"], report.protocol["groups"]) == (120, 24, 5)
    blind = classify(lambda asked: np.zeros(len(asked)), problem.test, problem.knowledge.base)
    assert blind.metrics["ap"] == pytest.approx(0.2)
    assert blind.metrics["roc_auc_macro"] == 0.5
