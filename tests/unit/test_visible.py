"""Names that would steer a terminal."""

import pytest
from typer.testing import CliRunner

from r2n.cli import app
from r2n.cli.screen import print_table
from r2n.visible import visible


def test_what_steers_a_terminal_is_shown_instead(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["atom"], [], [["a\x1b[2Jb\x07", "left\u202eright", "nul\0", "åé"]], "cr\rx")
    printed = capsys.readouterr().out
    for shown in (r"cr\rx", r"a\x1b[2Jb\x07", r"left\u202eright", r"nul\x00", "åé"):
        assert shown in printed
    assert not set("\r\x1b\x07\u202e\0") & set(printed)
    assert visible("one line\n\tanother") == "one line\n\tanother"


def test_an_error_does_not_steer_a_terminal() -> None:
    result = CliRunner().invoke(app, ["check", "no\x1b[2J\rsuch"], color=True)
    assert result.exit_code == 2
    assert r"no\x1b[2J\rsuch" in result.stderr
    assert "\x1b" not in result.stderr
