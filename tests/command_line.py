"""The command line, run inside the test: what it prints, where it succeeds."""

import json
from typing import Any

from typer.testing import CliRunner

from r2n.cli import app


def run(*arguments: object) -> str:
    """What a command prints."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def document(*arguments: object) -> Any:
    """The JSON that a command prints with --json."""
    return json.loads(run(*arguments, "--json"))
