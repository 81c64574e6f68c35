"""Checkpoints: weights and trainer state in safetensors and JSON, written atomically."""

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from r2n.errors import CheckpointError
from r2n.files import read_file, write_atomically
from r2n.training.fit import Trainer

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
    if checkpoint is None or not (checkpoint[1].get("epoch") or checkpoint[1].get("is_done")):
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


def trainer_state(trainer: Trainer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """All that a trainer holds: weights, best weights, the optimiser's moments, the random states, the counters."""
    tensors = {f"model.{name}": value for name, value in trainer.model.state_dict().items()}
    tensors |= {f"best.{name}": value for name, value in trainer.best_weights.items()}
    for i, moments in trainer.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{i}.{name}": value for name, value in moments.items()}
    tensors["random.hiding"] = trainer.generator.get_state()
    tensors["random.global"] = torch.get_rng_state()
    state = {
        "epoch": trainer.epoch,
        "best": trainer.best,
        "best_epoch": trainer.best_epoch,
        "is_done": trainer.is_done,
    }
    return {name: value.clone() for name, value in tensors.items()}, state


def restore_trainer(trainer: Trainer, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    """Put a trainer, built with the same options, where another one stopped."""
    try:
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
        trainer.epoch, trainer.best, trainer.best_epoch = state["epoch"], state["best"], state["best_epoch"]
    except (KeyError, RuntimeError, ValueError) as error:
        message = str(error).splitlines()[0]
        raise CheckpointError(f"the checkpoint does not fit this network: {message}") from error
