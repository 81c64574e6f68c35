"""Real processes that share the work: the same numbers for any number of them, and what a killed one leaves."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.toy_problem import TOWNS, write_toy_problem

pytestmark = pytest.mark.slow

PROGRAM = [sys.executable, "-c", "from r2n.__main__ import main; main()"]
BATCHES = ["--set", "training.batch_size=5"]
EPOCHS = 30
TOLERANCE = 1e-3  # of a loss, after all epochs: rounding that the optimiser has made larger
PATIENCE = 300.0


def begun(*arguments: object, **environment: str) -> subprocess.Popen[str]:
    command = [*PROGRAM, *map(str, arguments)]
    env = os.environ | environment
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def done(*arguments: object, code: int = 0, **environment: str) -> tuple[str, str]:
    process = begun(*arguments, **environment)
    out, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, said
    assert "Traceback" not in said
    return out, said


def until(condition: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def helpers(pid: int) -> list[int]:
    """The processes that do a share of the work of another."""
    children = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return [child for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def losses(run: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (run / "trace.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A problem whose test is a ranking, and two runs of it: by one process, and by two."""
    place = tmp_path_factory.mktemp("processes")
    toy = write_toy_problem(place / "toy", epochs=EPOCHS)
    true = [line[:-2] for line in (toy / "test.tsv").read_text().splitlines() if line.endswith("1")]
    (toy / "test.tsv").write_text("\n".join(true) + "\n")
    lines = [f"{town}\tliesIn\t{valley}" for town in TOWNS for valley in ("north", "south")]
    (place / "queries.tsv").write_text("\n".join(lines * 2500) + "\n")
    for devices in (1, 2):
        done("train", toy, "--out", place / f"by-{devices}", "--devices", devices, *BATCHES)
    return place


def test_two_train_what_one_trains(folder: Path) -> None:
    alone, both = losses(folder / "by-1"), losses(folder / "by-2")
    assert len(alone) == EPOCHS
    assert both == pytest.approx(alone, abs=TOLERANCE)
    reports = [json.loads((folder / f"by-{n}" / "report.json").read_text())["reports"] for n in (1, 2)]
    for one, two in zip(*reports, strict=True):
        assert two["metrics"] == pytest.approx(one["metrics"], abs=0.02)
    assert sorted(p.suffix for p in (folder / "by-1").iterdir()) == sorted(
        p.suffix for p in (folder / "by-2").iterdir()
    )


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_is_killed_and_one_process_goes_on(rank: int, folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = ("train", folder / "toy", "--out", run, *BATCHES, "--checkpoint-seconds", 0)
    process = begun(*command, "--devices", 2)
    until(lambda: (run / "trace.jsonl").exists() and len(list(run.glob("checkpoint*"))) >= 2)
    (other,) = helpers(process.pid)
    killed = time.monotonic()
    os.kill(process.pid if rank == 0 else other, signal.SIGKILL)
    _, said = process.communicate(timeout=PATIENCE)  # until nobody writes there any more: both are gone
    assert time.monotonic() - killed < 30
    until(lambda: not is_running(other))
    expected = "error: rank 1 was killed by signal 9" if rank else "error: rank 1: rank 0 is gone"
    assert expected in said
    assert "go on with --resume" in said
    assert process.returncode == (1 if rank else -signal.SIGKILL)
    done(*command, "--resume")
    assert losses(run) == pytest.approx(losses(folder / "by-2"), abs=TOLERANCE)


def test_torchrun_is_heard(folder: Path, tmp_path: Path) -> None:
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_addr", "127.0.0.1"]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        launch += ["--master_port", str(taken.getsockname()[1]), "-m", "r2n"]
    command = [*launch, "train", str(folder / "toy"), "--out", str(tmp_path / "run"), *BATCHES]
    made = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=os.environ)
    assert made.returncode == 0, made.stderr
    assert losses(tmp_path / "run") == pytest.approx(losses(folder / "by-2"), abs=TOLERANCE)


def test_any_number_of_jobs_reports_the_same(folder: Path) -> None:
    one, two = (done("evaluate", folder / "by-1", "--jobs", jobs, "--json")[0] for jobs in (1, 2))
    assert json.loads(one)["protocol"]["task"] == "ranking"
    assert one == two


def test_a_prediction_is_killed_and_resumed_by_any_number_of_jobs(folder: Path, tmp_path: Path) -> None:
    command = ("predict", folder / "by-1", "--queries", folder / "queries.tsv", "--out")
    full, killed = tmp_path / "whole.parquet", tmp_path / "killed.parquet"
    done(*command, full, "--jobs", 1)
    process = begun(*command, killed, "--jobs", 1)
    parts = tmp_path / ".killed.parquet.parts"
    until(lambda: any(parts.glob("part-*")))
    process.kill()
    process.communicate()
    assert not killed.exists()
    _, said = done(*command, killed, "--jobs", 2)
    assert "found done" in said
    assert killed.read_bytes() == full.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["killed.parquet", "whole.parquet"]
