"""A run, served: what requests may say, as schemas with examples."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from r2n.serving.limits import ANSWERS, FACTS, QUERIES, TEXT

CHANGES = ("with", "without", "constants", "without_rules")  # the fields that change what is known

Text = Annotated[str, Field(max_length=TEXT)]
Facts = Annotated[list[Text], Field(max_length=FACTS)]
Queries = Annotated[list[Text], Field(max_length=QUERIES)]


class Changes(BaseModel):
    """What is otherwise, for this request alone: facts that are known too or no longer, constants, rules left out."""

    model_config = ConfigDict(extra="forbid", strict=True)

    more: Facts = Field(
        default=[], alias="with", description="Facts that are known too; ! before those that are false."
    )
    without: Facts = Field(default=[], description="Facts that are no longer known; goes before `with`.")
    constants: dict[Text, Facts] = Field(
        default={}, max_length=FACTS, description="New constants, by the domain that each is in."
    )
    without_rules: Facts = Field(default=[], description="Names of rules that are left out.")

    def to_job(self) -> dict[str, Any]:
        """As a worker reads it."""
        return self.model_dump(by_alias=True)


class QueryRequest(Changes):
    """Questions, and which of their answers are told."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"queries": ["locatedIn(italy, ?)"], "top": 3},
                {"queries": ["locatedIn(?, europe)", "neighborOf(italy, france)"], "unknown": True},
                {
                    "queries": ["locatedIn(atlantis, ?)"],
                    "with": ["neighborOf(atlantis, portugal)", "neighborOf(portugal, atlantis)"],
                    "constants": {"country": ["atlantis"]},
                },
            ]
        }
    )

    queries: Annotated[list[Text], Field(min_length=1, max_length=QUERIES)] = Field(
        description="Atoms; ? stands for what is asked."
    )
    top: int = Field(default=10, ge=1, le=ANSWERS, description="How many answers to each.")
    unknown: bool = Field(default=False, description="Only what is not known already.")
    everything: bool = Field(default=False, description="Also atoms that no ground rule reaches.")


class ExplainRequest(Changes):
    """An atom that is explained."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"atom": "locatedIn(italy, europe)"},
                {"atom": "locatedIn(italy, europe)", "against": "locatedIn(italy, africa)", "depth": 1},
                {"atom": "locatedIn(italy, europe)", "without": ["neighborOf(italy, france)"], "top": 3},
            ]
        }
    )

    atom: Text
    against: Text | None = Field(default=None, description="Why not rather this one.")
    depth: int = Field(default=2, ge=0, le=6, description="How many ground rules deep the reasons of reasons go.")
    top: int = Field(default=5, ge=1, le=50, description="How many ground rules of each atom.")


class WhatIfRequest(Changes):
    """Changes, and the questions whose answers are compared; without any, what changes most is told."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"without": ["locatedIn(france, europe)"], "queries": ["locatedIn(italy, ?)"]},
                {"with": ["neighborOf(italy, spain)"], "top": 20},
            ]
        }
    )

    queries: Queries = Field(default=[], description="Atoms; ? stands for what is asked.")
    top: int = Field(default=50, ge=1, le=ANSWERS, description="How many changes, the largest first.")


class CheckRequest(BaseModel):
    """A query as it is being typed."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [{"query": "locatedIn(ita"}]})

    query: Text
