"""What the commands share."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from r2n.cli import app as r2n_app
from r2n.cli.screen import ClearErrors, ScreenTable, print_json, screen, shortened
from r2n.errors import DataError

NASTY = ("[red]x[/red]", "[/]", "[/red]", "[link=file]", "[bold", "\\[", ":smiley:")


def test_an_error_is_a_message_and_exit_code_2() -> None:
    app = typer.Typer(cls=ClearErrors, pretty_exceptions_enable=False)

    @app.command()
    def fail() -> None:
        raise DataError("something is wrong", hint="mend it")

    @app.command()
    def other() -> None:
        pass

    result = CliRunner().invoke(app, ["fail"])
    assert result.exit_code == 2
    assert result.output == "error: something is wrong\n  mend it\n"


def test_json_keeps_letters_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"name": "åland"})
    printed = capsys.readouterr().out
    assert json.loads(printed) == {"name": "åland"}
    assert "åland" in printed


def test_long_texts_are_cut() -> None:
    assert shortened("short", 10) == "short"
    assert shortened("a rather long text", 10) == "a rath ..."


@pytest.mark.parametrize("name", NASTY)
def test_a_table_shows_names_as_they_are(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    table = ScreenTable("atom", title=f"{name}, test")
    table.add_texts([f"p({name})"])
    screen().print(table)
    printed = capsys.readouterr().out
    assert f"{name}, test" in printed
    assert f"p({name})" in printed


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
