"""The app (addresses of the API, which workers answer; the page; the OpenAPI document), and the server that runs it."""

import asyncio
import gc
import ipaddress
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import h11
import torch
import uvicorn
from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import FileResponse, PlainTextResponse, Response
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from uvicorn.protocols.http.h11_impl import H11Protocol

from r2n import __version__
from r2n.errors import ConfigError
from r2n.explanation.drawing import style_sheet
from r2n.serving.guards import LOOPBACK, Access, Guard, Metrics
from r2n.serving.queries import AboutAnswer, CheckAnswer, ConstantsAnswer, ExplainAnswer, QueryAnswer, WhatIfAnswer
from r2n.serving.session import (
    ARROW,
    BUSY,
    JSON,
    JSON_LINES,
    NAME_IN_ADDRESS,
    REFUSED,
    CheckRequest,
    ExplainRequest,
    Failure,
    Limits,
    QueryRequest,
    Reply,
    Session,
    WhatIfRequest,
)
from r2n.serving.workers import Workers, busy

PAGE = Path(__file__).parent / "page"
VIEWS = ("/", "/about", "/about/{name:path}", "/explain", "/what-if", "/rules", "/run")
Responses = dict[int | str, dict[str, Any]]

# addresses

ERRORS = {
    400: "The body is no JSON.",
    401: "A token is needed.",
    403: "A page of another site asks.",
    408: "The request was not sent in time.",
    413: "The body is too long.",
    415: "The body is no JSON.",
    421: "The server is not known under this name.",
    422: "The request is rejected: what, where, and a hint.",
    503: "The request took too long and was stopped, or too many wait.",
}
KINDS = {
    JSON_LINES: {"schema": {"type": "string", "description": "An answer a line, with its `question`."}},
    ARROW: {"schema": {"type": "string", "format": "binary", "description": "The columns of `r2n predict --out`."}},
}
ABOUT: Responses = {200: {"model": AboutAnswer}, 404: {"model": Failure, "description": "There is no such constant."}}
FAILURES: Responses = {status: {"model": Failure, "description": text} for status, text in ERRORS.items()}
FAILURES[BUSY]["headers"] = {"Retry-After": {"schema": {"type": "string"}, "description": "Seconds."}}
router = APIRouter(responses=FAILURES)


def _sent(reply: Reply, headers: Mapping[str, str] | None = None) -> Response:
    return Response(reply.body, reply.status, {"retry-after": "1"} if reply.status == BUSY else headers, reply.kind)


async def _answer(request: Request, job: str, asked: dict[str, Any] | None = None) -> Response:
    """The answer of a worker; without a document that is asked, it is computed once."""
    workers = request.app.state.workers
    return _sent(await (workers.ask_once(job) if asked is None else workers.ask(job, asked)))


def accepted(accept: str) -> str:
    """The first content type of an `Accept` header that the server can send, else JSON."""
    wanted = [part.partition(";")[0].strip().lower() for part in accept.split(",")]
    return next((kind for kind in wanted if kind in (JSON, JSON_LINES, ARROW)), JSON)


def _posted(job: str, asked: type[BaseModel], reply: Any, summary: str, description: str, kinds: Any = None) -> None:
    """Add an address to which a JSON document is sent."""

    async def answer(request: Request, document: Any) -> Response:
        wanted = {} if kinds is None else {"accept": accepted(request.headers.get("accept", ""))}
        return await _answer(request, job, {**document.model_dump(by_alias=True), **wanted})

    answer.__annotations__["document"] = asked
    texts: dict[str, Any] = {"name": job, "summary": summary, "description": description}
    responses: Responses = {200: {"model": reply, "content": kinds or {}}}
    router.add_api_route(f"/api/{job}", answer, methods=["POST"], responses=responses, **texts)


_queries = "Answer queries, as `r2n predict` does. `Accept` chooses JSON, JSON Lines or an Arrow stream."
_why = "Explain why an atom is answered as it is, and what would change the answer, with a drawing."
_changes = "Compare answers before and after a change that this request alone makes."
_posted("query", QueryRequest, QueryAnswer, "Answer one query or many", _queries, KINDS)
_posted("explain", ExplainRequest, ExplainAnswer, "Explain an answer", _why)
_posted("what-if", WhatIfRequest, WhatIfAnswer, "Compare answers before and after", _changes)
_posted(
    "check",
    CheckRequest,
    CheckAnswer,
    "Check a query as it is typed",
    "Check whether a query is valid, and complete it.",
)


@router.get("/api/constants", summary="Search constants", responses={200: {"model": ConstantsAnswer}})
async def constants(
    request: Request,
    search: Annotated[str, Query(max_length=NAME_IN_ADDRESS)] = "",
    domain: Annotated[str | None, Query(max_length=NAME_IN_ADDRESS)] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 20,
) -> Response:
    """Find constants by a part of their names."""
    return await _answer(request, "constants", {"search": search, "domain": domain, "limit": limit})


@router.get("/api/about", summary="One constant, of any name", responses=ABOUT)  # also of `.`, which no path ends with
@router.get("/api/about/{name:path}", summary="One constant", responses=ABOUT)
async def about(
    request: Request,
    name: Annotated[str, Field(max_length=NAME_IN_ADDRESS, examples=["italy"])],
    top: Annotated[int, Query(ge=1, le=100)] = 10,
) -> Response:
    """Get the facts, predictions, features and neighbourhood of a constant."""
    return await _answer(request, "about", {"name": name, "top": top})


def _computed_once(job: str, summary: str, description: str) -> None:
    """Add an address whose document is computed at the first request."""

    async def answer(request: Request) -> Response:
        return await _answer(request, job)

    texts: dict[str, Any] = {"name": job, "summary": summary, "description": description}
    router.add_api_route(f"/api/{job}", answer, **texts, responses={200: {"model": dict[str, Any]}})


_computed_once("run", "The run that is served", "Get the problem, the network, the rules and the limits.")
_computed_once("rules", "The effects of the rules", "Get the document of `r2n rules --json`.")
_computed_once("report", "The report of the run", "Get curves, metrics, reliability and ranks.")


@router.get("/health", summary="Whether the server works", responses={200: {"model": dict[Literal["status"], str]}})
async def health(request: Request) -> Response:
    """Check that the server is up; 503 if no worker could be started."""
    broken = request.app.state.workers.broken
    return _sent(Reply.from_document({"status": "ok"}) if broken is None else busy(broken))


@router.get("/metrics", summary="Counters", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Get the number of requests and their times, in the text format of Prometheus."""
    return PlainTextResponse(request.app.state.workers.metrics.text(), media_type="text/plain; version=0.0.4")


# the app


def create_app(session: Session, access: Access, workers: int = 2, limits: Limits | None = None) -> FastAPI:
    """The app of a loaded run; `limits` may be narrower than its own."""
    counters, limits = Metrics(), limits or session.limits

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.workers = Workers(session, workers, counters, limits)
        await app.state.workers.start()
        yield
        await app.state.workers.stop()

    async def view() -> FileResponse:
        """Every view is the same page, which reads from its address what to show."""
        return FileResponse(PAGE / "index.html", media_type="text/html")

    def openapi() -> dict[str, Any]:
        """The OpenAPI document, with all limits."""
        if app.openapi_schema is None:
            texts = {part.name: part.metadata["text"].format(getattr(limits, part.name)) for part in fields(limits)}
            listed = "\n".join(f"- `{name}`: {text}" for name, text in texts.items())
            description = f"A trained run of r2n. Limits on a request:\n\n{listed}"
            document = get_openapi(title="r2n", version=__version__, description=description, routes=app.routes)
            document["components"]["schemas"] = _with_nulls(document["components"]["schemas"])
            document["x-limits"] = asdict(limits)
            if access.token is not None:
                document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
                document["security"] = [{"token": []}]
            app.openapi_schema = document
        return app.openapi_schema

    app = FastAPI(title="r2n", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan)
    app.include_router(router)
    for path in VIEWS:
        app.add_api_route(path, view, methods=["GET"], include_in_schema=False)
    style = style_sheet()
    app.add_api_route("/static/drawing.css", lambda: Response(style, media_type="text/css"), include_in_schema=False)
    app.mount("/static", StaticFiles(directory=PAGE / "static"), name="static")
    app.openapi = openapi
    app.add_middleware(Guard, access=access, limits=limits, metrics=counters)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        is_syntax = first["type"] == "json_invalid"
        what = f"the body is no JSON: {first.get('ctx', {}).get('error', '')}" if is_syntax else first["msg"]
        parts = first["loc"][1:] if first["loc"] and first["loc"][0] in ("body", "query", "path") else first["loc"]
        field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)  # queries[3], search
        failure = Failure(what, field.removeprefix(".") or "body", "/openapi.json says what may be sent")
        return _sent(Reply.from_document(failure, 400 if is_syntax else REFUSED))

    @app.exception_handler(HTTPException)
    async def refused(_: Request, error: HTTPException) -> Response:
        failure = Failure(str(error.detail), hint="/openapi.json says what may be asked")
        return _sent(Reply.from_document(failure, error.status_code), error.headers)

    return app


def _with_nulls(schema: Any) -> Any:
    """The schema with null for numbers too: those that are not finite are sent as null."""
    if isinstance(schema, list):
        return [_with_nulls(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {name: _with_nulls(part) for name, part in schema.items()}
    return {**schema, "type": ["number", "null"]} if schema.get("type") == "number" else schema


# the server

LONGEST_HEAD = 2**18  # bytes: the address may hold a name of 10,000 characters of any script
FEWEST_CHARACTERS = 16
BACKLOG = 2_048


def preload(folder: Path, limits: Limits) -> Session:
    """Load the run in a folder, to be shared by forks of this process."""
    torch.set_num_threads(1)  # a pool of threads does not survive a fork
    session = Session.load(folder, limits)
    gc.collect()
    gc.freeze()  # what is never collected is never copied
    return session


def access_to(host: str, token_file: Path | None, public_names: list[str]) -> Access:
    """Who may ask a server that listens at `host`: anybody at a loopback, else clients with the token."""
    token = None if token_file is None else read_token(token_file)
    try:
        is_loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback and token is None:
        hint = "give a file with a token of your own: --token-file FILE; or listen at 127.0.0.1"
        raise ConfigError(f"at {host} others can reach the server, and there is no token", hint=hint)
    if not is_loopback and not public_names:
        return Access(token, None)
    return Access(token, LOOPBACK | {host.lower()} | {name.lower() for name in public_names})


def read_token(path: Path) -> str:
    """The token in a file; one that could be guessed is an error."""
    try:
        token = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the token in {path} cannot be read: {error}") from error
    if len(token) < FEWEST_CHARACTERS or not token.isascii() or any(character.isspace() for character in token):
        hint = f"python -c 'import secrets; print(secrets.token_urlsafe())' > {path}"
        raise ConfigError(f"{path} holds no token: one of {FEWEST_CHARACTERS} characters or more is needed", hint=hint)
    return token


class ImpatientProtocol(H11Protocol):
    """Closes a connection whose request does not begin, or whose head does not end, in time."""

    seconds = Limits().client_seconds
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start the clock."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Stop the clock once the head of a request is complete."""
        super().data_received(data)
        self._wait(is_over=self.conn.their_state is not h11.IDLE)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._wait(is_over=True)
        super().connection_lost(exc)

    def _wait(self, *, is_over: bool = False) -> None:
        if is_over and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        elif not is_over and self._timer is None:
            self._timer = self.loop.call_later(self.seconds, self.transport.abort)

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that asks nothing more, even if its client does not read what was sent."""
        super().timeout_keep_alive_handler()
        self.loop.call_later(self.seconds, self.transport.abort)


def listening(host: str, port: int) -> socket.socket:
    """A listening socket."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError, UnicodeError) as error:
        what = f"the server cannot listen at {host}, port {port}: {getattr(error, 'strerror', None) or error}"
        raise ConfigError(what, hint="give another --port") from error


def address(own: socket.socket) -> str:
    """The address for a browser."""
    host, port = own.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def make_server(app: FastAPI, limits: Limits) -> uvicorn.Server:
    """The server of an app; it logs no requests."""
    protocol = type("Protocol", (ImpatientProtocol,), {"seconds": limits.client_seconds})
    limited: dict[str, Any] = {
        "limit_concurrency": limits.connections,
        "h11_max_incomplete_event_size": LONGEST_HEAD,
        "timeout_keep_alive": max(1, int(limits.client_seconds)),
        "timeout_graceful_shutdown": max(1, int(limits.seconds)),
    }
    silent: dict[str, Any] = {"access_log": False, "log_level": "warning", "server_header": False}
    return uvicorn.Server(uvicorn.Config(app, http=protocol, ws="none", proxy_headers=False, **limited, **silent))
