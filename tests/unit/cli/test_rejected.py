"""Rows that were skipped are counted by kind, wherever a problem is read."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from r2n.cli import app
from r2n.cli.screen import MOST_SHOWN, by_kind, print_rejected
from r2n.errors import DataError
from tests.toy_problem import write_toy_problem

runner = CliRunner()


@pytest.fixture
def spoiled(tmp_path: Path) -> Path:
    """Ten towns of an unknown valley, and a row that is cut short."""
    toy = write_toy_problem(tmp_path / "toy", epochs=1)
    text = (toy / "problem.toml").read_text()
    (toy / "problem.toml").write_text(f'on_error = "skip"\n{text}[domains]\nvalley = ["north", "south"]\n')
    with (toy / "train.tsv").open("a") as file:
        file.write("".join(f"n{i}\tliesIn\televation {i}\n" for i in range(10)) + "n0\tliesIn\n")
    return toy


def test_kinds_are_errors_but_for_names_and_numbers() -> None:
    errors = [DataError(text) for text in ("constant 'a' is outside 3", "constant 'b's' is outside 4", "empty")]
    assert {kind: len(found) for kind, found in by_kind(errors).items()} == {
        "constant '...' is outside N": 2,
        "empty": 1,
    }


@pytest.mark.parametrize("more", [0, 1])
def test_more_are_promised_where_there_are_more(more: int, capsys: pytest.CaptureFixture[str]) -> None:
    print_rejected([DataError(f"row {i} is empty") for i in range(MOST_SHOWN + more)])
    lines = capsys.readouterr().err.splitlines()
    assert lines[: 1 + MOST_SHOWN] == [
        f"skipped {MOST_SHOWN + more} rows: row N is empty",
        *(f"  row {i} is empty" for i in range(MOST_SHOWN)),
    ]
    assert lines[1 + MOST_SHOWN :] == ["  ... and 1 more: --all shows them"] * more


@pytest.mark.parametrize("command", ["check", "ground", "train"])
def test_every_command_says_what_it_skipped(command: str, spoiled: Path, tmp_path: Path) -> None:
    more = ["--out", str(tmp_path / "run")] if command == "train" else []
    result = runner.invoke(app, [command, str(spoiled), *more])
    assert result.exit_code == 0, result.output
    lines = result.stderr.splitlines()
    assert "skipped 10 rows: constant '...' is outside domain '...' (position N of liesIn)" in lines
    assert sum("elevation" in line for line in lines) == 3
    assert f"  ... and 7 more: {'--all' if command == 'check' else 'r2n check P --all'} shows them" in lines
    assert any(line.startswith("skipped 1 row: too few columns") for line in lines)


def test_all_shows_every_row_and_json_counts_them(spoiled: Path) -> None:
    said = runner.invoke(app, ["check", str(spoiled), "--all"]).stderr
    assert all(f"constant 'elevation {i}' is outside" in said for i in range(10))
    assert "more" not in said
    document = json.loads(runner.invoke(app, ["check", str(spoiled), "--json"]).stdout)
    assert sorted(document["rejected_kinds"].values()) == [1, 10]
    assert len(document["rejected"]) == 11
