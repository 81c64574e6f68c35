"""Checks on every request (host, token, size, time), the headers of every answer, and counters of both."""

import asyncio
import secrets
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from r2n.serving.session import JSON, Failure, Limits, to_json

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
LINGERING = 2.0  # seconds
CLIENT_GONE = 499  # as nginx counts it; nobody reads it
MOST_DIGITS = 18  # of a length
BEHIND_TOKEN = ("/api/", "/metrics", "/openapi.json")


@dataclass(eq=False)
class Metrics:
    """Counters since the start, for Prometheus; labels are routes and statuses, never anything that a client sent."""

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    passes: int = 0
    answered_in_passes: int = 0
    workers_started: int = 0
    workers_killed: int = 0
    waiting: int = 0

    def count_request(self, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self.requests[route, status] += 1
        self.seconds[route] += seconds  # pyright: ignore[reportArgumentType]

    def text(self) -> str:
        """All counters, in the text format of Prometheus."""
        lines, answered = _described("r2n_requests_total", "Requests answered."), Counter[str]()
        for (route, status), number in sorted(self.requests.items()):
            answered[route] += number
            lines.append(f'r2n_requests_total{{route="{route}",status="{status}"}} {number}')
        lines += _described("r2n_request_seconds", "Seconds to answer a request.", "summary")
        for route, number in answered.items():
            lines.append(f'r2n_request_seconds_sum{{route="{route}"}} {self.seconds[route]:.6f}')
            lines.append(f'r2n_request_seconds_count{{route="{route}"}} {number}')
        for name, text, value in (
            ("r2n_passes_total", "Jobs that workers were given.", self.passes),
            ("r2n_passed_requests_total", "Requests in these jobs, often several.", self.answered_in_passes),
            ("r2n_workers_started_total", "Workers started.", self.workers_started),
            ("r2n_workers_killed_total", "Workers ended over a request.", self.workers_killed),
            ("r2n_waiting", "Requests that wait for a worker.", self.waiting),
        ):
            lines += [*_described(name, text, "counter" if name.endswith("_total") else "gauge"), f"{name} {value}"]
        return "\n".join([*lines, ""])


def _described(name: str, text: str, kind: str = "counter") -> list[str]:
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]


@dataclass(frozen=True, slots=True)
class Access:
    """Who may ask: with which token (None: anybody), under which names of the server (None: any)."""

    token: str | None = None
    hosts: frozenset[str] | None = LOOPBACK

    def refusal(self, scope: Scope) -> tuple[int, Failure] | None:
        """Why a request is not answered; None if it is."""
        headers = Headers(scope=scope)
        if self.hosts is not None and host_name(headers.get("host", "")) not in self.hosts:
            hint = "ask under the name it was started with; r2n serve --public-name NAME adds one"
            return 421, Failure("the server is not known under this name", "Host", hint)
        if not scope["path"].startswith(BEHIND_TOKEN):
            return None
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return 403, Failure("pages of other sites may not ask", "Sec-Fetch-Site")
        kind, _, token = headers.get("authorization", "").partition(" ")
        is_right = secrets.compare_digest(token.strip().encode(), (self.token or "").encode())
        if self.token is not None and not (is_right and kind.lower() == "bearer"):
            hint = "send the header Authorization: Bearer TOKEN"
            return 401, Failure("a token is needed", "Authorization", hint)
        return None


def host_name(host: str) -> str:
    """The name in a Host header, without its port."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdecimal() else host).lower()


class Guard:
    """Checks, limits and counts requests, and adds headers to answers."""

    def __init__(self, app: ASGIApp, access: Access, limits: Limits, metrics: Metrics) -> None:
        """Guard an app."""
        self.app, self.access, self.limits, self.metrics = app, access, limits, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        sender, started = _Sender(scope, send, self.limits.client_seconds), monotonic()
        try:
            await self._answer(scope, receive, sender)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self.metrics.count_request(route, sender.status, monotonic() - started)

    async def _answer(self, scope: Scope, receive: Receive, send: "_Sender") -> None:
        refused = self.access.refusal(scope)
        if refused is not None:
            return await send.refuse(*refused)
        try:
            async with asyncio.timeout(self.limits.client_seconds):
                body = await _read(scope, receive, self.limits.body)
        except TimeoutError:
            return await send.refuse(408, Failure("the request was not sent in time", "body"))
        if body is None:
            what, hint = f"the body has more than {self.limits.body:,} bytes", "ask for less at once"
            return await send.refuse(413, Failure(what, "body", hint), receive)
        kind = Headers(scope=scope).get("content-type", "").partition(";")[0].strip().lower()
        if scope["method"] == "POST" and kind != JSON:
            hint = "send the header Content-Type: application/json"
            return await send.refuse(415, Failure("the body is no JSON", "Content-Type", hint))
        return await self._run_app(scope, body, receive, send)

    async def _run_app(self, scope: Scope, body: bytes, receive: Receive, send: "_Sender") -> None:
        """Let the app answer; if the client goes before the answer begins, the work for it is cancelled."""
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def received() -> Message:
            return messages.pop() if messages else await receive()

        answering = asyncio.ensure_future(self.app(scope, received, send))
        gone = asyncio.ensure_future(receive())  # after the body, only a disconnect can come
        try:
            await asyncio.wait((answering, gone), return_when=asyncio.FIRST_COMPLETED)
            if not answering.done() and not send.has_begun and gone.result()["type"] == "http.disconnect":
                send.status = CLIENT_GONE
            else:
                await answering
        finally:
            answering.cancel()
            gone.cancel()


async def _read(scope: Scope, receive: Receive, most: int) -> bytes | None:
    """The body; None if it is too long."""
    length = Headers(scope=scope).get("content-length", "0")
    if not length.isdecimal() or len(length) > MOST_DIGITS or int(length) > most:
        return None
    parts, more = bytearray(), True
    while more:
        message = await receive()
        parts += message.get("body", b"")
        more = message.get("more_body", False)
        if len(parts) > most:
            return None
    return bytes(parts)


class _Sender:
    """Sends an answer, with the headers that all have, within the time that a client has to read it."""

    def __init__(self, scope: Scope, send: Send, seconds: float) -> None:
        self.path, self.send, self.seconds = scope["path"], send, seconds
        self.status, self.has_begun = 500, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.has_begun = message["status"], True
            headers = MutableHeaders(scope=message)
            headers.update(HEADERS)
            headers["cache-control"] = "no-store" if self.path.startswith(BEHIND_TOKEN) else "no-cache"
        async with asyncio.timeout(self.seconds):
            await self.send(message)

    async def refuse(self, status: int, failure: Failure, receive: Receive | None = None) -> None:
        """Send an error, and close the connection; what a client still sends is read for a while, and dropped.

        Closing at once would reset the connection, and the client would not read the error.
        """
        body = to_json(failure)
        headers = {"content-type": JSON, "content-length": str(len(body)), "connection": "close"}
        headers |= {"www-authenticate": "Bearer"} if status == 401 else {}
        await self({"type": "http.response.start", "status": status, "headers": Headers(headers).raw})
        await self({"type": "http.response.body", "body": body, "more_body": True})
        if receive is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(LINGERING):
                    while (await receive()).get("more_body", False):
                        pass
        await self({"type": "http.response.body", "body": b""})
