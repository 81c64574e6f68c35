"""Queries, explanations, what-if comparisons, and the check of a query that is being typed."""

import json
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pytest

from r2n.model.model import Model
from r2n.model.questions import questions_table
from r2n.serving.queries import MOVED, ExplainAnswer, answer_queries, check_query
from r2n.serving.session import ARROW, JSON_LINES, Caret, Limits, Reply, Session
from r2n.serving.workers import run_job
from tests.command_line import document


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
    passes, columns = [], Model.columns
    monkeypatch.setattr(Model, "columns", lambda self, codes: passes.append(1) or columns(self, codes))
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
