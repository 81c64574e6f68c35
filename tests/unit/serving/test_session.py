"""The loaded run, what requests may contain, the changes that one makes for itself alone, and replies."""

import json
from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from r2n.errors import ConfigError, DataError
from r2n.serving.session import (
    QUERIES,
    TEXT,
    Caret,
    CheckRequest,
    ExplainRequest,
    QueryRequest,
    Session,
    WhatIfRequest,
    to_json,
)


def test_rules_can_be_left_out(session: Session) -> None:
    assert session.changed({"with": [], "constants": {}}) is session.model
    changed = session.changed({"without_rules": ["neighbours"]})
    assert changed.predict("liesIn(n2, north)")[0].logit != session.model.predict("liesIn(n2, north)")[0].logit
    with pytest.raises(ConfigError, match="no rule 'neighbour'"):
        session.changed({"without_rules": ["neighbour"]})


@pytest.mark.parametrize("field", ["with", "without"])
def test_no_file_of_the_server_is_read(session: Session, tmp_path: Path, field: str) -> None:
    table = tmp_path / "facts.tsv"
    table.write_text("n0\tnear\tn3\n")
    with pytest.raises(DataError, match=rf"{field}\[1\] is no fact"):
        session.changed({field: ["liesIn(n0, north)", str(table)]})


def test_errors_name_the_field(session: Session) -> None:
    with pytest.raises(DataError) as caught:
        session.changed({"without": ["liesIn(n2, north)"]})
    assert str(caught.value.where) == 'without "liesIn(n2, north)"'


def test_json_is_ascii_and_finite() -> None:
    name = "\u202e<b>\ud800\u2028"
    body = to_json({"a": [1.5, float("nan")], "b": (float("inf"), name), "c": Caret(name, 1).line})
    assert body.isascii()
    assert json.loads(body) == {"a": [1.5, None], "b": [None, name], "c": name}
    assert json.loads(to_json(Caret(name, 1))) == {"line": name, "column": 1}


@pytest.mark.parametrize("model", [QueryRequest, ExplainRequest, WhatIfRequest, CheckRequest])
def test_examples_are_requests(model: type[BaseModel]) -> None:
    examples = model.model_json_schema()["examples"]
    assert examples
    for example in examples:
        model.model_validate(example)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"queries": []},
        {"queries": "p(?)"},
        {"queries": ["p(?)"] * (QUERIES + 1)},
        {"queries": ["x" * (TEXT + 1)]},
        {"queries": ["p(?)"], "top": 0},
        {"queries": ["p(?)"], "top": "3"},
        {"queries": ["p(?)"], "unknown": 1},
        {"queries": ["p(?)"], "unheard": 1},
        {"queries": ["p(?)"], "constants": {"d": "name"}},
    ],
)
def test_what_the_schema_does_not_have_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        QueryRequest.model_validate(wrong)
