"""A run, served: the app, of the API and the page."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import FileResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from r2n import __version__
from r2n.explanation.drawing import style_sheet
from r2n.serving.guards import Access, Guard
from r2n.serving.keeper import Keeper
from r2n.serving.limits import Limits
from r2n.serving.metrics import Metrics
from r2n.serving.pool import BusyError, Pool
from r2n.serving.replies import BUSY, JSON, REFUSED, error_document, to_json
from r2n.serving.routes import router

PAGE = Path(__file__).parent / "page"
VIEWS = ("/", "/about", "/about/{name:path}", "/explain", "/what-if", "/rules", "/run")


def create_app(keeper: Keeper, access: Access, workers: int = 2, limits: Limits | None = None) -> FastAPI:
    """The app of a run that a keeper holds; `limits` may be narrower than its own."""
    metrics, limits = Metrics(), limits or keeper.limits

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        pool = app.state.pool = Pool(keeper, workers, metrics, limits)
        await pool.start()
        yield
        await pool.stop()

    app = FastAPI(title="r2n", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan)
    app.include_router(router)
    _add_page(app)
    _add_errors(app)
    app.openapi = lambda: _openapi(app, limits, access)
    app.add_middleware(Guard, access=access, limits=limits, metrics=metrics)
    return app


def _add_page(app: FastAPI) -> None:
    """Every view is the same page, which reads from its address what to show."""

    async def view() -> FileResponse:
        return FileResponse(PAGE / "index.html", media_type="text/html")

    for path in VIEWS:
        app.add_api_route(path, view, methods=["GET"], include_in_schema=False)
    style = style_sheet()
    app.add_api_route("/static/drawing.css", lambda: Response(style, media_type="text/css"), include_in_schema=False)
    app.mount("/static", StaticFiles(directory=PAGE / "static"), name="static")


def _add_errors(app: FastAPI) -> None:
    """All errors in one form."""

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        is_syntax = first["type"] == "json_invalid"
        what = f"the body is no JSON: {first.get('ctx', {}).get('error', '')}" if is_syntax else first["msg"]
        return _told(400 if is_syntax else REFUSED, what, where_of(first["loc"]), "/openapi.json says what may be sent")

    @app.exception_handler(HTTPException)
    async def refused(_: Request, error: HTTPException) -> Response:
        response = _told(error.status_code, str(error.detail), None, "/openapi.json says what may be asked")
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(BusyError)
    async def busy(_: Request, error: BusyError) -> Response:
        response = _told(BUSY, str(error), None, "ask for less, or ask again later")
        response.headers["retry-after"] = "1"
        return response


def _told(status: int, what: str, where: str | None, hint: str | None) -> Response:
    return Response(to_json(error_document(what, where, hint)), status, media_type=JSON)


def where_of(place: Sequence[str | int]) -> str:
    """`queries[3]`, `search`: a part of a request, without whether it is in the body or the address."""
    parts = place[1:] if place and place[0] in ("body", "query", "path") else place
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return text.removeprefix(".") or "body"


def _openapi(app: FastAPI, limits: Limits, access: Access) -> dict[str, Any]:
    """The document of the API, with all limits."""
    if app.openapi_schema is None:
        words = "A trained run of r2n. What a request may take:\n\n" + limits.words()
        document = get_openapi(title="r2n", version=__version__, description=words, routes=app.routes)
        document["x-limits"] = limits.to_dict()
        if access.token is not None:
            document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            document["security"] = [{"token": []}]
        app.openapi_schema = document
    return app.openapi_schema
