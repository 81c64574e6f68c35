"""Several questions in one pass."""

from r2n.errors import DataError
from r2n.model.answers import Answers, Question
from r2n.model.model import Model
from r2n.model.run import Run


def test_each_is_answered_as_alone(toy_run: Run) -> None:
    model = Model.from_run(toy_run)
    texts = ["liesIn(n2, ?)", "liesIn(?, south)", "near(n0, ?)", "liesIn(n0, north)"]
    questions = [Question.parse(model.base, text) for text in texts]
    for unknown in (False, True):
        found = model.answer_all(questions, top=3, unknown=unknown)
        assert found == [model.predict(text, top=3, unknown=unknown) for text in texts]


def test_one_that_has_no_answer_takes_no_other_with_it(toy_run: Run) -> None:
    model = Model.from_run(toy_run).with_facts([], domains={"town": ["atlantis"]})
    questions = [Question.parse(model.base, text) for text in ("liesIn(atlantis, ?)", "liesIn(n2, ?)")]
    assert [type(part) for part in model.answer_all(questions)] == [DataError, Answers]
    assert [type(part) for part in model.answer_all(questions[:1])] == [DataError]
    assert model.answer_all([]) == []
