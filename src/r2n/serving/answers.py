"""A run, served: what answers say, as schemas."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Document(BaseModel):
    """A part of an answer."""

    model_config = ConfigDict(extra="forbid")


class Caret(Document):
    """Where in a line an error is; columns count from 1."""

    line: str
    column: int


class Failure(Document):
    """What is wrong, where, and what to do next, as the command line words it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "what": "unknown constant 'itly'",
                    "where": "queries[0]",
                    "hint": "did you mean 'italy'?",
                    "caret": None,
                }
            ]
        }
    )

    what: str
    where: str | None
    hint: str | None
    caret: Caret | None


class Answer(Document):
    """An atom with its probability.

    A `known` atom has that of what is known; a `closed` one that is no fact is false. `network` is what the network
    alone says, `reached`: a ground rule holds the atom; `spread`: the deviation of the logit over an ensemble.
    """

    atom: str
    probability: float
    known: bool | None
    closed: bool
    network: float
    logit: float | None
    reached: bool
    spread: float | None
    predicate: str
    constants: list[str]


class Calibration(Document):
    """How logits become probabilities."""

    temperature: float
    shift: float
    fitted_on: str
    why_not: str
    on_validation: bool


class Result(Document):
    """The answers to one query, the most probable first, and how many other atoms there were.

    `columns` names the arguments, as the columns of a table of these answers.
    """

    question: str
    columns: list[str]
    answers: list[Answer]
    asked: int
    refused: int
    left_out: int
    hidden: int


class QueryAnswer(Document):
    """A result for each query."""

    results: list[Result]
    calibration: Calibration | None


class ExplainAnswer(BaseModel):
    """The document of `r2n explain --json`, and its drawing."""

    atom: str
    probability: float
    logit: float | None
    known: bool | None
    closed: bool
    spread: float | None
    calibrated: str | None
    layers: list[dict[str, Any]]
    reasons: list[dict[str, Any]]
    counterfactuals: list[dict[str, Any]]
    turned_by: dict[str, Any] | None
    fidelity: dict[str, Any] | None
    input: dict[str, Any] | None
    contrast: dict[str, Any] | None
    notes: list[str]
    labels: dict[str, str]
    drawing: dict[str, Any]


class Change(Document):
    """An atom before and after; None where it cannot be answered, or is not there."""

    atom: str
    before: Answer | None
    after: Answer | None


class WhatIfAnswer(Document):
    """What changes, the largest change of probability first; how many atoms were compared, and how many moved."""

    changes: list[Change]
    compared: int
    moved: int


class Constant(Document):
    """A constant, and the domains it is in."""

    name: str
    domains: list[str]


class ConstantsAnswer(Document):
    """The first constants, of so many that fit."""

    total: int
    constants: list[Constant]


class Fact(Document):
    """An atom that is known to be true or false."""

    atom: str
    predicate: str
    truth: bool


class Prediction(Document):
    """The most probable answers to a question about a constant."""

    predicate: str
    question: str
    answers: list[Answer]


class Feature(Document):
    """A text, or a vector of some size."""

    domain: str
    name: Literal["text", "vector"]
    text: str | None
    size: int | None


class Neighbour(Document):
    """A constant of a neighbourhood; `known`: a fact leads to it."""

    name: str
    known: bool


class Connection(Document):
    """A fact, or (truth null) a prediction, between two constants."""

    predicate: str
    start: str = Field(alias="from")
    to: str
    atom: str
    truth: bool | None
    probability: float


class Neighbourhood(Document):
    """Constants, and what links them."""

    constants: list[Neighbour]
    links: list[Connection]


class AboutAnswer(Document):
    """All about a constant."""

    name: str
    domains: list[str]
    facts: list[Fact]
    facts_total: int
    predictions: list[Prediction]
    features: list[Feature]
    neighbourhood: Neighbourhood


class CheckAnswer(Document):
    """Whether a query can be asked; else why not. `completions` may each stand in place of all from `at` on."""

    ok: bool
    what: str | None
    hint: str | None
    caret: Caret | None
    completions: list[str]
    at: int


class DomainLine(Document):
    """A domain and its number of constants."""

    name: str
    constants: int
    parts: list[str]


class PredicateLine(Document):
    """A predicate and its domains."""

    name: str
    domains: list[str]
    closed: bool


class RuleLine(Document):
    """A rule as the theory has it."""

    name: str
    text: str


class RunAnswer(Document):
    """What is served."""

    problem: str
    version: str
    input: str
    reasoner: str
    layers: int
    dim: int
    strategy: str
    evidence_input: str
    networks: int
    calibration: Calibration | None
    facts: int
    constants: int
    domains: list[DomainLine]
    predicates: list[PredicateLine]
    rules: list[RuleLine]
    limits: dict[str, float]


class Health(Document):
    """That the server is there."""

    status: Literal["ok"]
