"""What answers say is what their schemas say."""

import json
from typing import Any

import pytest
from pydantic import BaseModel

from r2n.serving.about import about_constant
from r2n.serving.answers import (
    AboutAnswer,
    CheckAnswer,
    ConstantsAnswer,
    ExplainAnswer,
    Failure,
    QueryAnswer,
    RunAnswer,
    WhatIfAnswer,
)
from r2n.serving.constants import check_query, search_constants
from r2n.serving.explaining import explain_atom
from r2n.serving.queries import answer_queries
from r2n.serving.replies import Reply
from r2n.serving.reports import describe_run
from r2n.serving.session import Session
from r2n.serving.what_if import what_if

ATOM = {"atom": "liesIn(n2, north)", "against": "liesIn(n2, south)", "depth": 2, "top": 5}
CHANGE = {"with": [], "without": ["liesIn(n1, north)"], "constants": {}, "without_rules": [], "queries": [], "top": 5}


def answered(session: Session, asked: dict[str, Any]) -> Reply:
    return answer_queries(session, [asked])[0]


@pytest.mark.parametrize(
    ("model", "job", "asked"),
    [
        (AboutAnswer, about_constant, {"name": "n2", "top": 3}),
        (CheckAnswer, check_query, {"query": "liesIn(n2,, "}),
        (ConstantsAnswer, search_constants, {"search": "n", "domain": None, "limit": 5}),
        (ExplainAnswer, explain_atom, ATOM),
        (
            QueryAnswer,
            lambda session, asked: answer_queries(session, [asked])[0],
            {"queries": ["near(n0, ?)"], "top": 3},
        ),
        (Failure, lambda session, asked: answer_queries(session, [asked])[0], {"queries": ["near(,)"], "top": 3}),
        (RunAnswer, describe_run, {}),
        (WhatIfAnswer, what_if, CHANGE),
    ],
)
def test_an_answer_is_one_of_its_schema(model: type[BaseModel], job: Any, asked: Any, session: Session) -> None:
    document = json.loads(job(session, asked).body)
    read = model.model_validate(document)
    assert set(document) == {field.alias or name for name, field in type(read).model_fields.items()}
