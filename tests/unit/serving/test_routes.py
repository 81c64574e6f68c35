"""The addresses of the API, asked over HTTP."""

import json
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

from r2n.serving.replies import ARROW, JSON, JSON_LINES
from r2n.serving.routes import accepted
from tests.served_problem import DOTS, STRANGE


def posted(client: TestClient, path: str, document: Any, **headers: str) -> Any:
    return client.post(path, json=document, headers=headers)


def test_queries_are_answered_in_three_kinds(client: TestClient) -> None:
    asked = {"queries": ["liesIn(n2, ?)"], "top": 1}
    whole = posted(client, "/api/query", asked).json()
    assert whole["results"][0]["question"] == "liesIn(n2, ?)"
    lines = posted(client, "/api/query", asked, accept=JSON_LINES)
    assert lines.headers["content-type"].startswith(JSON_LINES)
    assert json.loads(lines.text) == {"question": "liesIn(n2, ?)", **whole["results"][0]["answers"][0]}
    arrow = posted(client, "/api/query", asked, accept=ARROW)
    assert pa.ipc.open_stream(arrow.content).read_all()["town"].to_pylist() == ["n2"]


@pytest.mark.parametrize(
    ("accept", "kind"),
    [("", JSON), ("*/*", JSON), (ARROW, ARROW), (f"text/html, {JSON_LINES};q=0.9", JSON_LINES), ("text/html", JSON)],
)
def test_the_kind_is_the_first_that_is_known(accept: str, kind: str) -> None:
    assert accepted(accept) == kind


def test_every_address_answers(client: TestClient) -> None:
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/api/run").json()["problem"] == "towns"
    assert client.get("/api/constants", params={"search": "nor"}).json()["constants"][0]["name"] == "north"
    assert posted(client, "/api/check", {"query": "liesIn("}).json()["completions"]
    assert posted(client, "/api/explain", {"atom": "liesIn(n2, north)"}).json()["drawing"]["nodes"]
    assert posted(client, "/api/what-if", {"without": ["liesIn(n1, north)"]}).json()["changes"]
    assert client.get("/api/rules").json()["rules"][0]["name"] == "neighbours"
    assert client.get("/api/report").json()["results"]
    assert 'r2n_requests_total{route="/api/run",status="200"}' in client.get("/metrics").text


# the test client decodes % twice
@pytest.mark.parametrize("name", [name for name in STRANGE if "%" not in name and name not in DOTS])
def test_a_strange_name_is_found_at_its_address(client: TestClient, name: str) -> None:
    assert client.get(f"/api/about/{quote(name, safe='')}").json()["name"] == name


@pytest.mark.parametrize("name", STRANGE)
def test_any_name_is_found_by_the_other_address(client: TestClient, name: str) -> None:
    found = client.get("/api/about", params={"name": name, "top": 3})
    assert found.status_code == 200
    assert found.json()["name"] == name
    assert client.get("/about", params={"name": name}).headers["content-type"].startswith("text/html")


def test_errors_have_one_form(client: TestClient) -> None:
    wrong = {
        "queries[1]": posted(client, "/api/query", {"queries": ["liesIn(n0, ?)", "liesIn(n0"]}),
        "top": posted(client, "/api/query", {"queries": ["liesIn(n0, ?)"], "top": 0}),
        "limit": client.get("/api/constants", params={"limit": 0}),
    }
    for where, response in wrong.items():
        assert response.status_code == 422
        assert response.json()["where"] == where
        assert set(response.json()) == {"what", "where", "hint", "caret"}
    assert client.get("/api/about/norht").status_code == 404
    assert client.get("/api/about", params={"name": "norht"}).status_code == 404
