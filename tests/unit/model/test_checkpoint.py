"""Checkpoints: whole or refused."""

import json
from pathlib import Path

import pytest
import torch

from r2n.errors import CheckpointError
from r2n.store.checkpoint import MANIFEST, read_checkpoint, write_checkpoint

TENSORS = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor([1, 2], dtype=torch.uint8)}


def kept(folder: Path) -> Path:
    write_checkpoint(folder, TENSORS, {"epoch": 3})
    return next(folder.glob("checkpoint-*.safetensors"))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    kept(tmp_path)
    found = read_checkpoint(tmp_path)
    assert found is not None
    tensors, state = found
    assert state == {"epoch": 3}
    assert tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert torch.equal(tensors[name], tensor)
        assert tensors[name].dtype == tensor.dtype


def test_a_new_checkpoint_replaces_the_old_one(tmp_path: Path) -> None:
    kept(tmp_path)
    write_checkpoint(tmp_path, {"a": torch.zeros(1)}, {"epoch": 4})
    assert len(list(tmp_path.iterdir())) == 2
    found = read_checkpoint(tmp_path)
    assert found is not None
    assert found[1] == {"epoch": 4}


def test_no_checkpoint_is_none(tmp_path: Path) -> None:
    assert read_checkpoint(tmp_path) is None


def test_a_truncated_checkpoint_is_refused(tmp_path: Path) -> None:
    path = kept(tmp_path)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(
        CheckpointError, match=r"is damaged: its checksum is wrong\n  delete .* to train from the start"
    ):
        read_checkpoint(tmp_path)


def test_an_altered_checkpoint_is_refused(tmp_path: Path) -> None:
    path = kept(tmp_path)
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="checksum is wrong"):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', '{"format": 1, "file": "gone", "sha256": ""}'])
def test_a_damaged_manifest_is_refused(text: str, tmp_path: Path) -> None:
    kept(tmp_path)
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(CheckpointError, match="is damaged"):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize("changed", [{"epoch": 4}, {"epoch": 3, "best": 1.0}, {}])
def test_a_changed_state_is_refused(changed: dict[str, object], tmp_path: Path) -> None:
    kept(tmp_path)
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps({**manifest, "state": changed}))
    with pytest.raises(CheckpointError, match="was changed: its checksum is wrong"):
        read_checkpoint(tmp_path)


def test_a_checkpoint_that_is_replaced_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(tmp_path)
    read, reads = Path.read_bytes, []

    def replaced_meanwhile(path: Path) -> bytes:
        reads.append(path)
        if len(reads) == 1:
            write_checkpoint(tmp_path, {"a": torch.zeros(1)}, {"epoch": 4})
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", replaced_meanwhile)
    found = read_checkpoint(tmp_path)
    assert found is not None
    assert found[1] == {"epoch": 4}


def test_another_format_is_refused(tmp_path: Path) -> None:
    kept(tmp_path)
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps({**manifest, "format": 99}))
    with pytest.raises(CheckpointError, match="has format 99"):
        read_checkpoint(tmp_path)
