"""What a training leaves in its folder: the checkpoint, the trace with a JSON line an epoch, and the lock."""

import errno
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from r2n.errors import CheckpointError, ConfigError
from r2n.files import fcntl, is_same_file, read_file, write_atomically
from r2n.training.fit import Epoch, Trainer

MANIFEST = "checkpoint.json"
FORMAT = 3
MOST_READS = 5
HINT = "delete {} to train from the start"


def write_checkpoint(folder: Path, tensors: dict[str, Tensor], state: dict[str, Any], run: str = "") -> None:
    """Keep tensors and a state that JSON can hold, in place of an earlier checkpoint; `run`: the digest of the run."""
    content = save({name: tensor.contiguous() for name, tensor in tensors.items()})
    digest = hashlib.sha256(content).hexdigest()
    path = folder / f"checkpoint-{digest[:16]}.safetensors"
    write_atomically(path, content)
    manifest = {"format": FORMAT, "file": path.name, "sha256": digest, "run": run, "state": state}
    manifest["whole"] = _checksum(manifest)
    write_atomically(folder / MANIFEST, json.dumps(manifest, indent=1).encode())
    forget_others(folder, path.name)


def forget_others(folder: Path, file: str | None = None) -> None:
    """Remove the tensors of every checkpoint but the one that counts, which may have been left by a killed process."""
    file = file or json.loads(read_file(folder / MANIFEST))["file"]
    for old in folder.glob("checkpoint-*.safetensors"):
        if old.name != file:
            old.unlink()


def _checksum(manifest: dict[str, Any]) -> str:
    """One checksum over the tensors, by their own, the state, and the run that they are of."""
    parts = [manifest["sha256"], manifest["run"], manifest["state"]]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def read_checkpoint(folder: Path, run: str | None = None) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """The checkpoint in a folder, or None where there is none; a damaged one, or that of another run, is refused."""
    if not (folder / MANIFEST).exists():
        return None
    for _ in range(MOST_READS):
        with suppress(FileNotFoundError):  # a training wrote the next one between manifest and file: read again
            return _read(folder, run)
    hint = HINT.format(folder / MANIFEST)
    raise CheckpointError(f"the checkpoint in {folder} is damaged: a file is missing", hint=hint)


def _read(folder: Path, run: str | None) -> tuple[dict[str, Tensor], dict[str, Any]]:
    manifest_path = folder / MANIFEST
    hint = HINT.format(manifest_path)
    try:
        manifest = json.loads(read_file(manifest_path))
        path = folder / manifest["file"]
        content = read_file(path)
        if manifest["format"] != FORMAT:
            raise CheckpointError(f"{manifest_path} has format {manifest['format']}, not {FORMAT}", hint=hint)
        if manifest["whole"] != _checksum(manifest):
            raise CheckpointError(f"{manifest_path} was changed: its checksum is wrong", hint=hint)
        if run is not None and manifest["run"] != run:
            raise CheckpointError(f"{manifest_path} is the checkpoint of another run", hint=hint)
        if hashlib.sha256(content).hexdigest() != manifest["sha256"]:
            raise CheckpointError(f"the checkpoint {path} is damaged: its checksum is wrong", hint=hint)
        bytearray(len(content))  # room for the tensors: where there is none, the library prints and panics
        return load(content), manifest["state"]
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError, RecursionError, SafetensorError) as error:
        raise CheckpointError(f"the checkpoint in {folder} is damaged: {error}", hint=hint) from error


def trained_weights(folder: Path, run: str | None = None) -> dict[str, Tensor]:
    """The weights of a trained network: the best on validation, where there are such, else the last."""
    checkpoint = read_checkpoint(folder, run)
    if checkpoint is None or not any(checkpoint[1].get(key) for key in ("epoch", "is_done", "before")):
        raise CheckpointError(
            f"the run in {folder} has no checkpoint yet", hint="train it: r2n train P --out DIR --resume"
        )
    return below(checkpoint[0], "best") or below(checkpoint[0], "model")


def below(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin with a prefix, without it."""
    return {name.removeprefix(f"{prefix}."): value for name, value in tensors.items() if name.startswith(f"{prefix}.")}


def checkpoint_digest(folder: Path) -> str | None:
    """The checksum of the tensors that the checkpoint in a folder holds, as it says; None where there is none."""
    try:
        return str(json.loads(read_file(folder / MANIFEST))["sha256"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


COUNTERS = ("epoch", "seconds", "planned", "best", "best_epoch")


def trainer_state(trainer: Trainer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """All that a trainer holds: weights, best weights, the optimiser's moments, the random states, the counters."""
    active, before = trainer.active, trainer.before
    tensors = {f"model.{name}": value for name, value in trainer.model.state_dict().items()}
    tensors |= {f"best.{name}": value for name, value in active.best_weights.items()}
    for i, moments in active.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{i}.{name}": value for name, value in moments.items()}
    tensors["random.hiding"] = active.generator.get_state()
    tensors["random.global"] = torch.get_rng_state()
    state = {name: getattr(active, name) for name in COUNTERS} | {"is_done": trainer.is_done}
    if before is not None and active is trainer:
        state["before"] = {name: getattr(before, name) for name in COUNTERS}
    return {name: value.clone() for name, value in tensors.items()}, state


def restore_trainer(trainer: Trainer, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    """Put a trainer, built with the same options, where another one stopped."""
    try:
        if (before := trainer.before) is not None:
            for name, value in state.get("before", {}).items():
                setattr(before, name, value)
            trainer = trainer if "before" in state else before
        trainer.model.load_state_dict(below(tensors, "model"))
        trainer.best_weights = below(tensors, "best")
        optimizer = trainer.optimizer.state_dict()
        moments: dict[int, dict[str, Tensor]] = {}
        for name, value in below(tensors, "optimizer").items():
            i, _, moment = name.partition(".")
            moments.setdefault(int(i), {})[moment] = value
        trainer.optimizer.load_state_dict({**optimizer, "state": moments})
        trainer.generator.set_state(tensors["random.hiding"])
        torch.set_rng_state(tensors["random.global"])
        for name in COUNTERS:
            setattr(trainer, name, state.get(name, getattr(trainer, name)))
    except (KeyError, RuntimeError, ValueError) as error:
        message = str(error).splitlines()[0]
        raise CheckpointError(f"the checkpoint does not fit this network: {message}") from error


LOCK = ".lock"
_HELD = (errno.EAGAIN, errno.EACCES)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder that is there; refuse where another process, or another piece of work here, does."""
    path = folder / LOCK
    descriptor = _take(path)
    try:
        yield
    finally:
        if descriptor is not None:
            path.unlink(missing_ok=True)  # while it is held: who opens it later makes a new one
            os.close(descriptor)


def _take(path: Path) -> int | None:
    """A descriptor that holds the lock, or None if there are no locks."""
    while fcntl is not None:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError:  # whoever cannot write here learns it from what is written next
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(descriptor, 20).decode(errors="replace").strip()
            os.close(descriptor)
            if error.errno not in _HELD:  # this file system has no locks
                return None
            raise ConfigError(
                f"another process{f' ({holder})' if holder else ''} is at work in {path.parent}",
                hint="wait until it ends (a training then goes on with --resume), or give another --out",
            ) from error
        if is_same_file(descriptor, path):
            os.truncate(descriptor, 0)
            os.write(descriptor, str(os.getpid()).encode())
            return descriptor
        os.close(descriptor)  # the one who held it removed the file in between
    return None


NAMES = frozenset({"number", "loss", "supervised", "semantic", "regularisation", "valid"})
TRACE_HINT = "delete it, to go on with a trace that begins later"


class Trace:
    """A trace that grows; `lines` are those that are there already."""

    def __init__(self, path: Path, lines: list[bytes] | None = None) -> None:
        """Open it; all other lines are gone."""
        content = b"".join(lines or [])
        write_atomically(path, content)
        self.lines, self._digest = len(lines or []), hashlib.sha256(content)
        self._file = path.open("ab")

    @classmethod
    def resumed(cls, path: Path, kept: Mapping[str, Any] | None) -> "Trace":
        """The trace as it was when a checkpoint kept it; a file that is gone begins anew."""
        if kept is None or not path.exists():
            return cls(path)
        try:
            lines = read_file(path).splitlines(keepends=True)[: kept["lines"]]
        except OSError as error:
            raise CheckpointError(f"{path} cannot be read: {error.strerror}", hint=TRACE_HINT) from error
        if len(lines) != kept["lines"] or hashlib.sha256(b"".join(lines)).hexdigest() != kept["sha256"]:
            raise CheckpointError(f"{path} was changed, or is damaged: its checksum is wrong", hint=TRACE_HINT)
        return cls(path, lines)

    def add(self, epoch: Epoch) -> None:
        """One more line, complete in the file even if the process is killed next."""
        line = json.dumps(asdict(epoch)).encode() + b"\n"
        self._file.write(line)
        self._file.flush()
        self._digest.update(line)
        self.lines += 1

    def keep(self) -> dict[str, Any]:
        """Bring all lines to the disk, and name them."""
        os.fsync(self._file.fileno())
        return {"lines": self.lines, "sha256": self._digest.hexdigest()}

    def close(self) -> None:
        """No more lines come."""
        self._file.close()


def read_trace(path: Path) -> list[dict[str, Any]]:
    """The records of a trace; a damaged one is refused."""
    try:
        records = [json.loads(line) for line in read_file(path).splitlines()]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is damaged: {error}", hint=TRACE_HINT) from error
    for record in records:
        is_record = isinstance(record, dict) and record.keys() >= NAMES and record["number"] is not None
        if not is_record or not all(value is None or isinstance(value, int | float) for value in record.values()):
            raise CheckpointError(f"{path} is damaged: a line is no record of an epoch", hint=TRACE_HINT)
    return records
