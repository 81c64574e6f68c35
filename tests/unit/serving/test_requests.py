"""What requests may contain, and the limits on them."""

import pytest
from pydantic import BaseModel, ValidationError

from r2n.serving.requests import (
    CHANGES,
    QUERIES,
    TEXT,
    CheckRequest,
    ExplainRequest,
    Limits,
    QueryRequest,
    WhatIfRequest,
)


def test_every_limit_is_described() -> None:
    described = Limits(seconds=2.5, memory=7).to_markdown()
    assert [line.split("`")[1] for line in described.splitlines()] == list(Limits().to_dict())
    assert "2.5 seconds to compute an answer" in described
    assert "7 bytes of memory" in described


def test_a_request_has_all_fields_by_their_names() -> None:
    request = QueryRequest.model_validate({"queries": ["p(?)"], "with": ["q(a)"]}).model_dump(by_alias=True)
    assert request["with"] == ["q(a)"]
    assert set(CHANGES) <= set(request)
    assert (request["top"], request["unknown"], request["everything"]) == (10, False, False)


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
