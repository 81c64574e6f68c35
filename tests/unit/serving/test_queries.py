"""The queries of one request, or of several, in one pass."""

import json
from typing import Any

import pyarrow as pa
import pytest

from r2n.model.model import Model
from r2n.model.questions import question_table
from r2n.serving.limits import Limits
from r2n.serving.queries import answer_queries
from r2n.serving.replies import ARROW, JSON_LINES
from r2n.serving.session import Session
from tests.command_line import document
from tests.served_problem import LONG, MARKUP, RIGHT_TO_LEFT, SLASHED


def asked(*queries: str, **more: Any) -> dict[str, Any]:
    return {"queries": list(queries), "top": 10, "unknown": False, "everything": False, **more}


def told(session: Session, request: dict[str, Any]) -> Any:
    reply = answer_queries(session, [request])[0]
    assert reply.status == 200, reply.body
    return json.loads(reply.body)


def test_an_answer_is_that_of_the_command_line(session: Session) -> None:
    for options, more in (
        ([], {}),
        (["--unknown", "--top", "3"], {"unknown": True, "top": 3}),
        (["--all", "--top", "10"], {}),
    ):
        more = {**more, "everything": "--all" in options}
        expected = document("predict", session.folder, "liesIn(?, north)", *options)
        found = told(session, asked("liesIn(?, north)", **more))
        assert {**found["results"][0], "calibration": found["calibration"]} == expected


def test_several_requests_in_one_pass_are_answered_as_each_alone(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = [asked("liesIn(n2, ?)", "near(n0, ?)"), asked("liesIn(itly, ?)"), asked("liesIn(?, south)", top=2)]
    alone = [answer_queries(session, [request])[0] for request in requests]
    passes, columns = [], Model.columns
    monkeypatch.setattr(Model, "columns", lambda self, codes: passes.append(1) or columns(self, codes))
    together = answer_queries(session, requests)
    assert together == alone
    assert len(passes) == 1
    assert [reply.status for reply in together] == [200, 422, 200]


def test_a_wrong_query_is_named_by_its_index_with_a_caret(session: Session) -> None:
    reply = answer_queries(session, [asked("liesIn(n0, ?)", "liesIn(n0,, ?)")])[0]
    assert reply.status == 422
    assert json.loads(reply.body) == {
        "what": "a constant or ? was expected",
        "where": "queries[1]",
        "hint": None,
        "caret": {"line": "liesIn(n0,, ?)", "column": 11},
    }


def test_a_query_without_any_answer_says_why(session: Session) -> None:
    reply = answer_queries(session, [asked("liesIn(atlantis, ?)", constants={"town": ["atlantis"]})])[0]
    assert reply.status == 422
    error = json.loads(reply.body)
    assert error["where"] == "queries[0]"
    assert "'atlantis' is no constant of the training" in error["what"]


def test_more_atoms_than_a_request_may_ask_for_are_refused(session: Session) -> None:
    narrow = Session(session.folder, session.predictor, Limits(candidates=5))
    assert answer_queries(narrow, [asked("liesIn(n0, ?)", "liesIn(n1, ?)")])[0].status == 200
    reply = answer_queries(narrow, [asked("liesIn(n0, ?)", "liesIn(n1, ?)", "liesIn(n2, ?)")])[0]
    assert reply.status == 422
    error = json.loads(reply.body)
    assert (error["what"], error["where"]) == ("the queries ask for 6 atoms up to here", "queries[2]")


def test_lines_have_an_answer_each_with_its_question(session: Session) -> None:
    whole = told(session, asked("liesIn(n2, ?)", "liesIn(n5, ?)"))
    reply = answer_queries(session, [asked("liesIn(n2, ?)", "liesIn(n5, ?)", accept=JSON_LINES)])[0]
    assert reply.kind == JSON_LINES
    expected = [{"question": part["question"], **one} for part in whole["results"] for one in part["answers"]]
    assert [json.loads(line) for line in reply.body.splitlines()] == expected


def test_arrow_has_the_columns_of_the_table(session: Session) -> None:
    reply = answer_queries(session, [asked("liesIn(n2, ?)", "near(n0, s0)", accept=ARROW)])[0]
    assert reply.kind == ARROW
    found = pa.ipc.open_stream(reply.body).read_all()
    first = question_table(session.predictor, "liesIn(n2, ?)")
    assert found.schema.names == [*first.schema.names[:3], "argument_1", "argument_2", *first.schema.names[5:]]
    assert found.slice(0, first.num_rows).to_pydict() == first.rename_columns(found.schema.names).to_pydict()
    assert found["row"].to_pylist() == [1, 1, 2]


@pytest.mark.parametrize("name", [MARKUP, RIGHT_TO_LEFT, LONG, SLASHED])
def test_names_that_mean_something_elsewhere_are_themselves(session: Session, name: str) -> None:
    written = '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
    answers = told(session, asked(f"liesIn({written}, ?)"))["results"][0]["answers"]
    assert {answer["constants"][0] for answer in answers} == {name}
    again = told(session, asked(answers[0]["atom"]))["results"][0]["answers"]
    assert again[0]["constants"][0] == name
