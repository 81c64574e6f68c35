"""A run, served: what a request may take; all of it is stated in /openapi.json and in /api/run."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any

MEGABYTE = 2**20
QUERIES, FACTS, TEXT, ANSWERS = 1_000, 1_000, 100_000, 10_000  # these stand in the schemas of requests too
NAME_IN_ADDRESS = 10_000  # characters; of any script, two such names still fit into the head of a request


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may take, and how many of them there may be.

    `body` and `memory` are bytes; `memory` is what a worker may take above what the loaded run needs. `queries` bounds
    the questions of a request, `facts` what it says is known or not, `text` the characters of each. `candidates` is how
    many atoms the questions of a request may ask for together. `seconds` bounds the computing of an answer, and as long
    again its waiting; `report_seconds` bounds what is computed once and kept. `client_seconds` is the time a client has
    to send its request, and to read an answer. `waiting` requests may wait for a worker.
    """

    body: int = MEGABYTE
    queries: int = field(default=QUERIES, init=False)
    facts: int = field(default=FACTS, init=False)
    text: int = field(default=TEXT, init=False)
    answers: int = field(default=ANSWERS, init=False)
    candidates: int = 1_000_000
    seconds: float = 10.0
    report_seconds: float = 300.0
    client_seconds: float = 20.0
    memory: int = 2_048 * MEGABYTE
    waiting: int = 1_000
    connections: int = 512

    @classmethod
    def settable(cls) -> tuple[str, ...]:
        """The names of those that may be chosen; the others stand in the schemas of requests."""
        return tuple(part.name for part in fields(cls) if part.init)

    def to_dict(self) -> dict[str, Any]:
        """By name."""
        return asdict(self)

    def words(self) -> str:
        """As a list in Markdown."""
        said = {
            "body": f"{self.body:,} bytes of body",
            "queries": f"{self.queries:,} queries in a request",
            "facts": f"{self.facts:,} facts or constants in a list of a request",
            "text": f"{self.text:,} characters of a query, fact or name; {NAME_IN_ADDRESS:,} of one in an address",
            "candidates": f"{self.candidates:,} atoms that the queries of a request ask for together",
            "answers": f"{self.answers:,} answers to a query (`top`)",
            "seconds": f"{self.seconds:g} seconds to compute an answer, and as long again to wait for a worker",
            "report_seconds": f"{self.report_seconds:g} seconds for /api/rules and /api/report, computed once",
            "client_seconds": f"{self.client_seconds:g} seconds for a client to send a request, and to read an answer",
            "memory": f"{self.memory:,} bytes of memory for a worker, above the loaded run",
            "waiting": f"{self.waiting:,} requests that wait for a worker",
            "connections": f"{self.connections:,} connections at once",
        }
        return "\n".join(f"- `{part.name}`: {said[part.name]}" for part in fields(self))
