"""What the commands share."""

import json

import pytest
import typer
from typer.testing import CliRunner

from r2n.cli.screen import ClearErrors, print_json, progress_bar, screen, shortened
from r2n.errors import DataError


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


def test_progress_is_silent_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("work") as told:
        told(1, 2)
    assert capsys.readouterr() == ("", "")
    assert screen().width == 160
