"""All that is known and predicted of one constant."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from r2n.model.model import Model
from r2n.model.run import prepare_run
from r2n.serving.about import about_constant
from r2n.serving.limits import Limits
from r2n.serving.session import Session
from tests.featured_problem import featured_problem
from tests.served_problem import SLASHED, STRANGE


def about(session: Session, name: str, top: int = 10) -> Any:
    reply = about_constant(session, {"name": name, "top": top})
    assert reply.status == 200, reply.body
    return json.loads(reply.body)


def test_its_facts_are_all_that_name_it(session: Session) -> None:
    document = about(session, "n0")
    train = session.predictor.problem.train
    named = [atom for atom in session.predictor.base.names(train.atoms) if "(n0, " in atom or ", n0)" in atom]
    assert [fact["atom"] for fact in document["facts"]] == named
    assert document["facts_total"] == len(named)
    assert document["facts"][0] == {"atom": "liesIn(n0, north)", "predicate": "liesIn", "truth": True}
    assert document["domains"] == ["town"]


def test_its_predictions_are_the_answers_to_its_questions(session: Session) -> None:
    document = about(session, "n2", top=1)
    assert [part["question"] for part in document["predictions"]] == ["liesIn(n2, ?)"]  # `near` is closed
    expected = session.predictor.predict("liesIn(n2, ?)", top=1, unknown=True)
    answer = asdict(expected[0])
    assert document["predictions"][0]["answers"] == [{**answer, "constants": list(answer["constants"])}]


def test_around_it_are_its_neighbours_and_what_links_them(session: Session) -> None:
    drawn = about(session, "north")["neighbourhood"]
    assert drawn["constants"][0] == {"name": "north", "known": True}
    names = {constant["name"] for constant in drawn["constants"]}
    assert {link["from"] for link in drawn["links"]} | {link["to"] for link in drawn["links"]} <= names
    assert {
        "predicate": "near",
        "from": "n0",
        "to": "n1",
        "atom": "near(n0, n1)",
        "truth": True,
        "probability": 1.0,
    } in (drawn["links"])
    predicted = [link for link in drawn["links"] if link["truth"] is None]
    assert all(link["probability"] >= 0.5 for link in predicted)


@pytest.mark.parametrize("name", STRANGE)
def test_a_strange_name_is_itself(session: Session, name: str) -> None:
    document = about(session, name)
    assert document["name"] == name
    assert name in {constant["name"] for constant in document["neighbourhood"]["constants"]}
    question = document["predictions"][0]["question"]
    assert session.predictor.predict(question)[0].constants[0] == name


def test_one_that_is_not_there_is_not_found(session: Session) -> None:
    reply = about_constant(session, {"name": "norht", "top": 1})
    assert reply.status == 404
    assert json.loads(reply.body)["hint"] == "did you mean 'north'?"


def test_what_would_ask_for_too_many_atoms_is_left_out(session: Session) -> None:
    narrow = Session(session.folder, session.predictor, Limits(candidates=1))
    assert about(narrow, SLASHED)["predictions"] == []


def test_features_are_told_and_predicates_of_any_arity_are_asked() -> None:
    problem = featured_problem()
    made = problem.options.model.model_copy(update={"input": "distmult", "dim": 4})
    predictor = Model.from_run(prepare_run(problem, problem.options.model_copy(update={"model": made}), seed=0))
    document = about(Session(Path(), predictor, Limits()), "p1")
    assert document["features"] == [
        {"domain": "paper", "name": "text", "text": "cats and dogs", "size": None},
        {"domain": "paper", "name": "vector", "text": None, "size": 2},
    ]
    facts = [fact["atom"] for fact in document["facts"]]
    assert {"good(p1)", "between(p1, p2, p3)"} <= set(facts)
    around = [(link["from"], link["to"]) for link in document["neighbourhood"]["links"] if link["truth"]]
    assert {("p1", "p2"), ("p2", "p3")} <= set(around)
