"""The files of a run folder, their checksums made right again: nothing behind these would be reached otherwise."""

import hashlib
import json
import shutil
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from r2n.data.problem import load_problem
from r2n.model.calibration import read_calibration
from r2n.model.model import Model
from r2n.model.run import prepare_run
from r2n.model.training import train_in
from r2n.reporting.run_report import training_curves
from r2n.store.checkpoint import read_checkpoint, trained_weights
from r2n.store.folder import RunFolder, digest, problem_bytes, problem_from_bytes, read_config
from tests.faults.fuzzing.target import Target, scratch, written
from tests.toy_problem import write_toy_problem

TOKENS = (
    *(b"null", b"true", b"{}", b"[]", b'""', b"-1", b"1e400", b"NaN", b"Infinity", b"9223372036854775808", b"\\ud800"),
    *(b'"F32"', b'"I64"', b'"BOOL"', b'"dtype"', b'"shape"', b'"data_offsets"', b'"format"', b'"state"', b'"epoch"'),
    *(
        b'"number"',
        b'"seed"',
        b'"ensemble"',
        b'"options"',
        b'"threads"',
        b'"file"',
        b'"../x"',
        b"\x00" * 8,
        b"\xff" * 8,
    ),
)
HARD = (b"[" * 100_000, b'{"a":' * 100_000, b"9" * 100_000, b"\xff" * 8 + b"{}", b"\x02" + b"\x00" * 7 + b"{}")


@cache
def run() -> Path:
    problem = load_problem(write_toy_problem(scratch() / "trained", epochs=1))
    folder = scratch() / "run"
    for _ in train_in(folder, prepare_run(problem, problem.options, 0)):
        pass
    return folder


@cache
def _copied(name: str) -> Path:
    return Path(shutil.copytree(run(), scratch() / name))


def _tensors(folder: Path) -> Path:
    return next(folder.glob("checkpoint-*.safetensors"))


def _signed(content: bytes, sign: Callable[[dict[str, Any]], object]) -> bytes:
    """What is a JSON object, under the right checksums; anything else as it is."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return content
    if not isinstance(document, dict):
        return content
    sign(document)
    return json.dumps(document).encode()


def document(name: str, read: Callable[[RunFolder], object], content: bytes) -> None:
    folder = RunFolder(_copied(name))
    getattr(folder, name).write_bytes(_signed(content, lambda found: found.update(sha256=digest(found))))
    read(folder)


def _sign(document: dict[str, Any], tensors: str) -> None:
    document["sha256"] = tensors
    parts = [tensors, document.get("run"), document.get("state")]
    document["whole"] = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def manifest(content: bytes) -> None:
    folder = _copied("manifest")
    tensors = hashlib.sha256(_tensors(folder).read_bytes()).hexdigest()
    (folder / "checkpoint.json").write_bytes(_signed(content, lambda found: _sign(found, tensors)))
    read_checkpoint(folder)
    trained_weights(folder)


def weights(content: bytes) -> None:
    """The tensors of a checkpoint that says they are its own."""
    folder = _copied("weights")
    _tensors(folder).write_bytes(content)
    document = json.loads((run() / "checkpoint.json").read_bytes())
    _sign(document, hashlib.sha256(content).hexdigest())
    (folder / "checkpoint.json").write_bytes(json.dumps(document).encode())
    (folder / "calibration.json").unlink(missing_ok=True)
    Model.load(folder, device="cpu")


def stored_problem(content: bytes) -> None:
    problem_bytes(problem_from_bytes(content, Path("problem.safetensors")))


def trace(content: bytes) -> None:
    training_curves(written("trace.jsonl", content))


def _files(*patterns: str) -> list[bytes]:
    return [path.read_bytes() for pattern in patterns for path in run().glob(pattern)]


CALIBRATION = partial(read_calibration, seeds=range(1))


def _calibrations() -> list[bytes]:
    kept = {"format": 1, "temperature": 1.5, "shift": 0.1, "fitted_on": "4 validation queries", "weights": []}
    return [*_files("calibration.json"), json.dumps(kept).encode()]


TARGETS = (
    Target(
        "config",
        partial(document, "config", read_config),
        TOKENS,
        HARD,
        lambda: _files("config.json"),
        inputs=20_000,
        longest=4_000,
    ),
    Target("manifest", manifest, TOKENS, HARD, lambda: _files("checkpoint.json"), inputs=10_000, longest=4_000),
    Target(
        "weights", weights, TOKENS, HARD, lambda: _files("checkpoint-*"), inputs=3_000, examples=100, longest=20_000
    ),
    Target("stored-problem", stored_problem, TOKENS, HARD, lambda: _files("problem.*"), inputs=10_000, longest=10_000),
    Target("trace", trace, TOKENS, HARD, lambda: _files("trace.jsonl"), inputs=20_000),
    Target("calibration", partial(document, "calibration", CALIBRATION), TOKENS, HARD, _calibrations, inputs=10_000),
)
