"""The API and the page over HTTP."""

import re
from dataclasses import asdict
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from r2n.serving.app import PAGE, VIEWS, create_app
from r2n.serving.guards import HEADERS, Access
from r2n.serving.session import ARROW, JSON, JSON_LINES, Limits, Session
from tests.served_problem import DOTS, STRANGE


def test_queries_are_answered_in_three_content_types(client: TestClient) -> None:
    request = {"queries": ["liesIn(n2, ?)"], "top": 1}
    for accept, kind in (("*/*", JSON), (JSON_LINES, JSON_LINES), (f"text/html, {ARROW};q=0.9", ARROW)):
        response = client.post("/api/query", json=request, headers={"accept": accept})
        assert (response.status_code, response.headers["content-type"]) == (200, kind)


def test_every_address_answers(client: TestClient) -> None:
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/api/run").json()["problem"] == "towns"
    assert client.get("/api/constants", params={"search": "nor"}).json()["constants"][0]["name"] == "north"
    assert client.post("/api/check", json={"query": "liesIn("}).json()["completions"]
    assert client.post("/api/explain", json={"atom": "liesIn(n2, north)"}).json()["drawing"]
    assert client.post("/api/what-if", json={"without": ["liesIn(n1, north)"]}).json()["changes"]
    assert client.get("/api/rules").json()["rules"][0]["name"] == "neighbours"
    assert client.get("/api/report").json()["results"]
    assert 'r2n_requests_total{route="/api/run",status="200"}' in client.get("/metrics").text


@pytest.mark.parametrize("name", STRANGE)
def test_a_strange_name_is_found_by_both_addresses(client: TestClient, name: str) -> None:
    assert client.get("/api/about", params={"name": name, "top": 3}).json()["name"] == name
    assert client.get("/about", params={"name": name}).headers["content-type"].startswith("text/html")
    if "%" not in name and name not in DOTS:  # the test client decodes % twice
        assert client.get(f"/api/about/{quote(name, safe='')}").json()["name"] == name


def test_errors_of_every_kind_have_one_form(client: TestClient) -> None:
    for path in ("/api/about/norht", "/api/about?name=norht", "/api/nothing", "/static/../app.py"):
        assert client.get(path).status_code == 404
    responses = [
        (404, None, client.get("/api/nothing")),
        (405, None, client.get("/api/query")),
        (400, "[1]", client.post("/api/query", content=b"{", headers={"content-type": "application/json"})),
        (415, "Content-Type", client.post("/api/query", content=b"{}")),
        (422, "queries[1]", client.post("/api/query", json={"queries": ["liesIn(n0, ?)", "liesIn(n0"]})),
        (422, "top", client.post("/api/query", json={"queries": ["liesIn(n0, ?)"], "top": 0})),
        (422, "limit", client.get("/api/constants", params={"limit": 0})),
    ]
    for status, where, response in responses:
        assert (response.status_code, response.json()["where"]) == (status, where)
        assert set(response.json()) == {"what", "where", "hint", "caret"}


def test_a_request_that_is_given_up_has_the_time_to_try_again(session: Session) -> None:
    app = create_app(session, Access(hosts=None), workers=1, limits=Limits(waiting=0))
    with TestClient(app) as client:
        response = client.post("/api/check", json={"query": "liesIn("})
        assert (response.status_code, response.headers["retry-after"]) == (503, "1")
        assert response.json()["what"] == "0 requests wait already"
        app.state.workers.broken = "no worker can be started"
        assert client.get("/health").status_code == 503


def test_the_document_has_all_limits_and_a_schema_of_every_answer(client: TestClient, session: Session) -> None:
    document = client.get("/openapi.json").json()
    assert document["x-limits"] == asdict(session.limits)
    for name in asdict(session.limits):
        assert f"`{name}`" in document["info"]["description"]
    schemas = document["components"]["schemas"]
    assert schemas["QueryRequest"]["examples"]
    assert schemas["QueryRequest"]["properties"]["queries"]["maxItems"] == session.limits.queries
    assert schemas["Answer"]["properties"]["logit"]["type"] == ["number", "null"]  # what is not finite is null


def test_with_a_token_the_document_says_so_and_the_log_does_not(
    session: Session, capfd: pytest.CaptureFixture[str]
) -> None:
    token = "secret-secret-secret"
    with TestClient(create_app(session, Access(token, None), workers=1)) as client:
        headers = {"authorization": f"Bearer {token}"}
        assert client.get("/openapi.json").status_code == 401
        assert client.get("/openapi.json", headers=headers).json()["security"] == [{"token": []}]
        assert client.get("/").status_code == 200
        assert token not in client.get("/metrics", headers=headers).text
    printed = capfd.readouterr()
    assert token not in printed.out + printed.err


@pytest.mark.parametrize("path", [view.replace("{name:path}", "a/b") for view in VIEWS])
def test_every_view_is_the_page(client: TestClient, path: str) -> None:
    response = client.get(path)
    assert (response.status_code, response.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert response.content == (PAGE / "index.html").read_bytes()
    assert HEADERS.items() <= response.headers.items()


def test_the_page_and_its_files_come_from_this_server_alone(client: TestClient) -> None:
    text = client.get("/").text
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", text)
    for file in re.findall(r'(?:src|href)="(/static/[^"]+)"', text):
        assert client.get(file).status_code == 200
