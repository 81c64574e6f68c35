"""A disk that is full: the command says so, and what was written before is whole."""

from pathlib import Path

import pytest

from r2n.model.model import Model
from tests.examples import first_of
from tests.faults.all_commands import WRITING, filled, with_run
from tests.faults.killed_works import Given, check_whole
from tests.faults.warm_process import Conditions, WarmProcess, done
from tests.toy_problem import write_toy_problem


@pytest.mark.slow
def test_the_last_checkpoint_is_kept_and_the_training_goes_on_when_there_is_room(
    warm: WarmProcess, tmp_path: Path
) -> None:
    toy, run = write_toy_problem(tmp_path / "toy", epochs=300), tmp_path / "run"
    options = ("train", toy, "--out", run, "--checkpoint-seconds", 0, "--set", "model.dim=4", "--resume")
    full = Conditions(file_size=40_000)  # the trace grows beyond
    stopped = warm.run("r2n", *options, folder=tmp_path, under=full)
    assert stopped.code == 1, stopped.said
    assert "Traceback" not in stopped.said
    assert "File too large" in stopped.said
    assert "--resume" in stopped.said
    assert not list(run.glob(".*"))
    Model.load(run)
    done(warm, tmp_path, "r2n", *options)
    assert len((run / "trace.jsonl").read_text().splitlines()) == 300


@pytest.mark.slow
@pytest.mark.parametrize("size", [100, 2_000, 4_000])
def test_a_run_that_cannot_begin_leaves_nothing_half(size: int, warm: WarmProcess, tmp_path: Path) -> None:
    toy, run = write_toy_problem(tmp_path / "toy", epochs=2), tmp_path / "run"
    stopped = warm.run("r2n", "train", toy, "--out", run, folder=tmp_path, under=Conditions(file_size=size))
    assert stopped.code in (1, 2), stopped.said
    assert "Traceback" not in stopped.said
    assert not list(run.glob(".*"))
    done(warm, tmp_path, "r2n", "train", toy, "--out", run, "--resume")


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
