"""Evaluation of scores, networks and rules alone: classification by hand, reports, metrics that are registered."""

import json
from math import exp, isnan, log, nan
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given

import r2n
from r2n.data.herbrand import HerbrandBase, QueryPattern
from r2n.data.knowledge_base import Evidence, KnowledgeBase, reciprocal_codes
from r2n.datasets.benchmarks import load
from r2n.errors import DataError, GroundingError
from r2n.evaluation import evaluate
from r2n.evaluation.evaluate import POWER, UNREACHED, RulesAlone
from r2n.evaluation.metrics import METRICS, Metric
from r2n.evaluation.ranking import rank
from r2n.evaluation.report import classify
from r2n.grounding.counting import RuleCounts
from r2n.logic.language import Language
from r2n.model.run import Run, prepare_run
from tests.command_line import invoke
from tests.examples import at_most
from tests.toy_problem import write_toy_problem
from tests.unit.evaluation.three_countries import BASE, evidence, filtered, ranked, scorer
from tests.unit.grounding.test_counting import THEORY, counted_one_by_one, random_knowledge
from tests.unit.training.toy_training import step_of


@pytest.mark.parametrize("wrong", [np.zeros(1), np.zeros((6, 1)), np.zeros(())])
def test_scores_of_another_shape_are_refused(wrong: np.ndarray) -> None:
    queries = evidence({"locatedIn(italy, europe)": True, "locatedIn(chad, asia)": True})
    for ask in (lambda: ranked(lambda _: wrong, queries), lambda: classify(lambda _: wrong, queries, BASE)):
        with pytest.raises(DataError, match="the model gave scores of shape"):
            ask()


def test_nan_is_refused_with_the_name_of_its_atom() -> None:
    queries = evidence({"locatedIn(italy, europe)": True})
    broken = scorer({"locatedIn(japan, europe)": nan})
    message = r"the score of locatedIn\(japan, europe\) is NaN, and 0 others of 3\n  the model is broken"
    with pytest.raises(DataError, match=message):
        ranked(broken, queries)
    with pytest.raises(DataError, match=r"the score of locatedIn\(italy, europe\) is NaN, and 0 others of 1"):
        classify(lambda asked: np.full(len(asked), nan), queries, BASE)


def test_queries_of_another_base_are_refused() -> None:
    strangers = Evidence(np.array([BASE.size]), np.array([True]))
    for ask in (lambda: ranked(scorer({}), strangers), lambda: classify(scorer({}), strangers, BASE)):
        with pytest.raises(DataError, match="a code outside the Herbrand base of 15 atoms\n  take queries and base"):
            ask()


def test_a_classification_says_what_was_asked() -> None:
    """Its metrics are those of plain loops: `properties/test_evaluate.py`."""
    queries = {"locatedIn(italy, europe)": True, "locatedIn(japan, europe)": False, "locatedIn(chad, africa)": True}
    queries |= {"large(italy)": False, "large(chad)": True}
    report = classify(scorer({"large(chad)": 3.0}), evidence(queries), BASE, split="valid")
    assert report.calibration is not None
    assert (report.metrics["brier"], report.metrics["ece"]) == (report.calibration.brier, report.calibration.ece)
    assert sum(part.count for part in report.calibration.bins) == 5
    counts = {name: (part["queries"], part["true"]) for name, part in report.per_predicate.items()}
    assert counts == {"locatedIn": (3, 2), "large": (2, 1)}
    assert list(report.metrics) == ["ap", "roc_auc_macro", "accuracy", "brier", "ece"]
    assert (report.protocol["groups"], report.protocol["groups_of_one_class_left_out"]) == (3, 1)
    assert (report.protocol["queries"], report.protocol["true"]) == (5, 3)


def test_a_report_is_json_even_of_nothing() -> None:
    for report in (classify(scorer({}), Evidence.empty(), BASE), ranked(scorer({}), Evidence.empty())):
        assert all(isnan(value) for value in report.metrics.values())
        text = json.dumps(report.to_dict(), allow_nan=False)
        assert set(json.loads(text)["metrics"].values()) == {None}
        assert report.per_predicate == {}
    empty = HerbrandBase(Language.build([], [], {}))
    assert isnan(classify(lambda _: np.zeros(0), Evidence.empty(), empty).metrics["ap"])
    assert isnan(rank(lambda _: np.zeros(0), Evidence.empty(), empty, filtered()).metrics["mrr"])


def test_countries_is_24_countries_by_5_regions() -> None:
    """The protocol of the paper's tables: 120 atoms, 24 of them true, a group a region."""
    problem = load("countries-s3")
    truth = dict(zip(problem.test.atoms.tolist(), problem.test.truth.tolist(), strict=True))
    base = problem.knowledge.base
    report = classify(lambda asked: np.array([truth[c] for c in asked.tolist()]) * 2.0 - 1, problem.test, base)
    assert (report.metrics["ap"], report.metrics["roc_auc_macro"], report.metrics["accuracy"]) == (1, 1, 1)
    assert (report.protocol["queries"], report.protocol["true"], report.protocol["groups"]) == (120, 24, 5)
    blind = classify(lambda asked: np.zeros(len(asked)), problem.test, base).metrics
    assert (blind["ap"], blind["roc_auc_macro"]) == (pytest.approx(0.2), 0.5)


def test_a_registered_metric_is_in_json_and_in_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = str(tmp_path / "run")
    invoke("train", str(write_toy_problem(tmp_path / "towns", epochs=1)), "--out", run, "--no-baseline")
    added = Metric("share_true", "classification", lambda logits, truth, groups: float(truth.mean()))
    monkeypatch.setitem(METRICS, added.name, added)
    found = json.loads(invoke("evaluate", run, "--json"))["metrics"]
    assert 0 < found["share_true"] < 1
    heads, values = invoke("evaluate", run).splitlines()[1:3]
    assert (heads.split()[-1], values.split()[-1]) == ("share_true", f"{found['share_true']:.4f}")


def test_a_registered_metric_of_rankings_has_an_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    added = Metric("mean_rank", "ranking", lambda ranks: ranks, upper=np.inf)
    monkeypatch.setitem(METRICS, added.name, added)
    queries = evidence({f"locatedIn({name}, europe)": True for name in ("italy", "japan", "chad")})
    score = scorer({"locatedIn(italy, africa)": 2, "locatedIn(japan, asia)": 1})
    report = ranked(score, queries, sample=2)
    assert report.main[0] == "mrr"
    low, high = report.intervals["mean_rank"]
    assert low <= report.metrics["mean_rank"] <= high
    assert high > 1


@pytest.fixture(scope="module")
def nations() -> Run:
    """A network with reciprocals, after three epochs."""
    problem = r2n.load("nations")
    run = prepare_run(problem, problem.options.changed(["training.epochs=3", "model.dim=4", "model.layers=1"]), seed=0)
    list(run.trainer)
    return run


def test_position_0_is_asked_of_the_reciprocals(nations: Run) -> None:
    scores, codes = nations.logits(), nations.problem.test.atoms
    batch = step_of(nations.trainer).batch
    with torch.no_grad():
        logits = nations.model(batch).atoms.double().numpy()
    reciprocal = reciprocal_codes(nations.model.base, codes)
    assert (reciprocal >= len(nations.problem.knowledge.base)).all()
    np.testing.assert_array_equal(scores.at_position(0)(codes), logits[reciprocal])
    np.testing.assert_array_equal(scores.at_position(1)(codes), logits[codes])
    np.testing.assert_allclose(scores(codes), (logits[codes] + logits[reciprocal]) / 2)


def weights(knowledge: KnowledgeBase) -> dict[int, float]:
    """Atom -> mass, rule by rule and atom by atom."""
    facts = {a for a, t in zip(knowledge.evidence.atoms.tolist(), knowledge.evidence.truth.tolist(), strict=True) if t}
    counts = counted_one_by_one(knowledge)
    found: dict[int, float] = {}
    for j in range(len(THEORY.rules)):
        concluded = [atom for rule, atom in counts if rule == j]
        confidence = (sum(atom in facts for atom in concluded) + 0.1) / (len(concluded) + 5)
        for atom in concluded:
            found[atom] = found.get(atom, 0.0) + confidence * counts[j, atom] ** POWER
    return found


@at_most(10, because="each example grounds 24 rules")
@given(random_knowledge())
def test_logits_are_those_of_weights_added_one_by_one(knowledge: KnowledgeBase) -> None:
    alone, base = RulesAlone.from_knowledge(knowledge), knowledge.base
    assert alone is not None
    expected = weights(knowledge)
    odds = {a: log((1 - exp(-weight)) / exp(-weight)) for a, weight in expected.items()}
    logits = [odds.get(a, UNREACHED) for a in range(base.size)]
    found = alone(np.arange(base.size))
    np.testing.assert_allclose(found, logits, rtol=1e-9, atol=1e-9)
    for predicate, shape in enumerate(base.shapes):
        for position in range(len(shape)):
            pattern = QueryPattern.from_base(base, predicate, position)
            first = np.unique(pattern.located(np.arange(*pattern.bounds))[0])
            rows = np.concatenate([first[::-1], first[:1]])  # in any order, and one of them twice
            codes = rows[:, None] + pattern.stride * np.arange(pattern.candidates)
            assert (alone.rows(predicate, position, pattern.given(rows)) == found[codes]).all()


def test_nothing_is_counted_without_rules_or_where_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    domains = {"d": ["a", "b"]}
    knowledge = KnowledgeBase.build(THEORY, domains=domains)
    alone = RulesAlone.from_knowledge(knowledge)
    assert alone is not None
    assert (alone(np.arange(5)) == UNREACHED).all(), "no fact, no proof"
    bare = KnowledgeBase.build(type(THEORY)(THEORY.domains, THEORY.predicates, ()), domains=domains)
    assert RulesAlone.from_knowledge(bare) is None
    monkeypatch.setattr(evaluate, "MOST_RULES", len(THEORY.rules) - 1)
    assert RulesAlone.from_knowledge(knowledge) is None
    monkeypatch.undo()
    monkeypatch.setattr(evaluate, "MOST_GROUND_RULES", -1)
    assert RulesAlone.from_knowledge(knowledge) is None, "by the estimate"
    monkeypatch.undo()

    def refuse(*_: object) -> RuleCounts:
        raise GroundingError("too many")

    monkeypatch.setattr(RuleCounts, "from_store", refuse)
    assert RulesAlone.from_knowledge(knowledge) is None, "the estimate was wrong"
