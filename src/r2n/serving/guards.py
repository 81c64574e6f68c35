"""A run, served: what stands before every request (host, token, size, time), and the headers of every answer."""

import asyncio
import secrets
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from r2n.serving.limits import Limits
from r2n.serving.metrics import Metrics
from r2n.serving.replies import JSON, error_document, to_json

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


@dataclass(frozen=True, slots=True)
class Access:
    """Who may ask: with which token (None: anybody), under which names of the server (None: any)."""

    token: str | None = None
    hosts: frozenset[str] | None = LOOPBACK

    def refusal(self, scope: Scope) -> tuple[int, dict[str, Any]] | None:
        """Why a request is not answered; None where it is."""
        headers = Headers(scope=scope)
        if self.hosts is not None and host_name(headers.get("host", "")) not in self.hosts:
            hint = "ask under the name it was started with; r2n serve --public-name NAME adds one"
            return 421, error_document("the server is not known under this name", "Host", hint)
        path = scope["path"]
        if not path.startswith(BEHIND_TOKEN):
            return None
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return 403, error_document("pages of other sites may not ask", "Sec-Fetch-Site")
        if self.token is not None and not self._is_token(headers.get("authorization", "")):
            hint = "send the header Authorization: Bearer TOKEN"
            return 401, error_document("a token is needed", "Authorization", hint)
        return None

    def _is_token(self, given: str) -> bool:
        kind, _, token = given.partition(" ")
        is_right = secrets.compare_digest(token.strip().encode(), (self.token or "").encode())
        return is_right and kind.lower() == "bearer"


def host_name(host: str) -> str:
    """The name in a Host header, without its port."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdecimal() else host).lower()


class Guard:
    """Refuses, limits and counts requests, and adds headers to answers."""

    def __init__(self, app: ASGIApp, access: Access, limits: Limits, metrics: Metrics) -> None:
        """Before an app."""
        self.app, self.access, self.limits, self.metrics = app, access, limits, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        answered = _Answered(scope, send, self.limits.client_seconds)
        started = monotonic()
        try:
            await self._answer(scope, receive, answered)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self.metrics.count_request(route, answered.status, monotonic() - started)

    async def _answer(self, scope: Scope, receive: Receive, send: "_Answered") -> None:
        refused = self.access.refusal(scope)
        if refused is not None:
            return await send.refuse(*refused)
        try:
            async with asyncio.timeout(self.limits.client_seconds):
                body = await _read(scope, receive, self.limits.body)
        except TimeoutError:
            return await send.refuse(408, error_document("the request was not sent in time", "body"))
        if body is None:
            what, hint = f"the body has more than {self.limits.body:,} bytes", "ask for less at once"
            return await send.refuse(413, error_document(what, "body", hint), receive)
        if scope["method"] == "POST" and not _is_json(scope):
            hint = "send the header Content-Type: application/json"
            return await send.refuse(415, error_document("the body is no JSON", "Content-Type", hint))
        return await self._handed_on(scope, body, receive, send)

    async def _handed_on(self, scope: Scope, body: bytes, receive: Receive, send: "_Answered") -> None:
        """Let the app answer; when the client goes before the answer begins, the work for it is cancelled."""
        answering = asyncio.ensure_future(self.app(scope, _once(body, receive), send))
        gone = asyncio.ensure_future(receive())  # after the body there is nothing but its going
        try:
            await asyncio.wait((answering, gone), return_when=asyncio.FIRST_COMPLETED)
            if not answering.done() and not send.has_begun and gone.result()["type"] == "http.disconnect":
                send.status = CLIENT_GONE
            else:
                await answering
        finally:
            answering.cancel()
            gone.cancel()


def _is_json(scope: Scope) -> bool:
    return Headers(scope=scope).get("content-type", "").partition(";")[0].strip().lower() == JSON


async def _read(scope: Scope, receive: Receive, most: int) -> bytes | None:
    """The body; None where it is too long."""
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


def _once(body: bytes, receive: Receive) -> Receive:
    """A body that was read already, then whatever comes."""
    is_told = False

    async def told() -> Message:
        nonlocal is_told
        if is_told:
            return await receive()
        is_told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return told


class _Answered:
    """Sends an answer, with the headers that all have, within the time that a client has to read it."""

    def __init__(self, scope: Scope, send: Send, seconds: float) -> None:
        self.path, self.send, self.seconds, self.status = scope["path"], send, seconds, 500
        self.has_begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.has_begun = message["status"], True
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            headers["cache-control"] = "no-store" if self.path.startswith(BEHIND_TOKEN) else "no-cache"
        async with asyncio.timeout(self.seconds):
            await self.send(message)

    async def refuse(self, status: int, document: dict[str, Any], receive: Receive | None = None) -> None:
        """An error, after which the connection is closed; what a client still sends is read for a while, unheard.

        To close at once would reset the connection, and the client would not read why.
        """
        body = to_json(document)
        headers = [(b"content-type", JSON.encode()), (b"content-length", str(len(body)).encode())]
        headers += [(b"connection", b"close")]
        headers += [(b"www-authenticate", b"Bearer")] if status == 401 else []
        await self({"type": "http.response.start", "status": status, "headers": headers})
        await self({"type": "http.response.body", "body": body, "more_body": True})
        if receive is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(LINGERING):
                    while (await receive()).get("more_body", False):
                        pass
        await self({"type": "http.response.body", "body": b""})
