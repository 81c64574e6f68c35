"""The command line, run inside the test: what it prints, and never a traceback."""

import json
from typing import Any

from typer.testing import CliRunner

from r2n.cli import app


def invoke(*arguments: object, code: int = 0) -> str:
    """What a command that ends with this code prints; where it fails, with what stands on standard error."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result.output if code else result.stdout


def run(*arguments: object) -> str:
    return invoke(*arguments)


def document(*arguments: object) -> Any:
    return json.loads(invoke(*arguments, "--json"))
