"""The loaded run that all workers share, and the replies that they make of it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from r2n.data.atom_text import looks_like_atom
from r2n.errors import DataError, Location, R2NError
from r2n.files import json_text
from r2n.model.model import Model
from r2n.serving.requests import CHANGES, Limits

JSON, JSON_LINES, ARROW = "application/json", "application/x-ndjson", "application/vnd.apache.arrow.stream"
REFUSED, NOT_FOUND, FAILED, BUSY = 422, 404, 500, 503


@dataclass(frozen=True, eq=False)
class Session:
    """A run that was loaded from a folder; no request changes it."""

    folder: Path
    model: Model
    limits: Limits

    @classmethod
    def load(cls, folder: Path, limits: Limits) -> "Session":
        """Load the run in a folder, and compute once what queries and changes need, so that workers share it."""
        session = cls(folder, Model.load(folder, device="cpu"), limits)
        model = session.model
        known = model.known_atoms[:1]
        _ = model.reachable_atoms, session.folded
        if len(known):
            model.columns(known)
            truth = model.problem.train.truth[:1]
            model.without_facts(("" if truth[0] else "!") + model.base.names(known)[0])
        return session

    @cached_property
    def folded(self) -> list[str]:
        """The names of all constants, case-folded."""
        return [name.casefold() for name in self.model.base.language.constants]

    def changed(self, request: Mapping[str, Any]) -> Model:
        """The model with the facts (none may name a file), constants and rules that a request adds or leaves out."""
        more, fewer, constants, rules = (request.get(name) or () for name in CHANGES)
        if not (more or fewer or constants or rules):
            return self.model
        for field, facts in (("with", more), ("without", fewer)):
            for i, text in enumerate(facts):
                if not looks_like_atom(text):
                    hint = "write PREDICATE(CONSTANT, ...), with ! before it if it is false"
                    raise DataError(f"{field}[{i}] is no fact", hint=hint)
        return self.model.with_changes(more, fewer, constants or {}).without_rules(rules)


@dataclass(frozen=True, slots=True)
class Caret:
    """The position of an error in a line; columns count from 1."""

    line: str
    column: int

    @classmethod
    def from_location(cls, where: Location | None) -> "Caret | None":
        """The line and the column that an error points at, if both are known."""
        if where is None or where.excerpt is None or where.column is None:
            return None
        return cls(where.excerpt, where.column)


@dataclass(frozen=True, slots=True)
class Failure:
    """What is wrong, where, and what to do next, in the words of the command line."""

    what: str
    where: str | None = None
    hint: str | None = None
    caret: Caret | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """The status, the content type and the content of an answer."""

    status: int
    kind: str
    body: bytes

    @classmethod
    def from_document(cls, document: object, status: int = 200) -> "Reply":
        """A JSON document, or a dataclass as one."""
        return cls(status, JSON, to_json(document))

    @classmethod
    def from_error(cls, error: R2NError, status: int = REFUSED, at: str | None = None) -> "Reply":
        """An error in the words of the command line; `at` names the part of the request."""
        if at is None or (error.where is not None and error.where.source is not None):
            at = None if error.where is None else str(error.where)
        failure = Failure(error.what, at or None, error.hint or None, Caret.from_location(error.where))
        return cls.from_document(failure, status)


class RefusedError(Exception):
    """An error that has a status or a part of the request of its own, as a reply."""

    def __init__(self, error: R2NError, status: int = REFUSED, at: str | None = None) -> None:
        """Answer with this error."""
        self.reply = Reply.from_error(error, status, at)


def to_json(document: object) -> bytes:
    """JSON in ASCII, so that no name can make it invalid; numbers that are not finite become null."""
    plain = asdict(document) if is_dataclass(document) and not isinstance(document, type) else document
    return json_text(plain, ascii_alone=True).encode()
