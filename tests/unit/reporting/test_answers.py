"""Example answers: the most confident right ones and the worst, each with its truth and its explanation."""

from collections.abc import Callable

import numpy as np
import pytest

from r2n.errors import DataError
from r2n.evaluation.by_query import ByQuery, ClassifiedQueries, RankedQueries
from r2n.evaluation.metrics import Ranks
from r2n.evaluation.ranking import Filter
from r2n.explanation.records import Explanation
from r2n.model.answers import Question
from r2n.model.model import Model
from r2n.reporting.run_report import MOST, AnswerGroup, example_answers
from tests.explanations import italy
from tests.unit.reporting.conftest import Kept

Asked = list[tuple[str, str | None]]
Answers = Callable[..., tuple[AnswerGroup, ...]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """What is explained, and in contrast to what; all explanations are alike."""
    found: Asked = []

    def explain(_: Model, atom: str, *, against: str | None = None) -> Explanation:
        found.append((atom, against))
        return italy()

    monkeypatch.setattr(Model, "explain", explain, raising=False)
    return found


def queries_of(run: Kept) -> ByQuery:
    return next(report.by_query for report in run.reports if report.split == "test" and report.by_query is not None)


def test_right_and_wrong_answers_of_a_classification(classified: Kept, asked: Asked) -> None:
    predictor, queries = classified.trained, queries_of(classified)
    assert isinstance(queries, ClassifiedQueries)
    columns = predictor.columns(queries.atoms)
    truth = np.array([not p > 0.5 for p in columns.network])
    truth[np.argmax(columns.network)] = True  # all but the most confident are wrong
    right, wrong = example_answers(predictor, ClassifiedQueries(queries.atoms, truth, queries.logits), [])
    assert [right.heading, wrong.heading] == ["Surest right answers", "Surest wrong answers"]
    first = predictor.base.names(queries.atoms[[np.argmax(columns.network)]])
    assert [answer.atom for answer in right.answers] == first
    logits = [abs(predictor.predict(answer.atom)[0].logit) for answer in wrong.answers]
    assert logits == sorted(logits, reverse=True)
    assert all(answer.truth == (answer.probability <= 0.5) for answer in wrong.answers)
    assert asked == [(answer.atom, None) for part in (right, wrong) for answer in part.answers]
    assert all(answer.explanation is not None for answer in right.answers)


def test_if_nothing_is_wrong_the_least_confident_are_shown(classified: Kept, asked: Asked) -> None:
    predictor, queries, notes = classified.trained, queries_of(classified), []
    assert isinstance(queries, ClassifiedQueries)
    truth = predictor.columns(queries.atoms).network > 0.5
    found = example_answers(predictor, ClassifiedQueries(queries.atoms, truth, queries.logits), notes, until=0.0)
    assert found[-1].heading == "Least sure answers"
    first, least = found[-1].answers[0], np.argmin(np.abs(queries.logits))
    assert (first.atom, first.truth) == (predictor.base.names(queries.atoms[[least]])[0], truth[least])
    assert all(len(part.answers) <= MOST for part in found)
    shown = sum(len(part.answers) for part in found)
    assert asked == []
    assert notes == [f"0 of {shown} answers are explained in the time for a report; r2n report RUN has no limit"]


def test_an_answer_that_cannot_be_explained_is_noted(classified: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object, **__: object) -> Explanation:
        raise DataError("too many", hint="fewer")

    monkeypatch.setattr(Model, "explain", refuses, raising=False)
    notes: list[str] = []
    found = example_answers(classified.trained, queries_of(classified), notes)
    assert notes == [f"{answer.atom} is not explained: too many" for part in found for answer in part.answers]
    none = ClassifiedQueries(np.zeros(0, np.int64), np.zeros(0, bool), np.zeros(0))
    assert example_answers(classified.trained, none, []) == ()


def test_a_ranking_explains_what_ranks_first_instead(ranked: Kept, asked: Asked) -> None:
    predictor, queries = ranked.trained, queries_of(ranked)
    assert isinstance(queries, RankedQueries)
    right, wrong = example_answers(predictor, queries, [])
    firsts = set(predictor.base.names(queries.atoms[queries.pessimistic == 1]))
    assert {answer.atom for answer in right.answers} <= firsts
    assert wrong.heading == "Farthest from the truth"
    worst = int(np.argmax(queries.realistic))
    assert (wrong.answers[0].atom, wrong.answers[0].truth) == (predictor.base.names(queries.atoms[[worst]])[0], True)
    assert f"rank {queries.realistic[worst]:g} of 14" in wrong.answers[0].text
    (first, truth), *_ = asked[len(right.answers) :]
    assert truth == wrong.answers[0].atom
    assert wrong.answers[0].text.endswith(f"; first is {first}")


def test_a_known_atom_is_never_the_one_that_ranks_first(ranked: Kept, asked: Asked) -> None:
    """If a known atom has the highest logit of a query pattern, the best of the others is explained."""
    trained = ranked.trained
    base, known = trained.problem.knowledge.base, Filter.from_problem(trained.problem).facts
    rows = []
    for code in trained.problem.test.atoms.tolist():
        predicate, (arguments,) = base.decode(np.array([code]))
        terms = [None, base.language.constants[arguments[1]]]
        codes = Question.from_terms(base, base.language.predicates[int(predicate[0])].name, terms).codes()
        scores = trained.scores.at_position(0)(codes)
        if codes[np.argmax(scores)] != code and codes[np.argmax(scores)] in known:
            rows.append((code, codes, scores))
    assert rows, "no query pattern has a known atom first"
    code, codes, scores = rows[0]
    ranks = np.array([7.0])
    example_answers(trained, RankedQueries.from_ranks(np.array([code]), np.zeros(1, np.int64), Ranks(ranks, ranks)), [])
    others = ~np.isin(codes, known) | (codes == code)
    best, name = codes[others][np.argmax(scores[others])], base.names(np.array([code]))[0]
    expected = (name, None) if best == code else (base.names(np.array([best]))[0], name)
    assert asked == [expected]


def test_a_ranking_in_which_all_rank_first_has_no_worst(ranked: Kept, asked: Asked) -> None:
    queries = queries_of(ranked)
    assert isinstance(queries, RankedQueries)
    ones = np.ones(4)
    best = RankedQueries.from_ranks(queries.atoms[:4], queries.positions[:4].astype(np.int64), Ranks(ones, ones))
    assert [part.heading for part in example_answers(ranked.trained, best, [])] == ["Surest right answers"]
    assert {other for _, other in asked} == {None}
