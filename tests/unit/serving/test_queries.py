"""Requests about atoms (queries, explanations, what-if, checks), about constants, and about the run."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from r2n.model.model import Model
from r2n.model.questions import questions_table
from r2n.model.run import prepare_run
from r2n.serving.queries import (
    MOVED,
    AboutAnswer,
    ExplainAnswer,
    about_constant,
    answer_queries,
    check_query,
    report_rules,
    search_constants,
)
from r2n.serving.session import ARROW, JSON_LINES, Caret, Limits, Reply, Session
from r2n.serving.workers import run_job
from tests.command_line import document
from tests.featured_problem import featured_problem
from tests.served_problem import LONG, MARKUP, STRANGE


def query(*queries: str, **more: Any) -> dict[str, Any]:
    return {"queries": list(queries), "top": 10, "unknown": False, "everything": False, **more}


def one_reply(session: Session, *queries: str, **more: Any) -> Reply:
    return answer_queries(session, [query(*queries, **more)])[0]


def answered(session: Session, *queries: str, **more: Any) -> Any:
    reply = one_reply(session, *queries, **more)
    assert reply.status == 200, reply.body
    return json.loads(reply.body)


def refused(reply: Reply) -> tuple[int, str, str]:
    error = json.loads(reply.body)
    return reply.status, error["where"], error["what"]


# queries


@pytest.mark.parametrize(
    ("options", "more"),
    [([], {}), (["--unknown", "--top", "3"], {"unknown": True, "top": 3}), (["--all"], {"everything": True})],
)
def test_an_answer_is_that_of_the_command_line(session: Session, options: list[str], more: dict[str, Any]) -> None:
    expected = document("predict", session.folder, "liesIn(?, north)", "--top", "10", *options)
    found = answered(session, "liesIn(?, north)", **more)
    assert {**found["results"][0], "calibration": found["calibration"]} == expected


def test_several_requests_in_one_pass_are_answered_as_each_alone(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = [query("liesIn(n2, ?)", "near(n0, ?)"), query("liesIn(itly, ?)"), query("liesIn(?, south)", top=2)]
    alone = [answer_queries(session, [request])[0] for request in requests]
    passes, columns = [], Model._columns
    monkeypatch.setattr(Model, "_columns", lambda self, codes: passes.append(1) or columns(self, codes))
    together = answer_queries(session, requests)
    assert together == alone
    assert len(passes) == 1
    assert [reply.status for reply in together] == [200, 422, 200]


def test_a_wrong_query_is_named_by_its_index_with_a_caret(session: Session) -> None:
    reply = one_reply(session, "liesIn(n0, ?)", "liesIn(n0,, ?)")
    assert refused(reply) == (422, "queries[1]", "a constant or ? was expected")
    assert json.loads(reply.body)["caret"] == {"line": "liesIn(n0,, ?)", "column": 11}


def test_a_query_without_any_answer_says_why(session: Session) -> None:
    status, where, what = refused(one_reply(session, "liesIn(atlantis, ?)", constants={"town": ["atlantis"]}))
    assert (status, where) == (422, "queries[0]")
    assert "'atlantis' is no constant of the training" in what


def test_more_atoms_than_a_request_may_ask_for_are_refused(narrow: Session) -> None:
    assert one_reply(narrow, "liesIn(n0, ?)", "liesIn(n1, ?)").status == 200
    reply = one_reply(narrow, "liesIn(n0, ?)", "liesIn(n1, ?)", "liesIn(n2, ?)")
    assert refused(reply) == (422, "queries[2]", "the queries ask for 6 atoms up to here")


def test_lines_have_an_answer_each_with_its_question(session: Session) -> None:
    found = answered(session, "liesIn(n2, ?)", "liesIn(n5, ?)")
    reply = one_reply(session, "liesIn(n2, ?)", "liesIn(n5, ?)", accept=JSON_LINES)
    assert reply.kind == JSON_LINES
    expected = [{"question": part["question"], **one} for part in found["results"] for one in part["answers"]]
    assert [json.loads(line) for line in reply.body.splitlines()] == expected


def test_arrow_has_the_columns_of_the_table(session: Session) -> None:
    reply = one_reply(session, "liesIn(n2, ?)", "near(n0, s0)", accept=ARROW)
    assert reply.kind == ARROW
    found = pa.ipc.open_stream(reply.body).read_all()
    first = questions_table(session.model, [session.model.predict("liesIn(n2, ?)")], ["liesIn"])
    assert found.schema.names == [*first.schema.names[:3], "argument_1", "argument_2", *first.schema.names[5:]]
    assert found.slice(0, first.num_rows).to_pydict() == first.rename_columns(found.schema.names).to_pydict()
    assert found["row"].to_pylist() == [1, 1, 2]


def test_a_query_is_checked_and_completed(session: Session) -> None:
    found = check_query(session, {"query": "liesIn(n0, no"})
    assert (found.ok, found.at) == (False, len("liesIn(n0, "))
    assert found.completions[0].startswith("north")
    found = check_query(session, {"query": "liesIn(n0, ?)"})
    assert (found.ok, found.what) == (True, None)
    assert check_query(session, {"query": "liesIn(n0,, ?)"}).caret == Caret("liesIn(n0,, ?)", 11)
    for text in ("", "(", "liesIn", "liesIn(", 'liesIn("', "!", "\u0000", "liesIn(n0, north))"):
        assert not check_query(session, {"query": text}).ok


# explanations


def explained(session: Session, **more: Any) -> Any:
    request = {"atom": "liesIn(n2, north)", "against": None, "depth": 2, "top": 5, **more}
    return json.loads(run_job(session, "explain", request)[0].body)


def test_an_explanation_is_the_document_of_the_command_line_and_a_drawing(session: Session) -> None:
    found = explained(session, against="liesIn(n2, south)")
    assert set(ExplainAnswer.model_validate(found).model_dump()) == set(found)
    drawing = found.pop("drawing")
    assert found == document("explain", session.folder, "liesIn(n2, north)", "--against", "liesIn(n2, south)")
    assert drawing["nodes"][0]["of"] == "liesIn(n2, north)"
    assert drawing["svg"].startswith("<svg")


def test_what_a_box_switches_off_can_be_left_out(session: Session) -> None:
    found = explained(session)
    nodes = found["drawing"]["nodes"]
    facts = [node["fact"] for node in nodes if node["fact"]]
    rules = [node["of"] for node in nodes if node["kind"] == "rule"]
    assert facts
    assert explained(session, without=facts[:1])["logit"] != found["logit"]
    assert set(rules) == {"neighbours"}
    assert explained(session, without_rules=rules[:1])["reasons"] == []


# what if


def compared(session: Session, **more: Any) -> Any:
    request = {"with": [], "without": [], "constants": {}, "without_rules": [], "queries": [], "top": 50, **more}
    [reply] = run_job(session, "what-if", request)
    return {"status": reply.status, **json.loads(reply.body)}


def test_without_a_query_what_changes_most_comes_first(session: Session) -> None:
    found = compared(session, without=["liesIn(n1, north)"])
    moves = [abs(part["after"]["probability"] - part["before"]["probability"]) for part in found["changes"]]
    assert moves == sorted(moves, reverse=True)
    assert min(moves) >= MOVED
    assert found["changes"][0]["atom"] == "liesIn(n1, north)"
    assert {part["atom"].partition("(")[0] for part in found["changes"]} == {"liesIn"}  # the open predicate
    assert found["compared"] >= found["moved"] == len(found["changes"])
    every = compared(session, without=["liesIn(n1, north)"], queries=["liesIn(?, ?)"])
    assert every["moved"] < every["compared"] == len(every["changes"])
    assert compared(session, without=["liesIn(n1, north)"], top=1)["changes"] == found["changes"][:1]


def test_a_new_constant_has_no_answer_before(session: Session) -> None:
    facts = ["near(atlantis, n0)", "near(n0, atlantis)"]
    found = compared(session, **{"with": facts}, queries=["liesIn(atlantis, ?)", "liesIn(n2, ?)"])
    by_atom = {part["atom"]: part for part in found["changes"]}
    for answer in session.model.with_facts(facts).predict("liesIn(atlantis, ?)"):
        expected = {**asdict(answer), "constants": list(answer.constants)}
        assert (by_atom[answer.atom]["before"], by_atom[answer.atom]["after"]) == (None, expected)
    assert by_atom["liesIn(n2, north)"]["before"] is not None
    every = compared(session, **{"with": facts})
    assert "liesIn(atlantis, north)" in {part["atom"] for part in every["changes"]}


def test_a_query_that_is_wrong_or_has_no_answer_afterwards_is_named(session: Session) -> None:
    found = compared(session, queries=["liesIn(n2, ?)", "liesIn(n2"])
    assert (found["status"], found["where"]) == (422, "queries[1]")
    found = compared(session, constants={"town": ["atlantis"]}, queries=["liesIn(n2, ?)", "liesIn(atlantis, ?)"])
    assert (found["status"], found["where"]) == (422, "queries[1]")


def test_if_there_are_too_many_atoms_those_near_the_change_are_compared(session: Session) -> None:
    narrow = Session(session.folder, session.model, Limits(candidates=30))
    found = compared(narrow, without=["liesIn(n1, north)"])
    assert 0 < found["compared"] <= 30
    assert found["changes"][0]["atom"] == "liesIn(n1, north)"


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
    curve = found["curves"][0]
    assert (curve["name"], len(curve["x"])) == ("loss", len(curve["y"]))
