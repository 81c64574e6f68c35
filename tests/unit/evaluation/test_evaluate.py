"""Classification by hand; what a report says; what is refused of any score."""

import json
from math import isnan, nan
from pathlib import Path

import numpy as np
import pytest

from r2n.data.herbrand import HerbrandBase
from r2n.data.knowledge_base import Evidence
from r2n.datasets.benchmarks import load
from r2n.errors import DataError
from r2n.evaluation.metrics import METRICS, Metric
from r2n.evaluation.ranking import EvaluationOptions, rank
from r2n.evaluation.report import classify
from r2n.logic.language import Language
from tests.command_line import invoke
from tests.toy_problem import write_toy_problem
from tests.unit.evaluation.three_countries import BASE, evidence, filtered, scorer


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


def test_a_registered_metric_is_in_json_and_in_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = str(tmp_path / "run")
    invoke("train", str(write_toy_problem(tmp_path / "towns", epochs=1)), "--out", run, "--no-baseline")
    added = Metric("share_true", "classification", lambda logits, truth, groups: float(truth.mean()))
    monkeypatch.setitem(METRICS, added.name, added)
    found = json.loads(invoke("evaluate", run, "--json"))["metrics"]
    assert 0 < found["share_true"] < 1
    assert f"share_true │ {found['share_true']:.4f}" in " ".join(invoke("evaluate", run).split())


def test_a_registered_metric_of_rankings_has_an_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    added = Metric("mean_rank", "ranking", lambda ranks: ranks, higher_is_better=False, upper=np.inf)
    monkeypatch.setitem(METRICS, added.name, added)
    queries = evidence({f"locatedIn({name}, europe)": True for name in ("italy", "japan", "chad")})
    score = scorer({"locatedIn(italy, africa)": 2, "locatedIn(japan, asia)": 1})
    report = rank(score, queries, BASE, filtered(), EvaluationOptions(sample=2))
    assert report.main[0] == "mrr"
    low, high = report.intervals["mean_rank"]
    assert low <= report.metrics["mean_rank"] <= high
    assert high > 1
