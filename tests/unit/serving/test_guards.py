"""What stands before every request, and the headers of every answer."""

import asyncio
import json

import pytest
from starlette.types import Message, Receive, Scope, Send

from r2n.serving.guards import HEADERS, LOOPBACK, Access, Guard, host_name
from r2n.serving.limits import Limits
from r2n.serving.metrics import Metrics

JSON = (b"content-type", b"application/json")
HOST = (b"host", b"127.0.0.1:8000")


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    message = await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": message["body"]})


class Asked:
    """A request to a guarded app that answers with its body, and what came of it."""

    def __init__(
        self,
        path: str = "/api/query",
        *headers: tuple[bytes, bytes],
        body: tuple[bytes, ...] = (b"{}",),
        access: Access | None = None,
    ) -> None:
        limits = Limits(body=10, client_seconds=0.2)
        self.metrics, self.sent = Metrics(), []
        self.parts = list(body)
        scope = {"type": "http", "method": "POST", "path": path, "headers": [HOST, *headers], "query_string": b""}
        guard = Guard(echo, access or Access(), limits, self.metrics)
        asyncio.run(guard(scope, self.receive, self.send))

    async def receive(self) -> Message:
        if not self.parts:
            await asyncio.sleep(10)
        part = self.parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": part != b"{}" and part[-1:] != b"."}

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    @property
    def status(self) -> int:
        return self.sent[0]["status"]

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.sent[1:])


def test_a_request_goes_through_and_its_answer_has_all_headers() -> None:
    asked = Asked("/api/query", JSON)
    assert (asked.status, asked.body) == (200, b"{}")
    assert HEADERS.items() <= asked.headers.items()
    assert asked.headers["cache-control"] == "no-store"
    assert "script-src 'self'" in asked.headers["content-security-policy"]
    assert "unsafe" not in asked.headers["content-security-policy"]
    assert not {name for name in asked.headers if name.startswith("access-control") or name == "set-cookie"}
    assert asked.metrics.requests["other", 200] == 1


def test_refusals_have_the_headers_too_and_one_form() -> None:
    asked = Asked("/api/query", JSON, access=Access(token="t" * 20))
    assert asked.status == 401
    assert HEADERS.items() <= asked.headers.items()
    assert set(json.loads(asked.body)) == {"what", "where", "hint", "caret"}
    assert asked.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "given", ["", "Bearer", "Bearer ", "Bearer wrong", "Basic secret-secret-secret", "secret-secret-secret"]
)
def test_only_the_right_token_is_let_through(given: str) -> None:
    access = Access(token="secret-secret-secret")
    assert Asked("/api/query", JSON, (b"authorization", given.encode()), access=access).status == 401
    right = Asked("/api/query", JSON, (b"authorization", b"bearer secret-secret-secret"), access=access)
    assert right.status == 200


def test_the_page_and_the_health_need_no_token_and_the_rest_does() -> None:
    access = Access(token="secret-secret-secret")
    for path in ("/", "/static/main.js", "/health", "/about/api/x"):
        assert Asked(path, JSON, access=access).status == 200
    for path in ("/api/run", "/metrics", "/openapi.json"):
        assert Asked(path, JSON, access=access).status == 401


def test_a_name_that_is_not_the_servers_is_refused() -> None:
    access = Access(hosts=frozenset({"example.org"}))
    assert Asked("/", JSON, access=access).status == 421
    assert Asked("/", JSON, access=Access(hosts=None)).status == 200
    assert {host_name(host) for host in ("LOCALHOST", "127.0.0.1:80", "[::1]:8000")} == set(LOOPBACK)
    assert host_name("127.0.0.1.evil.example:80") == "127.0.0.1.evil.example"


def test_pages_of_other_sites_may_not_ask() -> None:
    for site in (b"cross-site", b"same-site"):
        assert Asked("/api/query", JSON, (b"sec-fetch-site", site)).status == 403
        assert Asked("/", JSON, (b"sec-fetch-site", site)).status == 200  # a link to the page
    assert Asked("/api/query", JSON, (b"sec-fetch-site", b"same-origin")).status == 200


def test_a_body_that_is_too_long_is_refused_before_and_while_it_comes() -> None:
    told = Asked("/api/query", JSON, (b"content-length", b"11"), body=(b"x" * 5, b"x" * 6 + b"."))
    assert told.status == 413
    assert told.headers["connection"] == "close"
    assert Asked("/api/query", JSON, (b"content-length", b"x")).status == 413
    assert Asked("/api/query", JSON, (b"content-length", b"9" * 5_000)).status == 413
    assert Asked("/api/query", JSON, body=(b"x" * 6, b"x" * 6 + b".")).status == 413
    assert Asked("/api/query", JSON, body=(b"x" * 6, b"xxx.")).status == 200


def test_half_a_body_is_not_waited_for() -> None:
    assert Asked("/api/query", JSON, body=(b"{",)).status == 408


def test_what_is_no_json_is_refused() -> None:
    assert Asked("/api/query").status == 415
    assert Asked("/api/query", (b"content-type", b"text/plain")).status == 415
    assert Asked("/api/query", (b"content-type", b"Application/JSON; charset=utf-8")).status == 200


def test_a_client_that_does_not_read_is_given_up() -> None:
    async def stuck(message: Message) -> None:
        await asyncio.sleep(10)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"{}"}

    guard = Guard(echo, Access(), Limits(client_seconds=0.05), Metrics())
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [HOST], "query_string": b""}
    with pytest.raises(TimeoutError):
        asyncio.run(guard(scope, receive, stuck))
