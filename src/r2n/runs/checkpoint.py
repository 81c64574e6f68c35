"""Predictions -> a run: what a later process needs to go on, kept so that no moment is a bad one to die.

A checkpoint is a safetensors file and a JSON file that names it with its checksum. The JSON file is renamed into
place last, so there is always either the old checkpoint or the new one. Nothing is ever unpickled.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from r2n.errors import CheckpointError
from r2n.whole_files import read_file, write_atomically

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
    manifest["whole"] = _whole(manifest)
    write_atomically(folder / MANIFEST, json.dumps(manifest, indent=1).encode())
    forget_others(folder, path.name)


def forget_others(folder: Path, file: str | None = None) -> None:
    """Remove the tensors of every checkpoint but the one that counts, which may have been left by a killed process."""
    file = file or json.loads(read_file(folder / MANIFEST))["file"]
    for old in folder.glob("checkpoint-*.safetensors"):
        if old.name != file:
            old.unlink()


def _whole(manifest: dict[str, Any]) -> str:
    """One checksum over the tensors, by their own, the state, and the run that they are of."""
    parts = [manifest["sha256"], manifest["run"], manifest["state"]]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def read_checkpoint(folder: Path, run: str | None = None) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """The checkpoint in a folder, or None where there is none; a damaged one, or that of another run, is refused."""
    manifest_path = folder / MANIFEST
    if not manifest_path.exists():
        return None
    for _ in range(MOST_READS):
        try:
            return _read(folder, run)
        except FileNotFoundError:  # a training wrote the next one between manifest and file: read again
            continue
    raise CheckpointError(f"the checkpoint in {folder} is damaged: a file is missing", hint=HINT.format(manifest_path))


def _read(folder: Path, run: str | None) -> tuple[dict[str, Tensor], dict[str, Any]]:
    manifest_path = folder / MANIFEST
    hint = HINT.format(manifest_path)
    try:
        manifest = json.loads(read_file(manifest_path))
        path = folder / manifest["file"]
        content = read_file(path)
        if manifest["format"] != FORMAT:
            raise CheckpointError(f"{manifest_path} has format {manifest['format']}, not {FORMAT}", hint=hint)
        if manifest["whole"] != _whole(manifest):
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
