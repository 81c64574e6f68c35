"""What a request may contain, as schemas with examples, and the limits on it; /openapi.json and /api/run state them."""

from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

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
