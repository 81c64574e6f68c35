"""A training that is killed and resumed ends bit for bit where the uninterrupted one ends.

Each is a process of its own, from its first import; tests/faults/test_kills.py tries many moments.
"""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

EPOCHS = 20


def train(folder: Path, *more: str) -> subprocess.Popen[bytes]:
    """Start a training whose every epoch is kept."""
    arguments = ["train", "countries-s3", "--out", str(folder), "--seed", "3", "--no-baseline", "--no-report"]
    arguments += ["--checkpoint-seconds", "0"]
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


def test_killed_in_the_middle_and_resumed(tmp_path: Path) -> None:
    finish(train(tmp_path / "whole"))
    killed_at = kill_while_training(tmp_path / "run", EPOCHS // 3)
    assert EPOCHS // 3 <= killed_at < EPOCHS
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")
