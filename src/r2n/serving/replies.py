"""A run, served: what a worker hands back for a request, as the bytes that go to the client."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from r2n.errors import Location, R2NError
from r2n.files import json_text

JSON, JSON_LINES, ARROW = "application/json", "application/x-ndjson", "application/vnd.apache.arrow.stream"
REFUSED, NOT_FOUND, FAILED, BUSY = 422, 404, 500, 503


@dataclass(frozen=True, slots=True)
class Reply:
    """A status, what kind of content, and the content."""

    status: int
    kind: str
    body: bytes

    @classmethod
    def of(cls, document: object, status: int = 200) -> "Reply":
        """A JSON document."""
        return cls(status, JSON, to_json(document))


def to_json(document: object) -> bytes:
    """As JSON in ASCII, so that no name can make it invalid; what is not finite becomes null."""
    return json_text(document, ascii_alone=True).encode()


def error_document(
    what: str, where: str | None = None, hint: str | None = None, caret: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What every error says."""
    return {"what": what, "where": where, "hint": hint, "caret": caret}


def refusal(error: R2NError, status: int = REFUSED, *, at: str | None = None) -> Reply:
    """An error as the command line words it; `at` names the part of the request."""
    place = str(error.where) if error.where is not None else ""
    if at is not None and (error.where is None or error.where.source is None):
        place = at
    return Reply.of(error_document(error.what, place or None, error.hint or None, caret_of(error.where)), status)


def caret_of(where: Location | None) -> dict[str, Any] | None:
    """The line and the column (from 1) that an error points at, where both are known."""
    if where is None or where.excerpt is None or where.column is None:
        return None
    return {"line": where.excerpt, "column": where.column}
