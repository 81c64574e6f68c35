"""The app, of the API and the page."""

import re

import pytest
from starlette.testclient import TestClient

from r2n.serving.app import PAGE, VIEWS, create_app, where_of
from r2n.serving.guards import HEADERS, Access
from r2n.serving.keeper import Keeper
from r2n.serving.limits import Limits
from r2n.serving.pool import BusyError


@pytest.mark.parametrize("path", [*(view.replace("{name:path}", "a/b") for view in VIEWS)])
def test_every_view_is_the_page(client: TestClient, path: str) -> None:
    response = client.get(path)
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.content == (PAGE / "index.html").read_bytes()
    assert HEADERS.items() <= response.headers.items()


def test_the_page_and_its_files_come_from_this_server_alone(client: TestClient) -> None:
    text = client.get("/").text
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", text)
    for file in re.findall(r'(?:src|href)="(/static/[^"]+)"', text):
        assert client.get(file).status_code == 200
    assert client.get("/static/../app.py").status_code == 404


def test_all_limits_are_in_the_document(client: TestClient, keeper: Keeper) -> None:
    document = client.get("/openapi.json").json()
    assert document["x-limits"] == keeper.limits.to_dict()
    for name in keeper.limits.to_dict():
        assert f"`{name}`" in document["info"]["description"]
    schema = document["components"]["schemas"]["QueryRequest"]
    assert schema["examples"]
    assert schema["properties"]["queries"]["maxItems"] == keeper.limits.queries


def test_errors_of_every_kind_have_one_form(client: TestClient) -> None:
    responses = {
        404: client.get("/api/nothing"),
        405: client.get("/api/query"),
        400: client.post("/api/query", content=b"{", headers={"content-type": "application/json"}),
        415: client.post("/api/query", content=b"{}"),
    }
    for status, response in responses.items():
        assert response.status_code == status
        assert set(response.json()) == {"what", "where", "hint", "caret"}


def test_one_that_is_given_up_is_told_when_to_come_again(keeper: Keeper) -> None:
    app = create_app(keeper, Access(hosts=None), workers=1, limits=Limits(waiting=0))
    with TestClient(app) as client:
        response = client.post("/api/check", json={"query": "liesIn("})
        assert response.status_code == 503
        assert response.headers["retry-after"] == "1"
        assert response.json()["what"] == "0 requests wait already"
        app.state.pool.broken = "no worker can be started"
        assert client.get("/health").status_code == 503
    assert issubclass(BusyError, Exception)


def test_with_a_token_the_document_says_so_and_the_log_does_not(
    keeper: Keeper, capfd: pytest.CaptureFixture[str]
) -> None:
    token = "secret-secret-secret"
    with TestClient(create_app(keeper, Access(token, None), workers=1)) as client:
        headers = {"authorization": f"Bearer {token}"}
        assert client.get("/openapi.json").status_code == 401
        assert client.get("/openapi.json", headers=headers).json()["security"] == [{"token": []}]
        assert client.get("/").status_code == 200
        assert token not in client.get("/metrics", headers=headers).text
    told = capfd.readouterr()
    assert token not in told.out + told.err


def test_a_place_in_a_request_is_named_as_it_is_written() -> None:
    assert where_of(("body", "queries", 3)) == "queries[3]"
    assert where_of(("body", "constants", "town", 0)) == "constants.town[0]"
    assert where_of(("query", "limit")) == "limit"
    assert where_of(("body",)) == "body"
