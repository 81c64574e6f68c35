"""What a worker hands back."""

import json

from r2n.errors import DataError, Location
from r2n.serving.replies import JSON, Reply, caret_of, refusal, to_json


def test_what_is_not_finite_becomes_null_and_the_rest_stays() -> None:
    document = {"a": [1.5, float("nan")], "b": (float("inf"), "x"), "c": {"d": -float("inf")}}
    assert json.loads(to_json(document)) == {"a": [1.5, None], "b": [None, "x"], "c": {"d": None}}


def test_names_are_ascii_on_the_way_and_themselves_at_its_end() -> None:
    name = "\u202e<b>\ud800\u2028"
    body = to_json({"name": name})
    assert body.isascii()
    assert json.loads(body)["name"] == name


def test_an_error_says_what_where_and_what_to_do() -> None:
    reply = refusal(DataError("no", where=Location(None, 1, 3, "p(,"), hint="yes"), at="queries[2]")
    assert (reply.status, reply.kind) == (422, JSON)
    expected = {"what": "no", "where": "queries[2]", "hint": "yes", "caret": {"line": "p(,", "column": 3}}
    assert json.loads(reply.body) == expected


def test_an_error_that_names_its_own_place_keeps_it() -> None:
    reply = refusal(DataError("no", where=Location('with "p(a)"')), 404, at="queries[0]")
    assert reply.status == 404
    assert json.loads(reply.body) == {"what": "no", "where": 'with "p(a)"', "hint": None, "caret": None}


def test_without_a_column_there_is_no_caret() -> None:
    assert caret_of(None) is None
    assert caret_of(Location("f", 1)) is None
    assert Reply.of([]).body == b"[]"
