"""Which answers a page tells: the surest right ones, and the worst, each with its truth."""

import numpy as np
import pytest

from r2n.data.herbrand import HerbrandBase
from r2n.evaluation.by_query import ClassifiedQueries, RankedQueries
from r2n.evaluation.metrics import Ranks
from r2n.evaluation.ranking import Filter
from r2n.explanation.records import Explanation
from r2n.logic.language import Domain, Language, Predicate
from r2n.model.answers import Question
from r2n.model.model import Model
from r2n.reporting.told_answers import MOST, atom_text, told_answers
from tests.report_samples import explanation
from tests.unit.reporting.conftest import Kept

Asked = list[tuple[str, str | None]]


def asking(asked: Asked):
    """Explains everything alike, and keeps what it was asked."""

    def explain(atom: str, against: str | None) -> Explanation | None:
        asked.append((atom, against))
        return explanation()

    return explain


def queries_of(run: Kept, split: str = "test"):
    return next(report.by_query for report in run.reports if report.split == split)


def test_right_and_wrong_answers_of_a_classification(classified: Kept) -> None:
    predictor, queries, asked = Model.from_run(classified.trained), queries_of(classified), []
    assert isinstance(queries, ClassifiedQueries)
    columns = predictor.columns(queries.atoms)
    truth = np.array([not p > 0.5 for p in columns.network])
    truth[np.argmax(columns.network)] = True  # all but the surest are on the wrong side
    right, wrong = told_answers(predictor, ClassifiedQueries(queries.atoms, truth, queries.logits), asking(asked))
    assert right.heading == "Surest right answers"
    assert wrong.heading == "Surest wrong answers"
    assert [answer.atom for answer in right.answers] == predictor.base.names(
        queries.atoms[[np.argmax(columns.network)]]
    )
    sure = [abs(predictor.predict(answer.atom)[0].logit) for answer in wrong.answers]
    assert sure == sorted(sure, reverse=True)
    assert all(answer.truth == (answer.probability <= 0.5) for answer in wrong.answers)
    assert [atom for atom, _ in asked] == [answer.atom for part in (right, wrong) for answer in part.answers]
    assert {against for _, against in asked} == {None}
    assert all(answer.explanation is not None for answer in right.answers)


def test_where_nothing_is_wrong_the_least_sure_are_told(classified: Kept) -> None:
    predictor, queries = Model.from_run(classified.trained), queries_of(classified)
    assert isinstance(queries, ClassifiedQueries)
    truth = predictor.columns(queries.atoms).network > 0.5
    told = told_answers(predictor, ClassifiedQueries(queries.atoms, truth, queries.logits), lambda *_: None)
    assert told[-1].heading == "Least sure answers"
    first = told[-1].answers[0]
    least = np.argmin(np.abs(queries.logits))
    assert (first.atom, first.truth) == (predictor.base.names(queries.atoms[[least]])[0], truth[least])
    assert first.explanation is None
    assert all(len(part.answers) <= MOST for part in told)


def test_nothing_asked_is_nothing_told(classified: Kept) -> None:
    none = ClassifiedQueries(np.zeros(0, np.int64), np.zeros(0, bool), np.zeros(0))
    assert told_answers(Model.from_run(classified.trained), none, lambda *_: None) == ()


def test_a_ranking_tells_what_stands_first_instead(ranked: Kept) -> None:
    predictor, queries, asked = Model.from_run(ranked.trained), queries_of(ranked), []
    assert isinstance(queries, RankedQueries)
    right, wrong = told_answers(predictor, queries, asking(asked))
    firsts = set(predictor.base.names(queries.atoms[queries.pessimistic == 1]))
    assert {answer.atom for answer in right.answers} <= firsts
    assert wrong.heading == "Farthest from the truth"
    worst = int(np.argmax(queries.realistic))
    assert wrong.answers[0].atom == predictor.base.names(queries.atoms[[worst]])[0]
    assert wrong.answers[0].truth is True
    assert f"rank {queries.realistic[worst]:g} of 14" in wrong.answers[0].words
    (first, truth), *_ = asked[len(right.answers) :]
    assert truth is not None
    assert wrong.answers[0].words.endswith(f"; first stands {first}")


def test_what_is_known_to_be_true_stands_first_nowhere(ranked: Kept) -> None:
    """Of all rows in which a known atom has the highest logit, the first one is told by the best of the others."""
    trained, predictor = ranked.trained, Model.from_run(ranked.trained)
    base, known = trained.problem.knowledge.base, Filter.of(trained.problem).facts
    rows = []
    for code in trained.problem.test.atoms.tolist():
        predicate, (arguments,) = base.decode(np.array([code]))
        terms = [None, base.language.constants[arguments[1]]]
        codes = Question.of(base, base.language.predicates[int(predicate[0])].name, terms).codes()
        scores = trained.scores.asked_at(0)(codes)
        if codes[np.argmax(scores)] != code and codes[np.argmax(scores)] in known:
            rows.append((code, codes, scores))
    assert rows, "no row has a known atom first"
    code, codes, scores = rows[0]
    ranks = np.array([7.0])
    queries = RankedQueries.of(np.array([code]), np.zeros(1, np.int64), Ranks(ranks, ranks))
    asked: Asked = []
    told_answers(predictor, queries, asking(asked))
    others = ~np.isin(codes, known) | (codes == code)
    best = codes[others][np.argmax(scores[others])]
    expected = (atom_text(base, code), None) if best == code else (atom_text(base, int(best)), atom_text(base, code))
    assert asked == [expected]


def test_a_ranking_in_which_all_stand_first_has_no_worst(ranked: Kept) -> None:
    queries = queries_of(ranked)
    assert isinstance(queries, RankedQueries)
    ones = np.ones(4)
    best = RankedQueries.of(queries.atoms[:4], queries.positions[:4].astype(np.int64), Ranks(ones, ones))
    told = told_answers(Model.from_run(ranked.trained), best, lambda *_: None)
    assert [part.heading for part in told] == ["Surest right answers"]


@pytest.mark.parametrize("name", ["italy", "light blue", 'a, "b" (c)', "it's", "?", "éa", "!x"])
def test_an_atom_can_be_read_again(name: str) -> None:
    place = Domain("place")
    base = HerbrandBase(Language.build([place], [Predicate("near to", (place, place))], {"place": [name, "z"]}))
    for code in range(base.size):
        assert Question.parse(base, atom_text(base, code)).codes().tolist() == [code]
