"""A training killed at a random moment and resumed ends bit for bit where the uninterrupted one ends.

Each is a process of its own, from its first import; tests/faults/test_kills.py tries more moments, in processes that
are cheap to begin.
"""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

EPOCHS = 20


def train(folder: Path, *more: str) -> subprocess.Popen[bytes]:
    """Start a training whose every epoch is kept."""
    arguments = [
        "train",
        "countries-s3",
        "--out",
        str(folder),
        "--checkpoint-seconds",
        "0",
        "--seed",
        "3",
        "--no-baseline",
    ]
    options = [f"training.epochs={EPOCHS}", "model.dim=8", "training.patience=30", "model.rule_dropout=0.1"]
    sets = [part for option in options for part in ("--set", option)]
    command = [sys.executable, "-c", "from r2n.cli import main; main()", *arguments, *sets, *more]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finish(process: subprocess.Popen[bytes]) -> None:
    _, errors = process.communicate(timeout=1_200)
    assert process.returncode == 0, errors.decode()


def outcome(folder: Path) -> tuple[str, list[object], list[object]]:
    """Checksum of all final tensors (weights, moments, random states), the metrics, and the trace but its seconds."""
    checksum = json.loads((folder / "checkpoint.json").read_text())["sha256"]
    reports = [report["metrics"] for report in json.loads((folder / "report.json").read_text())["reports"]]
    trace = [json.loads(line) for line in (folder / "trace.jsonl").read_text().splitlines()]
    return checksum, reports, [{**record, "seconds": 0} for record in trace]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    folder = tmp_path_factory.mktemp("whole") / "run"
    start = time.monotonic()
    finish(train(folder))
    return folder, time.monotonic() - start


def kill_and_resume(folder: Path, seconds: float) -> int:
    """Kill the training after so many seconds, resume it, and tell at which epoch it was killed."""
    process = train(folder)
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stderr.close()  # pyright: ignore[reportOptionalMemberAccess]
    manifest = folder / "checkpoint.json"
    epoch = json.loads(manifest.read_text())["state"]["epoch"] if manifest.exists() else 0
    finish(train(folder, "--resume"))
    return epoch


def kill_while_training(folder: Path, after: int) -> int:
    """Kill the training once `after` epochs are kept, and resume it."""
    process = train(folder)
    manifest = folder / "checkpoint.json"
    while process.poll() is None:
        if manifest.exists() and json.loads(manifest.read_text())["state"]["epoch"] >= after:
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.005)
    process.wait()
    process.stderr.close()  # pyright: ignore[reportOptionalMemberAccess]
    epoch = json.loads(manifest.read_text())["state"]["epoch"]
    finish(train(folder, "--resume"))
    return epoch


def test_killed_in_the_middle_and_resumed(uninterrupted: tuple[Path, float], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    killed_at = kill_while_training(folder, EPOCHS // 3)
    assert EPOCHS // 3 <= killed_at < EPOCHS
    assert outcome(folder) == outcome(uninterrupted[0])


@pytest.mark.slow
@pytest.mark.parametrize("attempt", range(4))
def test_killed_at_a_random_moment_and_resumed(attempt: int, uninterrupted: tuple[Path, float], tmp_path: Path) -> None:
    whole, seconds = uninterrupted
    folder = tmp_path / "run"
    kill_and_resume(folder, random.Random(attempt).uniform(0.3, 0.95) * seconds)
    assert outcome(folder) == outcome(whole)
