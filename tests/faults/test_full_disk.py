"""A disk that is full: the command says so, and what was written before is whole."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from r2n.prediction.trained import Trained
from tests.examples import first_of
from tests.faults.all_commands import WRITING, filled, with_run
from tests.faults.killed_works import Given, check_whole
from tests.faults.warm_process import Conditions, WarmProcess
from tests.toy_problem import write_toy_problem

PROGRAM = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write beyond the limit is an error, as on a full disk
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
sys.argv[1:2] = []
from r2n.__main__ import main
main()
"""


def limited(size: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    """A command that may write no file larger than `size` bytes."""
    command = [sys.executable, "-c", PROGRAM, str(size), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ, timeout=600)


@pytest.mark.slow
def test_the_last_checkpoint_is_kept_and_the_training_goes_on_when_there_is_room(tmp_path: Path) -> None:
    assert hasattr(resource, "RLIMIT_FSIZE")
    toy, run = write_toy_problem(tmp_path / "toy", epochs=300), tmp_path / "run"
    options = ("train", toy, "--out", run, "--checkpoint-seconds", 0, "--set", "model.dim=4", "--resume")
    stopped = limited(40_000, *options)  # the trace grows beyond
    assert stopped.returncode == 1, stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert "File too large" in stopped.stderr
    assert "--resume" in stopped.stderr
    assert not list(run.glob(".*"))
    Trained.load(run)
    done = limited(10_000_000, *options)
    assert done.returncode == 0, done.stderr
    assert len((run / "trace.jsonl").read_text().splitlines()) == 300


@pytest.mark.slow
@pytest.mark.parametrize("size", [100, 2_000, 4_000])
def test_a_run_that_cannot_begin_leaves_nothing_half(size: int, tmp_path: Path) -> None:
    toy, run = write_toy_problem(tmp_path / "toy", epochs=2), tmp_path / "run"
    stopped = limited(size, "train", toy, "--out", run)
    assert stopped.returncode in (1, 2), stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert not list(run.glob(".*"))
    done = limited(10_000_000, "train", toy, "--out", run, "--resume")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("size", [100, 1_500])
@pytest.mark.parametrize("command", first_of(WRITING, 1))
def test_whatever_is_written_is_whole_or_not_there(
    command: str, size: int, warm: WarmProcess, given: Given, tmp_path: Path
) -> None:
    folder, arguments = with_run(given, tmp_path), filled(WRITING[command], given)
    stopped = warm.run("r2n", *arguments, folder=folder, under=Conditions(file_size=size))
    assert "Traceback" not in stopped.said
    if stopped.code:  # what is smaller has been written
        assert stopped.code in (1, 2), stopped.said
        assert "File too large" in stopped.said
        check_whole(folder)
    again = warm.run("r2n", *arguments, *(["--resume"] if "train" in command else []), folder=folder)
    assert again.code == (2 if command.startswith("datasets") and not stopped.code else 0), again.said
    check_whole(folder)
    assert not [path for path in folder.rglob("*") if path.name.startswith(".")]


@pytest.mark.slow
def test_a_report_that_does_not_fit_leaves_the_old_one(warm: WarmProcess, given: Given, tmp_path: Path) -> None:
    folder = with_run(given, tmp_path)
    before = (folder / "run" / "report.html").read_bytes()
    stopped = warm.run("r2n", "report", "run", folder=folder, under=Conditions(file_size=1_500))
    assert stopped.code in (1, 2), stopped.said
    assert "File too large" in stopped.said
    assert (folder / "run" / "report.html").read_bytes() == before
    assert not [path for path in folder.rglob("*") if path.name.startswith(".")]
