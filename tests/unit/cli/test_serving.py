"""r2n serve: what it refuses before it starts."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from r2n.cli import app


def refused(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["serve", *(str(argument) for argument in arguments)])
    assert result.exit_code == 2
    return result.output


def test_another_host_without_a_token_is_refused(tmp_path: Path) -> None:
    assert "there is no token" in refused(tmp_path, "--host", "0.0.0.0")


def test_what_is_missing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("r2n.cli.runs.find_spec", lambda name: None)
    assert "pip install 'r2n[serve]'" in refused(tmp_path)


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    assert str(tmp_path) in refused(tmp_path, "--port", "0")
