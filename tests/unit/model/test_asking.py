"""Several questions in one pass."""

from r2n.errors import DataError
from r2n.model.answers import Question
from r2n.model.model import Asked, Model, Told, ask_together
from r2n.model.run import Run


def test_each_is_answered_as_alone(toy_run: Run) -> None:
    predictor = Model.from_run(toy_run)
    texts = ["liesIn(n2, ?)", "liesIn(?, south)", "near(n0, ?)", "liesIn(n0, north)"]
    asked = [Asked(Question.parse(predictor.base, text), top=3, unknown=i == 1) for i, text in enumerate(texts)]
    for i, (text, told) in enumerate(zip(texts, ask_together(predictor, asked), strict=True)):
        assert isinstance(told, Told)
        assert told.answers(predictor) == predictor.predict(text, top=3, unknown=i == 1)


def test_one_that_has_no_answer_takes_no_other_with_it(toy_run: Run) -> None:
    predictor = Model.from_run(toy_run).with_facts([], domains={"town": ["atlantis"]})
    asked = [Asked(Question.parse(predictor.base, text)) for text in ("liesIn(atlantis, ?)", "liesIn(n2, ?)")]
    first, second = ask_together(predictor, asked)
    assert isinstance(first, DataError)
    assert isinstance(second, Told)
    alone = ask_together(predictor, asked[:1])
    assert [type(part) for part in alone] == [DataError]
    assert ask_together(predictor, []) == []
