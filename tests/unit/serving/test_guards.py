"""Checks on every request, the headers of every answer, and counters."""

import asyncio
import json

import pytest
from starlette.types import Message, Receive, Scope, Send

from r2n.serving.guards import HEADERS, LOOPBACK, Access, Guard, Metrics, host_name
from r2n.serving.session import Limits

JSON = (b"content-type", b"application/json")
HOST = (b"host", b"127.0.0.1:8000")
TOKEN = Access(token="secret-secret-secret")


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    message = await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": message["body"]})


class Asked:
    """A request to a guarded app that answers with its body, and what came of it."""

    def __init__(
        self, path: str, *headers: tuple[bytes, bytes], body: tuple[bytes, ...] = (b"{}",), access: Access | None = None
    ) -> None:
        self.metrics, self.sent, self.parts = Metrics(), [], list(body)
        scope = {"type": "http", "method": "POST", "path": path, "headers": [HOST, *headers], "query_string": b""}
        guard = Guard(echo, access or Access(), Limits(body=10, client_seconds=0.2), self.metrics)
        asyncio.run(guard(scope, self.receive, self.send))
        self.status: int = self.sent[0]["status"]
        self.headers = {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}
        self.body = b"".join(message["body"] for message in self.sent[1:])

    async def receive(self) -> Message:
        if not self.parts:
            await asyncio.sleep(10)
        part = self.parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": part != b"{}" and part[-1:] != b"."}

    async def send(self, message: Message) -> None:
        self.sent.append(message)


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
    asked = Asked("/api/query", JSON, access=TOKEN)
    assert asked.status == 401
    assert HEADERS.items() <= asked.headers.items()
    assert set(json.loads(asked.body)) == {"what", "where", "hint", "caret"}
    assert asked.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "given", ["", "Bearer", "Bearer ", "Bearer wrong", "Basic secret-secret-secret", "secret-secret-secret"]
)
def test_only_the_right_token_is_let_through(given: str) -> None:
    assert Asked("/api/query", JSON, (b"authorization", given.encode()), access=TOKEN).status == 401
    assert Asked("/api/query", JSON, (b"authorization", b"bearer secret-secret-secret"), access=TOKEN).status == 200


def test_the_page_and_the_health_need_no_token_and_the_rest_does() -> None:
    for path in ("/", "/static/main.js", "/health", "/about/api/x"):
        assert Asked(path, JSON, access=TOKEN).status == 200
    for path in ("/api/run", "/metrics", "/openapi.json"):
        assert Asked(path, JSON, access=TOKEN).status == 401


def test_other_names_of_the_server_and_pages_of_other_sites_are_refused() -> None:
    assert Asked("/", JSON, access=Access(hosts=frozenset({"example.org"}))).status == 421
    assert Asked("/", JSON, access=Access(hosts=None)).status == 200
    assert {host_name(host) for host in ("LOCALHOST", "127.0.0.1:80", "[::1]:8000")} == set(LOOPBACK)
    assert host_name("127.0.0.1.evil.example:80") == "127.0.0.1.evil.example"
    for site in (b"cross-site", b"same-site"):
        assert Asked("/api/query", JSON, (b"sec-fetch-site", site)).status == 403
        assert Asked("/", JSON, (b"sec-fetch-site", site)).status == 200  # a link to the page
    assert Asked("/api/query", JSON, (b"sec-fetch-site", b"same-origin")).status == 200


def test_a_body_that_is_too_long_is_refused_before_and_while_it_comes() -> None:
    long = Asked("/api/query", JSON, (b"content-length", b"11"), body=(b"x" * 5, b"x" * 6 + b"."))
    assert (long.status, long.headers["connection"]) == (413, "close")
    for length in (b"x", b"9" * 5_000):
        assert Asked("/api/query", JSON, (b"content-length", length), body=(b".",)).status == 413
    assert Asked("/api/query", JSON, body=(b"x" * 6, b"x" * 6 + b".")).status == 413
    assert Asked("/api/query", JSON, body=(b"x" * 6, b"xxx.")).status == 200


def test_half_a_body_and_what_is_no_json_are_refused() -> None:
    assert Asked("/api/query", JSON, body=(b"{",)).status == 408
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


def test_requests_are_counted_by_route_and_status_and_every_counter_is_described() -> None:
    metrics = Metrics()
    for status, seconds in ((200, 0.003), (200, 0.2), (422, 99.0)):
        metrics.count_request("/api/query", status, seconds)
    metrics.passes, metrics.answered_in_passes = 1, 3
    lines = metrics.text().splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert values['r2n_requests_total{route="/api/query",status="200"}'] == "2"
    assert values['r2n_requests_total{route="/api/query",status="422"}'] == "1"
    assert values['r2n_request_seconds_count{route="/api/query"}'] == "3"
    assert values['r2n_request_seconds_sum{route="/api/query"}'] == "99.203000"
    assert (values["r2n_passes_total"], values["r2n_passed_requests_total"]) == ("1", "3")
    described, typed = (
        {line.split()[2] for line in lines if line.startswith(f"# {word}")} for word in ("HELP", "TYPE")
    )
    assert described == typed
    names = {name.partition("{")[0] for name in values}
    assert {name.removesuffix("_sum").removesuffix("_count") for name in names} == described
