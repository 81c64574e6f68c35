"""r2n ground where Spark reads the facts itself."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from r2n.cli import app
from tests.command_line import invoke
from tests.spark_problem import adaptive, write_problem

pytestmark = pytest.mark.spark
runner = CliRunner()


@pytest.fixture
def problem(tmp_path: Path) -> Iterator[Path]:
    with adaptive():
        yield write_problem(tmp_path / "problem")


def test_a_grounding_is_kept_and_then_read(problem: Path, tmp_path: Path) -> None:
    """All ground rules are kept; who reads them takes those that the problem's atoms can feel."""
    plain = ["ground", str(problem), "--strategy", "known-body"]
    command = [*plain, "--out", str(tmp_path / "out")]
    made = runner.invoke(app, [*command, "--engine", "local[2]"])
    assert made.exit_code == 0, made.output
    assert "grounded by Spark" in made.stdout
    assert "written to" in made.stderr
    read = json.loads(invoke(*command, "--json"))
    assert read["from_cache"]
    assert read["ground_rules"] == json.loads(invoke(*plain, "--json"))["ground_rules"] > 20
    trained = ["train", str(problem), "--set", "grounding.strategy=known-body", "--set", "training.epochs=1"]
    trained += ["--set", f"grounding.kept={tmp_path / 'out'}", "--out", str(tmp_path / "run")]
    assert runner.invoke(app, trained).exit_code == 0


def test_what_this_process_has_to_read_is_told(problem: Path, tmp_path: Path) -> None:
    command = ["ground", str(problem), "--strategy", "backward", "--engine", "local[2]", "--out", str(tmp_path / "out")]
    result = runner.invoke(app, [*command, "--json"])
    assert "backward chaining goes on from what is found" in result.stderr
    plain = runner.invoke(app, ["ground", str(problem), "--strategy", "backward", "--json"])
    kept = [json.loads(text.stdout) for text in (result, plain)]
    assert kept[0]["ground_rules"] == kept[1]["ground_rules"] > 0
