"""A reader who has seen enough, as `head -1`: no traceback, and an exit code that says so or says nothing."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples import first_of
from tests.faults.all_commands import READING, filled, with_run
from tests.faults.killed_works import Given
from tests.faults.warm_process import Conditions, WarmProcess

SENSIBLE = (0, 1, 141)


@pytest.mark.parametrize("command", first_of(READING, 1))
def test_a_reader_that_is_gone(command: str, warm: WarmProcess, given: Given, tmp_path: Path) -> None:
    folder = with_run(given, tmp_path)
    for more in ([], ["--json"]):
        arguments = [*filled(READING[command], given), *more]
        ended = warm.run("r2n", *arguments, folder=folder, under=Conditions(closed_output=True))
        assert ended.code in SENSIBLE, ended.said
        assert "Traceback" not in ended.said
        assert "Broken pipe" not in ended.said


@pytest.mark.slow
@pytest.mark.parametrize("command", ["predict", "explain"])
def test_head(command: str, given: Given, tmp_path: Path) -> None:
    arguments = filled(READING[command], given)
    line = shlex.join([sys.executable, "-m", "r2n", *arguments, "--json"])
    shell = f"{line} | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", shell], capture_output=True, text=True, cwd=with_run(given, tmp_path), env=os.environ
    )
    assert len(done.stdout.splitlines()) == 1
    assert not any(words in done.stderr for words in ("Traceback", "Exception ignored", "Broken pipe")), done.stderr
    assert done.returncode in SENSIBLE
