"""What requests may contain, and the limits on them."""

import pytest
from pydantic import BaseModel, ValidationError

from r2n.serving.session import (
    QUERIES,
    TEXT,
    CheckRequest,
    ExplainRequest,
    QueryRequest,
    WhatIfRequest,
)


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
