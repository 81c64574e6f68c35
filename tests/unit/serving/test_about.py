"""The search of constants, all about one constant, and the run with its rules and its report."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from r2n.model.model import Model
from r2n.model.run import prepare_run
from r2n.serving.queries import AboutAnswer, about_constant, report_rules, search_constants
from r2n.serving.session import Limits, Session
from r2n.serving.workers import run_job
from tests.command_line import document
from tests.featured_problem import featured_problem
from tests.served_problem import LONG, MARKUP, STRANGE


def names(session: Session, search: str, domain: str | None = None) -> list[str]:
    found = search_constants(session, {"search": search, "domain": domain, "limit": 20})
    return [constant.name for constant in found.constants]


def test_constants_are_found_by_the_begin_then_by_a_part_then_by_a_similar_name(session: Session) -> None:
    assert names(session, "n")[:9] == [*(f"n{i}" for i in range(8)), "north"]
    assert MARKUP in names(session, "N")
    assert names(session, "ONERROR") == [MARKUP]
    assert names(session, "norht") == ["north"]
    assert names(session, "zzzzzzzz") == []
    assert names(session, "", "valley") == ["north", "south"]
    assert names(session, LONG[:100]) == [LONG]


def test_only_the_first_are_sent_and_all_are_counted(session: Session) -> None:
    found = search_constants(session, {"search": "", "limit": 3})
    assert (found.total, len(found.constants)) == (len(session.model.base.language.constants), 3)
    assert found.constants[0].domains == ("town",)


def test_an_unknown_domain_or_constant_is_an_error_with_a_hint(session: Session) -> None:
    [reply] = run_job(session, "constants", {"search": "", "domain": "vally", "limit": 3})
    error = json.loads(reply.body)
    assert (reply.status, error["where"], error["hint"]) == (422, "domain", "did you mean 'valley'?")
    [reply] = run_job(session, "about", {"name": "norht", "top": 1})
    assert (reply.status, json.loads(reply.body)["hint"]) == (404, "did you mean 'north'?")


def about(session: Session, name: str, top: int = 10) -> AboutAnswer:
    return about_constant(session, {"name": name, "top": top})


def test_its_facts_are_all_that_name_it(session: Session) -> None:
    found = about(session, "n0")
    train = session.model.problem.train
    expected = [atom for atom in session.model.base.names(train.atoms) if "(n0, " in atom or ", n0)" in atom]
    assert [fact["atom"] for fact in found.facts] == expected
    assert found.facts_total == len(expected)
    assert found.facts[0] == {"atom": "liesIn(n0, north)", "predicate": "liesIn", "truth": True}
    assert found.domains == ("town",)


def test_its_predictions_are_the_answers_to_its_queries(session: Session, narrow: Session) -> None:
    [prediction] = about(session, "n2", top=1).predictions  # `near` is closed
    assert prediction.question == "liesIn(n2, ?)"
    assert prediction.answers == session.model.predict("liesIn(n2, ?)", top=1, unknown=True).items
    assert about(narrow, "north").predictions == ()  # too many atoms


def test_around_it_are_its_neighbours_and_what_links_them(session: Session) -> None:
    drawn = about(session, "north").neighbourhood
    assert drawn["constants"][0] == {"name": "north", "known": True}
    members = {constant["name"] for constant in drawn["constants"]}
    assert {link["from"] for link in drawn["links"]} | {link["to"] for link in drawn["links"]} <= members
    link = {"predicate": "near", "from": "n0", "to": "n1", "atom": "near(n0, n1)", "truth": True, "probability": 1.0}
    assert link in drawn["links"]
    assert all(link["probability"] >= 0.5 for link in drawn["links"] if link["truth"] is None)


@pytest.mark.parametrize("name", STRANGE)
def test_a_strange_name_is_itself(session: Session, name: str) -> None:
    found = about(session, name)
    assert name in {constant["name"] for constant in found.neighbourhood["constants"]}
    assert session.model.predict(found.predictions[0].question)[0].constants[0] == name


def test_features_are_sent_and_predicates_of_any_arity_are_asked() -> None:
    problem = featured_problem()
    options = problem.options.model.model_copy(update={"input": "distmult", "dim": 4})
    predictor = Model.from_run(prepare_run(problem, problem.options.model_copy(update={"model": options}), seed=0))
    found = about(Session(Path(), predictor, Limits()), "p1")
    assert found.features == [
        {"domain": "paper", "name": "text", "text": "cats and dogs", "size": None},
        {"domain": "paper", "name": "vector", "text": None, "size": 2},
    ]
    assert {"good(p1)", "between(p1, p2, p3)"} <= {fact["atom"] for fact in found.facts}
    around = {(link["from"], link["to"]) for link in found.neighbourhood["links"] if link["truth"]}
    assert {("p1", "p2"), ("p2", "p3")} <= around


def reported(session: Session, job: str) -> Any:
    return json.loads(run_job(session, job, {})[0].body)


def test_the_run_is_described(session: Session) -> None:
    found = reported(session, "run")
    assert (found["problem"], found["layers"], found["networks"], found["evidence_input"]) == ("towns", 1, 1, "add")
    assert found["domains"][1] == {"name": "valley", "constants": 2, "parts": []}
    assert found["predicates"][1] == {"name": "near", "domains": ["town", "town"], "closed": True}
    assert found["rules"][0]["name"] == "neighbours"
    assert found["limits"] == asdict(session.limits)


def test_the_rules_and_the_report_are_those_of_the_command_line(session: Session) -> None:
    assert json.loads(json.dumps(report_rules(session, {}))) == document("rules", session.folder)
    found = reported(session, "report")
    assert [part["report"]["split"] for part in found["results"]] == ["valid", "test"]
    reports = document("report", session.folder)["reports"]
    assert [part["report"]["metrics"] for part in found["results"]] == [part["metrics"] for part in reports]
    curve = found["networks"][0][0]
    assert (curve["name"], len(curve["epochs"])) == ("loss", len(curve["values"]))
