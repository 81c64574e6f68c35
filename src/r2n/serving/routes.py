"""A run, served: the addresses of the API, each handed to a worker."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import PlainTextResponse, Response

from r2n.serving import answers
from r2n.serving.limits import NAME_IN_ADDRESS
from r2n.serving.pool import BusyError, Pool
from r2n.serving.replies import ARROW, JSON, JSON_LINES, Reply
from r2n.serving.requests import CheckRequest, ExplainRequest, QueryRequest, WhatIfRequest

ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": answers.Failure, "description": "The body is no JSON."},
    401: {"model": answers.Failure, "description": "A token is needed."},
    403: {"model": answers.Failure, "description": "A page of another site asks."},
    408: {"model": answers.Failure, "description": "The request was not sent in time."},
    413: {"model": answers.Failure, "description": "The body is too long."},
    415: {"model": answers.Failure, "description": "The body is no JSON."},
    421: {"model": answers.Failure, "description": "The server is not known under this name."},
    422: {"model": answers.Failure, "description": "What is asked is refused: what, where, and a hint."},
    503: {
        "model": answers.Failure,
        "description": "The request took too long and was stopped, or too many wait.",
        "headers": {"Retry-After": {"schema": {"type": "string"}, "description": "Seconds."}},
    },
}
router = APIRouter(responses=ERRORS)


def _sent(reply: Reply) -> Response:
    return Response(reply.body, reply.status, media_type=reply.kind)


def _pool(request: Request) -> Pool:
    return request.app.state.pool


def accepted(accept: str) -> str:
    """The kind of content that is asked for; JSON where it is none of the others."""
    wanted = [part.partition(";")[0].strip().lower() for part in accept.split(",")]
    return next((kind for kind in wanted if kind in (JSON, JSON_LINES, ARROW)), JSON)


KINDS = {
    JSON_LINES: {"schema": {"type": "string", "description": "An answer a line, with its `question`."}},
    ARROW: {"schema": {"type": "string", "format": "binary", "description": "The columns of `r2n predict --out`."}},
}


@router.post(
    "/api/query",
    summary="Ask: one question or many",
    responses={200: {"model": answers.QueryAnswer, "content": KINDS, "description": "The answers."}},
)
async def query(request: Request, asked: QueryRequest) -> Response:
    """Answer queries, as `r2n predict` does. `Accept` chooses JSON, JSON Lines or an Arrow stream."""
    job = {**asked.to_job(), "accept": accepted(request.headers.get("accept", ""))}
    return _sent(await _pool(request).ask("query", job))


@router.post("/api/explain", summary="Why", responses={200: {"model": answers.ExplainAnswer}})
async def explain(request: Request, asked: ExplainRequest) -> Response:
    """Say why an atom is answered as it is, and what would turn it, with a drawing."""
    return _sent(await _pool(request).ask("explain", asked.to_job()))


@router.post("/api/what-if", summary="What would change", responses={200: {"model": answers.WhatIfAnswer}})
async def what_if(request: Request, asked: WhatIfRequest) -> Response:
    """Compare answers before and after a change that this request alone makes."""
    return _sent(await _pool(request).ask("what-if", asked.to_job()))


@router.post("/api/check", summary="A query as it is typed", responses={200: {"model": answers.CheckAnswer}})
async def check(request: Request, asked: CheckRequest) -> Response:
    """Say whether a query can be asked, and how it may go on."""
    return _sent(await _pool(request).ask("check", asked.model_dump()))


@router.get("/api/constants", summary="Search constants", responses={200: {"model": answers.ConstantsAnswer}})
async def constants(
    request: Request,
    search: Annotated[str, Query(max_length=NAME_IN_ADDRESS)] = "",
    domain: Annotated[str | None, Query(max_length=NAME_IN_ADDRESS)] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 20,
) -> Response:
    """Find constants by a part of their names."""
    return _sent(await _pool(request).ask("constants", {"search": search, "domain": domain, "limit": limit}))


ABOUT: dict[int | str, dict[str, Any]] = {
    200: {"model": answers.AboutAnswer},
    404: {"model": answers.Failure, "description": "There is no such constant."},
}


@router.get("/api/about", summary="One constant, of any name", responses=ABOUT)
async def about_named(
    request: Request,
    name: Annotated[str, Query(max_length=NAME_IN_ADDRESS, examples=["italy"])],
    top: Annotated[int, Query(ge=1, le=100)] = 10,
) -> Response:
    """Tell the same as `/api/about/NAME`, also where the name is `.` or `..`, which no path can end with."""
    return await about(request, name, top)


@router.get("/api/about/{name:path}", summary="One constant", responses=ABOUT)
async def about(
    request: Request,
    name: Annotated[str, Path(max_length=NAME_IN_ADDRESS, examples=["italy"])],
    top: Annotated[int, Query(ge=1, le=100)] = 10,
) -> Response:
    """Tell what is known and predicted of a constant, its features, and what is around it."""
    return _sent(await _pool(request).ask("about", {"name": name, "top": top}))


@router.get("/api/run", summary="What is served", responses={200: {"model": answers.RunAnswer}})
async def run(request: Request) -> Response:
    """Tell the problem, the network, the predicates, the rules and the limits."""
    return _sent(await _pool(request).ask_once("run"))


@router.get("/api/rules", summary="What the rules do", responses={200: {"model": dict[str, Any]}})
async def rules(request: Request) -> Response:
    """Give the document of `r2n rules --json`, computed at first use."""
    return _sent(await _pool(request).ask_once("rules"))


@router.get("/api/report", summary="How good it is", responses={200: {"model": dict[str, Any]}})
async def report(request: Request) -> Response:
    """Give curves, metrics, reliability and ranks as `r2n report` shows them, computed at first use."""
    return _sent(await _pool(request).ask_once("report"))


@router.get("/health", summary="Whether it is there", responses={200: {"model": answers.Health}})
async def health(request: Request) -> Response:
    """Say that the server is there; 503 where it can answer nothing any more."""
    broken = _pool(request).broken
    if broken is not None:
        raise BusyError(broken)
    return _sent(Reply.of({"status": "ok"}))


@router.get("/metrics", summary="Counters", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Tell what was asked and how long it took, in the text format of Prometheus."""
    return PlainTextResponse(_pool(request).metrics.text(), media_type="text/plain; version=0.0.4")
