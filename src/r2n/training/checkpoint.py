"""Predictions -> a trained network: what a later process needs to go on, kept so that no moment is a bad one to die.

A checkpoint is a safetensors file and a JSON file that names it with its checksum. The JSON file is renamed into
place last, so there is always either the old checkpoint or the new one. Nothing is ever unpickled.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from r2n.errors import CheckpointError
from r2n.training.fit import Trainer

MANIFEST = "checkpoint.json"
FORMAT = 1


def write_atomically(path: Path, content: bytes) -> None:
    """Write under a temporary name, flush to the disk, rename."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_checkpoint(folder: Path, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    """Keep tensors and a state that JSON can hold, in place of an earlier checkpoint."""
    content = save({name: tensor.contiguous() for name, tensor in tensors.items()})
    digest = hashlib.sha256(content).hexdigest()
    path = folder / f"checkpoint-{digest[:16]}.safetensors"
    write_atomically(path, content)
    manifest = {"format": FORMAT, "file": path.name, "sha256": digest, "state": state}
    write_atomically(folder / MANIFEST, json.dumps(manifest, indent=1).encode())
    for old in folder.glob("checkpoint-*.safetensors"):
        if old != path:
            old.unlink()


def read_checkpoint(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """The checkpoint in a folder, or None where there is none; a damaged one is refused."""
    manifest_path = folder / MANIFEST
    if not manifest_path.exists():
        return None
    hint = f"delete {manifest_path} to train from the start"
    try:
        manifest = json.loads(manifest_path.read_text("utf-8"))
        path = folder / manifest["file"]
        content = path.read_bytes()
        if manifest["format"] != FORMAT:
            raise CheckpointError(f"{manifest_path} has format {manifest['format']}, not {FORMAT}", hint=hint)
        if hashlib.sha256(content).hexdigest() != manifest["sha256"]:
            raise CheckpointError(f"the checkpoint {path} is damaged: its checksum is wrong", hint=hint)
        return load(content), manifest["state"]
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise CheckpointError(f"the checkpoint in {folder} is damaged: {error}", hint=hint) from error


def trainer_state(trainer: Trainer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """All that a trainer holds: weights, best weights, the optimiser's moments, the random states, the counters."""
    tensors = {f"model.{name}": value for name, value in trainer.model.state_dict().items()}
    tensors |= {f"best.{name}": value for name, value in trainer.best_weights.items()}
    for i, moments in trainer.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{i}.{name}": value for name, value in moments.items()}
    tensors["random.hiding"] = trainer.generator.get_state()
    tensors["random.global"] = torch.get_rng_state()
    state = {"epoch": trainer.epoch, "best": trainer.best, "best_epoch": trainer.best_epoch}
    return {name: value.clone() for name, value in tensors.items()}, state


def restore_trainer(trainer: Trainer, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    """Put a trainer, built with the same options, where another one stopped."""
    try:
        trainer.model.load_state_dict(_below(tensors, "model"))
        trainer.best_weights = _below(tensors, "best")
        optimizer = trainer.optimizer.state_dict()
        moments: dict[int, dict[str, Tensor]] = {}
        for name, value in _below(tensors, "optimizer").items():
            i, _, moment = name.partition(".")
            moments.setdefault(int(i), {})[moment] = value
        trainer.optimizer.load_state_dict({**optimizer, "state": moments})
        trainer.generator.set_state(tensors["random.hiding"])
        torch.set_rng_state(tensors["random.global"])
        trainer.epoch, trainer.best, trainer.best_epoch = state["epoch"], state["best"], state["best_epoch"]
    except (KeyError, RuntimeError, ValueError) as error:
        message = str(error).splitlines()[0]
        raise CheckpointError(f"the checkpoint does not fit this network: {message}") from error


def _below(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(f"{prefix}."): value for name, value in tensors.items() if name.startswith(f"{prefix}.")}
