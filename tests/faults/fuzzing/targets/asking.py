"""A model that is queried: by lines of questions, and by the bodies of requests to `r2n serve`."""

import json
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from pydantic import BaseModel, ValidationError
from starlette.testclient import TestClient

from r2n.errors import R2NError
from r2n.model.model import Model
from r2n.model.questions import complete
from r2n.serving.app import create_app
from r2n.serving.guards import Access
from r2n.serving.session import CheckRequest, ExplainRequest, Limits, QueryRequest, WhatIfRequest
from r2n.serving.session import Session as ServedSession
from r2n.serving.workers import run_job
from tests.faults.fuzzing.target import OPENED, Target, as_text, scratch
from tests.served_problem import write_served_run

ATOMS = (b"liesIn(n1, ?)", b"near(n1, n2)", b"liesIn(n2, north)", b"!", b"?", b"n1", b"north", b"[/]", b"town", b"new")
FIELDS = (
    *(b'"queries": ', b'"with": ', b'"without": ', b'"constants": ', b'"without_rules": ', b'"top": ', b'"unknown": '),
    *(b'"everything": ', b'"atom": ', b'"against": ', b'"depth": ', b'"query": ', b"[]", b"{}", b"null"),
    *(b"true", b"1.0"),
    *(b'["liesIn(n1, ?)"]', b'"near(n1, n3)"', b'{"town": ["new"]}', b'["neighbours"]', b"\\u0000", b"\\ud800", b"NaN"),
    *(b"query\n", b"explain\n", b"what-if\n", b"check\n"),
)
MARKS = (b":why ", b":with ", b":without ", b"\n", b"near(")
HARD_LINES = (
    *(b":why " + b"9" * 5_000, b":" * 60_000, b":why " + b"(" * 60_000, b" " * 60_000),
    *(b":with " + b"near(n1, " * 20_000, b":why \xd9\xa1"),
)
HARD_BODIES = (
    *(b"query\n" + b"[" * 100_000, b"query\n" + b'{"queries":' * 20_000, b'query\n{"top": ' + b"9" * 5_000 + b"}"),
    b'query\n{"queries": [' + b'"liesIn(n1, ?)",' * 999 + b'"near(?, ?)"], "top": 10000}',
    b'query\n{"queries": ["liesIn(' + b"x" * 90_000 + b', ?)"]}',
    b'check\n{"query": "' + b"(" * 90_000 + b'"}',
    b'explain\n{"atom": "liesIn(n1, north)", "depth": 6, "top": 50}',
    b'what-if\n{"with": [' + b", ".join(b'"near(n1, m%d)"' % i for i in range(900)) + b'], "top": 10000}',
)

JOBS: dict[bytes, type[BaseModel]] = {
    b"query": QueryRequest,
    b"explain": ExplainRequest,
    b"what-if": WhatIfRequest,
    b"check": CheckRequest,
}


@cache
def _run() -> Path:
    return write_served_run(scratch() / "served")


@cache
def _session() -> ServedSession:
    return ServedSession.load(_run(), Limits())


def _ready(make: Callable[[], object]) -> tuple[bytes, ...]:
    """What an input is tried on is made before, and not within its time."""
    make()
    return ()


def _split(content: bytes) -> tuple[bytes, bytes]:
    name, _, body = content.partition(b"\n")
    return (name, body) if name in JOBS else (b"query", content)


def jobs(content: bytes) -> None:
    """What a worker does with a request, in this process: here atheris sees which lines are reached."""
    name, body = _split(content)
    try:
        request = JOBS[name].model_validate(json.loads(body))
    except (ValidationError, ValueError, RecursionError):
        return
    fields = request.model_dump(by_alias=True)
    run_job(_session(), name.decode(), [fields] if name == b"query" else fields)


@cache
def _client() -> TestClient:
    session = ServedSession.load(_run(), Limits(seconds=60.0))
    app = create_app(session, Access(hosts=frozenset({"testserver"})), workers=1)
    return OPENED.enter_context(TestClient(app, raise_server_exceptions=False))


def bodies(content: bytes) -> None:
    """Over HTTP: an answer, or a refusal in words; no failure of the server."""
    name, body = _split(content)
    headers = {"content-type": "application/json"}
    answer = _client().post(f"/api/{name.decode()}", content=body, headers=headers)
    assert answer.status_code in (200, 400, 413, 422), (answer.status_code, answer.text)
    assert isinstance(answer.json(), dict)


@cache
def _model() -> Model:
    return Model.load(_run(), device="cpu")


def lines(content: bytes) -> None:
    """A few lines, one after the other, each shown, and how each may go on; a refusal is an answer too."""
    model = _model()
    for line in as_text(content).split("\n")[:4]:
        complete(model.base.language, line)
        mark, _, text = line.partition(" ")
        try:
            if mark == ":why":
                str(model.explain(text))
            elif mark == ":with":
                model = model.with_changes([text])
            elif mark == ":without":
                model = model.with_changes(fewer=[text])
            else:
                repr(model.predict(line, top=5))
        except R2NError:
            pass


TARGETS = (
    Target("questions", lines, (*MARKS, *ATOMS), HARD_LINES, partial(_ready, _model), examples=200, longest=300),
    Target(
        "jobs", jobs, (*FIELDS, *ATOMS), HARD_BODIES, partial(_ready, _session), "bodies", inputs=10_000, examples=200
    ),
    Target("bodies", bodies, (*FIELDS, *ATOMS), HARD_BODIES, partial(_ready, _client), inputs=10_000, examples=200),
)
