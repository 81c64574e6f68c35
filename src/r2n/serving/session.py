"""What a request may contain, the loaded run that all workers share, and the replies that they make of it.

The schemas have examples; they and the limits on a request are what /openapi.json and /api/run state.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from r2n.data.atom_text import looks_like_atom
from r2n.errors import DataError, Location, R2NError
from r2n.files import json_text
from r2n.model.model import Model

MEGABYTE = 2**20
QUERIES, FACTS, TEXT, ANSWERS = 1_000, 1_000, 100_000, 10_000
NAME_IN_ADDRESS = 10_000  # characters; of any script, two such names still fit into the head of a request
CHANGES = ("with", "without", "constants", "without_rules")  # the fields that change what is known


def _limit(value: int | float, text: str, *, is_fixed: bool = False) -> Any:
    """A limit and its description; a fixed one is part of the schemas below."""
    return field(default=value, init=not is_fixed, metadata={"text": text})


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on one request, and on the number of requests."""

    body: int = _limit(MEGABYTE, "{:,} bytes of body")
    queries: int = _limit(QUERIES, "{:,} queries in a request", is_fixed=True)
    facts: int = _limit(FACTS, "{:,} facts or constants in a list of a request", is_fixed=True)
    text: int = _limit(TEXT, f"{{:,}} characters of a text; {NAME_IN_ADDRESS:,} of one in an address", is_fixed=True)
    answers: int = _limit(ANSWERS, "{:,} answers to a query (`top`)", is_fixed=True)
    candidates: int = _limit(1_000_000, "{:,} atoms that the queries of a request ask for together")
    seconds: float = _limit(10.0, "{:g} seconds to compute an answer, and as long again to wait for a worker")
    report_seconds: float = _limit(300.0, "{:g} seconds for /api/rules and /api/report, computed once")
    client_seconds: float = _limit(20.0, "{:g} seconds for a client to send a request, and to read an answer")
    memory: int = _limit(2_048 * MEGABYTE, "{:,} bytes of memory for a worker, above the loaded run")
    waiting: int = _limit(1_000, "{:,} requests that wait for a worker")
    connections: int = _limit(512, "{:,} connections at once")


Text = Annotated[str, Field(max_length=TEXT)]
Facts = Annotated[list[Text], Field(max_length=FACTS)]
Queries = Annotated[list[Text], Field(max_length=QUERIES, description="Atoms; ? stands for what is asked.")]


def _config(*examples: dict[str, Any]) -> ConfigDict:
    return ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": list(examples)})


class Changes(BaseModel):
    """Facts, constants and rules that this request alone adds or leaves out."""

    model_config = _config()

    more: Facts = Field([], alias="with", description="Facts that are known too; ! before those that are false.")
    without: Facts = Field(default=[], description="Facts that are no longer known; applied before `with`.")
    constants: dict[Text, Facts] = Field({}, max_length=FACTS, description="New constants, by their domains.")
    without_rules: Facts = Field(default=[], description="Names of rules that are left out.")


class QueryRequest(Changes):
    """Queries, and which of their answers are sent."""

    model_config = _config(
        {"queries": ["locatedIn(italy, ?)"], "top": 3},
        {"queries": ["locatedIn(?, europe)", "neighborOf(italy, france)"], "unknown": True},
        {
            "queries": ["locatedIn(atlantis, ?)"],
            "with": ["neighborOf(atlantis, portugal)", "neighborOf(portugal, atlantis)"],
            "constants": {"country": ["atlantis"]},
        },
    )

    queries: Annotated[Queries, Field(min_length=1)]
    top: int = Field(default=10, ge=1, le=ANSWERS, description="How many answers to each.")
    unknown: bool = Field(default=False, description="Only what is not known already.")
    everything: bool = Field(default=False, description="Also atoms that no ground rule reaches.")


class ExplainRequest(Changes):
    """An atom to explain."""

    model_config = _config(
        {"atom": "locatedIn(italy, europe)"},
        {"atom": "locatedIn(italy, europe)", "against": "locatedIn(italy, africa)", "depth": 1},
        {"atom": "locatedIn(italy, europe)", "without": ["neighborOf(italy, france)"], "top": 3},
    )

    atom: Text
    against: Text | None = Field(default=None, description="Why not rather this one.")
    depth: int = Field(default=2, ge=0, le=6, description="How many ground rules deep the reasons of reasons go.")
    top: int = Field(default=5, ge=1, le=50, description="How many ground rules of each atom.")


class WhatIfRequest(Changes):
    """Changes, and the queries whose answers are compared; without queries, the largest changes are sent."""

    model_config = _config(
        {"without": ["locatedIn(france, europe)"], "queries": ["locatedIn(italy, ?)"]},
        {"with": ["neighborOf(italy, spain)"], "top": 20},
    )

    queries: Queries = []
    top: int = Field(default=50, ge=1, le=ANSWERS, description="How many changes, the largest first.")


class CheckRequest(BaseModel):
    """A query as it is being typed."""

    model_config = _config({"query": "locatedIn(ita"})

    query: Text


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
        for name, facts in (("with", more), ("without", fewer)):
            for i, text in enumerate(facts):
                if not looks_like_atom(text):
                    hint = "write PREDICATE(CONSTANT, ...), with ! before it if it is false"
                    raise DataError(f"{name}[{i}] is no fact", hint=hint)
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
