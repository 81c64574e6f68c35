"""Questions and their answers."""

import re

import numpy as np
import pytest

from r2n.data.problem import Problem
from r2n.errors import DataError
from r2n.model.answers import Question
from r2n.model.model import Model
from r2n.model.run import Run


def names(problem: Problem, question: str) -> list[str]:
    base = problem.knowledge.base
    return base.names(Question.parse(base, question).codes())


def test_a_ground_atom_asks_for_itself(toy: Problem) -> None:
    assert names(toy, "liesIn(n1, north)") == ["liesIn(n1, north)"]
    assert names(toy, ' "liesIn" ( "n1" , \'north\' ) . ') == ["liesIn(n1, north)"]


def test_one_and_several_question_marks(toy: Problem) -> None:
    assert names(toy, "liesIn(n1, ?)") == ["liesIn(n1, north)", "liesIn(n1, south)"]
    assert len(names(toy, "liesIn(?, ?)")) == 32
    assert len(names(toy, "near(?, ?)")) == 256


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ("liesIn", r'is no question\n.*with \? for what is asked: "liesIn\(n0, \?\)"'),
        ("lieIn(n1, ?)", "unknown predicate 'lieIn'(?s:.*)\n  did you mean 'liesIn'"),
        ("liesIn(n1)", "takes 2 constants, the question has 1"),
        ("liesIn(n1, ?, ?)", "takes 2 constants, the question has 3"),
        ("liesIn(n99, ?)", "unknown constant 'n99'"),
        ("liesIn(north, ?)", "'north' is outside domain 'town'"),
        ("liesIn(n1, )", "a constant or \\? was expected"),
        ("liesIn(, n1)", "a constant or \\? was expected"),
        ("liesIn()", "a constant or \\? was expected"),
    ],
)
def test_a_bad_question_is_refused(question: str, message: str, toy: Problem) -> None:
    with pytest.raises(DataError, match=message):
        Question.parse(toy.knowledge.base, question).codes()


def test_too_large_a_question_is_refused(toy: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("r2n.model.answers.MOST_ASKED", 10)
    with pytest.raises(DataError, match="asks for 32 atoms"):
        Question.parse(toy.knowledge.base, "liesIn(?, ?)").codes()


def test_answers_come_with_the_most_probable_first(toy_run: Run) -> None:
    predictor = Model.from_run(toy_run)
    answers = predictor.predict("liesIn(n5, ?)")
    assert answers[0].atom == "liesIn(n5, north)"
    assert answers[0].probability > answers[1].probability
    assert answers[0].known is None
    assert answers[0].reached
    assert predictor.predict("liesIn(n1, north)")[0].known is True
    assert not predictor.predict("near(n1, s1)")[0].reached


@pytest.mark.parametrize("question", ["liesIn(n1, north)", "liesIn(n1, ?)", "liesIn(?, ?)", "near(?, n1)"])
def test_which_atoms_a_question_asks_for(question: str, toy: Problem) -> None:
    base = toy.knowledge.base
    asked = Question.parse(base, question)
    everything = np.arange(base.size)
    assert everything[asked.asks_for(everything)].tolist() == asked.codes().tolist()
    assert len(asked) == len(asked.codes())


def test_answers_are_a_sequence(toy_run: Run) -> None:
    answers = Model.from_run(toy_run).predict("liesIn(n5, ?)")
    assert (len(answers), list(answers), answers[1:]) == (2, [answers[0], answers[1]], (answers[1],))
    assert (answers.asked, answers.refused) == (2, 0)


@pytest.mark.parametrize("variable", ["X", "x", "Town", "_", "?who"])
def test_a_variable_is_answered_with_how_to_ask(variable: str, toy: Problem) -> None:
    with pytest.raises(DataError, match=f"unknown constant '{re.escape(variable)}'") as caught:
        Question.parse(toy.knowledge.base, f"liesIn(n5, {variable})")
    assert "write ? for what is asked: liesIn(..., ?)" in str(caught.value)


def test_a_misspelt_constant_is_answered_with_its_neighbour_alone(toy: Problem) -> None:
    with pytest.raises(DataError) as caught:
        Question.parse(toy.knowledge.base, "liesIn(n5, nort)")
    assert "did you mean 'north'?" in str(caught.value)
    assert "write ?" not in str(caught.value)


def test_an_answer_can_be_asked_again(toy_run: Run) -> None:
    predictor = Model.from_run(toy_run).with_facts(['near(n5, "a, b")'])
    found = next(item for item in predictor.predict("near(n5, ?)") if item.constants[1] == "a, b")
    assert (found.atom, found.predicate, found.question) == ('near(n5, "a, b")', "near", 'near(n5, "a, b")')
    assert predictor.predict(found.question)[0] == found


@pytest.mark.parametrize(
    ("question", "below"),
    [
        ("lieIn(n1, ?)", "lieIn"),
        (' "lies\\tIn" ( n1 , ?)', '"lies'),
        ("liesIn( n99, ?)", "n99"),
        ('liesIn(?, "up (far)")', '"up'),
        ("liesIn(n1, n2)", "n2"),
        ("liesIn( n1)", "n1"),
    ],
)
def test_what_is_wrong_with_a_question_is_pointed_at(question: str, below: str, toy: Problem) -> None:
    with pytest.raises(DataError) as caught:
        Question.parse(toy.knowledge.base, question)
    assert caught.value.where is not None
    assert caught.value.where.drawn() == [f"  | {question}", "  | " + " " * question.index(below) + "^"]
