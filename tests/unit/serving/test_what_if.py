"""Which answers change, before and after."""

import json
from dataclasses import asdict
from typing import Any

import numpy as np

from r2n.model.answers import Answer
from r2n.serving.limits import Limits
from r2n.serving.session import Session
from r2n.serving.what_if import MOVED, carried, what_if
from tests.command_line import document


def asked(session: Session, **more: Any) -> Any:
    request = {"with": [], "without": [], "constants": {}, "without_rules": [], "queries": [], "top": 50, **more}
    reply = what_if(session, request)
    return {"status": reply.status, **json.loads(reply.body)}


def told(answer: Answer) -> dict[str, Any]:
    return {**asdict(answer), "constants": list(answer.constants)}


def test_answers_are_those_of_predict_before_and_with_the_change(session: Session) -> None:
    found = asked(session, without=["liesIn(n1, north)"], queries=["liesIn(?, north)"])
    for side, options in (("before", []), ("after", ["--without", "liesIn(n1, north)"])):
        expected = document("predict", session.folder, "liesIn(?, north)", "--top", "50", *options)["answers"]
        assert {part["atom"]: part[side] for part in found["changes"]} == {part["atom"]: part for part in expected}


def test_without_a_query_what_changes_most_comes_first(session: Session) -> None:
    found = asked(session, without=["liesIn(n1, north)"])
    moves = [abs(part["after"]["probability"] - part["before"]["probability"]) for part in found["changes"]]
    assert moves == sorted(moves, reverse=True)
    assert min(moves) >= MOVED
    assert found["changes"][0]["atom"] == "liesIn(n1, north)"
    assert {part["atom"].partition("(")[0] for part in found["changes"]} == {"liesIn"}  # the open predicate
    assert found["compared"] >= found["moved"] == len(found["changes"])
    every = asked(session, without=["liesIn(n1, north)"], queries=["liesIn(?, ?)"])
    assert every["moved"] < every["compared"] == len(every["changes"])
    assert asked(session, without=["liesIn(n1, north)"], top=1)["changes"] == found["changes"][:1]


def test_where_nothing_changes_nothing_is_told(session: Session) -> None:
    assert asked(session)["changes"] == []
    found = asked(session, without_rules=["neighbours"], queries=["near(?, n0)"])
    assert (found["moved"], len(found["changes"])) == (0, found["compared"])


def test_a_rule_can_be_left_out(session: Session) -> None:
    found = asked(session, without_rules=["neighbours"], queries=["liesIn(n2, north)"])["changes"][0]
    predictor = session.predictor
    assert found["before"] == told(predictor.predict("liesIn(n2, north)")[0])
    assert found["after"] == told(predictor.without_rules(["neighbours"]).predict("liesIn(n2, north)")[0])


def test_a_new_constant_has_no_answer_before(session: Session) -> None:
    facts = ["near(atlantis, n0)", "near(n0, atlantis)"]
    found = asked(session, **{"with": facts}, queries=["liesIn(atlantis, ?)", "liesIn(n2, ?)"])
    by_atom = {part["atom"]: part for part in found["changes"]}
    expected = session.predictor.with_facts(facts).predict("liesIn(atlantis, ?)")
    for answer in expected:
        assert by_atom[answer.atom]["before"] is None
        assert by_atom[answer.atom]["after"] == told(answer)
    assert by_atom["liesIn(n2, north)"]["before"] is not None
    every = asked(session, **{"with": facts})
    assert "liesIn(atlantis, north)" in {part["atom"] for part in every["changes"]}


def test_a_wrong_query_is_named(session: Session) -> None:
    found = asked(session, queries=["liesIn(n2, ?)", "liesIn(n2"])
    assert (found["status"], found["where"]) == (422, "queries[1]")


def test_a_question_that_has_no_answer_afterwards_is_named(session: Session) -> None:
    found = asked(session, constants={"town": ["atlantis"]}, queries=["liesIn(n2, ?)", "liesIn(atlantis, ?)"])
    assert (found["status"], found["where"]) == (422, "queries[1]")


def test_where_there_are_too_many_those_near_the_change_are_compared(session: Session) -> None:
    narrow = Session(session.folder, session.predictor, Limits(candidates=30))
    found = asked(narrow, without=["liesIn(n1, north)"])
    assert 0 < found["compared"] <= 30
    assert found["changes"][0]["atom"] == "liesIn(n1, north)"


def test_codes_are_carried_to_another_language_and_back(session: Session) -> None:
    old = session.predictor.base
    new = session.predictor.with_facts([], domains={"town": ["atlantis"]}).base
    codes = np.arange(old.size)
    there = carried(codes, old, new)
    assert new.names(there) == old.names(codes)
    np.testing.assert_array_equal(carried(there, new, old), codes)
    back = carried(np.arange(new.size), new, old)
    strange = ["atlantis" in name for name in new.names(np.arange(new.size))]
    np.testing.assert_array_equal(back < 0, strange)
