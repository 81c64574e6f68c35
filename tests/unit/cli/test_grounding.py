"""r2n ground: what the tables and plans say (its other options are tested end to end)."""

import json
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from r2n.cli import app
from r2n.datasets.benchmarks import load
from r2n.grounding.cache import fingerprint, write_grounding
from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from tests.command_line import invoke

runner = CliRunner()


def test_an_engine_that_is_none_is_refused() -> None:
    assert "there is no engine 'oracle'" in invoke("ground", "countries-s3", "--engine", "oracle", code=2)


def test_a_grounding_in_parts_is_read_where_it_is_that_of_the_problem(tmp_path: Path) -> None:
    knowledge, grounder = load("countries-s3").knowledge, FullGrounder()
    grounding = grounder.ground(Store(knowledge))
    write_grounding(grounding, tmp_path / "kept", fingerprint(knowledge, grounder))
    command = ["ground", "countries-s3", "--strategy", "full", "--json"]
    kept = json.loads(invoke(*command, "--out", str(tmp_path / "kept")))
    made = json.loads(runner.invoke(app, command).stdout)
    assert kept["from_cache"]
    assert (
        kept["ground_rules"]
        == made["ground_rules"]
        == len(np.concatenate([p.atoms[:, 0] for p in grounding.ground_rules]))
    )


def test_a_grounding_beyond_the_memory_that_is_allowed_is_refused() -> None:
    refused = invoke("ground", "countries-s3", "--strategy", "full", "--memory", "100KB", code=2)
    assert "more than the 0.1 MB that it may take" in refused
