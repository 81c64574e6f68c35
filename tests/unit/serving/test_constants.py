"""Constants by what is typed of their names, and how a query may go on."""

import json
from typing import Any

import pytest

from r2n.serving.constants import check_query, domains_of, find_constant, positions_of, search_constants
from r2n.serving.replies import Reply
from r2n.serving.session import Session
from tests.served_problem import LONG, MARKUP


def found(session: Session, search: str, domain: str | None = None, limit: int = 20) -> Any:
    reply = search_constants(session, {"search": search, "domain": domain, "limit": limit})
    return json.loads(reply.body)


def names(document: Any) -> list[str]:
    return [constant["name"] for constant in document["constants"]]


def test_names_that_begin_so_come_before_those_that_have_it_inside(session: Session) -> None:
    assert names(found(session, "n"))[:9] == [*(f"n{i}" for i in range(8)), "north"]
    assert MARKUP in names(found(session, "N"))
    assert names(found(session, "ONERROR")) == [MARKUP]


def test_a_name_that_is_spelt_nearly_so_is_found_where_none_fits(session: Session) -> None:
    assert names(found(session, "norht")) == ["north"]
    assert names(found(session, "zzzzzzzz")) == []


def test_only_some_are_told_and_all_are_counted(session: Session) -> None:
    document = found(session, "", limit=3)
    assert document["total"] == len(session.predictor.base.language.constants)
    assert len(document["constants"]) == 3
    assert found(session, LONG[:100])["constants"][0] == {"name": LONG, "domains": ["town"]}


def test_a_domain_narrows_it_and_an_unknown_one_is_refused(session: Session) -> None:
    assert names(found(session, "", "valley")) == ["north", "south"]
    error = found(session, "", "vally")
    assert (error["where"], error["hint"]) == ("domain", "did you mean 'valley'?")


def test_a_query_is_checked_and_goes_on(session: Session) -> None:
    document = json.loads(check_query(session, {"query": "liesIn(n0, no"}).body)
    assert not document["ok"]
    assert document["at"] == len("liesIn(n0, ")
    assert document["completions"][0].startswith("north")
    document = json.loads(check_query(session, {"query": "liesIn(n0, ?)"}).body)
    assert document["ok"]
    assert document["what"] is None


def test_a_wrong_query_has_its_caret(session: Session) -> None:
    document = json.loads(check_query(session, {"query": "liesIn(n0,, ?)"}).body)
    assert document["caret"] == {"line": "liesIn(n0,, ?)", "column": 11}


def test_a_constant_stands_where_its_domains_are(session: Session) -> None:
    language = session.predictor.base.language
    town, valley = (language.constant_id(name) for name in ("n0", "south"))
    assert domains_of(language, valley) == ["valley"]
    places = {
        (language.predicates[i].name, position)
        for constant in (town,)
        for i, position in positions_of(language, constant)
    }
    assert places == {("liesIn", 0), ("near", 0), ("near", 1)}
    assert find_constant(language, "south") == valley
    missing = find_constant(language, "sout")
    assert isinstance(missing, Reply)
    assert missing.status == 404


@pytest.mark.parametrize("text", ["", "(", "liesIn", "liesIn(", 'liesIn("', "!", "\u0000", "liesIn(n0, north))"])
def test_whatever_is_typed_is_answered(session: Session, text: str) -> None:
    assert check_query(session, {"query": text}).status == 200
