"""Which problems Spark reads itself, and why not the others."""

from pathlib import Path

import pytest

from r2n.data.problem import ProblemFile
from r2n.grounding.remote.problem import why_not_remote
from r2n.options import GroundingOptions


@pytest.mark.parametrize(
    ("changes", "options", "reason"),
    [
        ({}, {}, None),
        ({"facts": {"train": "a.tsv"}}, {}, "a.tsv is no Parquet and no table of Spark's"),
        ({"facts": {}}, {}, "there is no table of facts"),
        ({"candidates": {"p": {"tables": "c.tsv"}}}, {}, "candidates are found in one process"),
        ({"on_error": "skip"}, {}, "wrong rows are skipped in one process"),
        ({}, {"reciprocal": True}, "reciprocals are made in one process"),
        ({}, {"strategy": "backward"}, "backward chaining goes on from what is found"),
    ],
)
def test_the_reason_is_told(changes: dict[str, object], options: dict[str, object], reason: str | None) -> None:
    file = ProblemFile.model_validate({"facts": {"train": "a.parquet"}, **changes})
    assert why_not_remote(file, Path(), GroundingOptions.model_validate(options)) == reason
