"""What the commands print: errors, tables, reports, rows that were skipped."""

import json
from math import nan
from pathlib import Path

import pytest
from typer.testing import CliRunner

from r2n.cli import app
from r2n.cli import app as r2n_app
from r2n.cli.screen import (
    MOST_SHOWN,
    baseline_notes,
    by_kind,
    print_rejected,
    print_report,
)
from r2n.errors import DataError
from r2n.evaluation.report import Report
from tests.command_line import invoke
from tests.toy_problem import write_toy_problem

NASTY = ("[red]x[/red]", "[/]", "[/red]", "[link=file]", "[bold", "\\[", ":smiley:")


def test_a_problem_with_nasty_names_is_checked_and_grounded(tmp_path: Path) -> None:
    (tmp_path / "theory.r2n").write_text("domain d\npredicate p(d, d)\nrule r: p(x, y) -> p(y, x)\n")
    (tmp_path / "train.tsv").write_text("".join(f"{name}\tp\tother\n" for name in NASTY))
    (tmp_path / "problem.toml").write_text('name = "[/]"\ntheory = "theory.r2n"\n[facts]\ntrain = "train.tsv"\n')
    for command in ("check", "ground"):
        result = CliRunner().invoke(r2n_app, [command, str(tmp_path)])
        assert result.exit_code == 0, result.output
        assert "[/]" in result.stdout
    asked = CliRunner().invoke(r2n_app, ["infer", str(tmp_path), 'p(other, "[red]x[/red]")'])
    assert "[red]x[/red]" in asked.stdout, asked.output


def report_of(metrics: dict[str, float], baselines: dict[str, dict[str, float]], **protocol: str | int) -> Report:
    return Report("test", metrics, {}, {"task": "ranking", "queries": 3, **protocol}, baselines=baselines)


def test_the_protocol_stands_with_the_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    baselines = {"rules alone": {"mrr": 0.54, "hits@1": nan}}
    report = report_of({"mrr": 0.352, "hits@1": 0.3}, baselines, constraints="irreflexive 4")
    print_report(report, "towns")
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("towns, test, with constraints mrr hits@1 all queries 0.3520 0.3000 rules alone 0.5400 -")
    assert out.endswith("constraints: irreflexive 4")


def test_a_part_that_is_better_alone_by_much_is_worth_a_note() -> None:
    def notes(own: float, rules: float, layer: float = 0.0) -> list[str]:
        return baseline_notes(
            report_of({"mrr": own}, {"rules alone": {"mrr": rules}, "input layer alone": {"mrr": layer}})
        )

    assert notes(0.352, 0.54) == [
        "test: the rules alone, counted, reach mrr 0.540, and all together 0.352: the network does not earn its cost"
    ]
    assert notes(0.352, 0.1, 0.4) == [
        "test: the input layer alone reaches mrr 0.400, and all together 0.352: the rules do not earn their cost"
    ]
    assert notes(0.5, 0.515) == notes(nan, 0.5) == notes(0.5, nan) == []
    assert len(baseline_notes(report_of({"ap": 0.5}, {"rules alone": {"ap": 0.6}}))) == 1


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
    document = json.loads(invoke("check", str(spoiled), "--json"))
    assert sorted(document["rejected_kinds"].values()) == [1, 10]
    assert len(document["rejected"]) == 11
