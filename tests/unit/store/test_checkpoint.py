"""Checkpoints and traces: whole or refused."""

import json
from pathlib import Path

import pytest
import torch

from r2n.errors import CheckpointError
from r2n.store.checkpoint import (
    MANIFEST,
    Trace,
    read_checkpoint,
    read_trace,
    restore_trainer,
    trainer_state,
    write_checkpoint,
)
from r2n.training.fit import Epoch, Trainer
from tests.unit.training.toy_training import GRAPH, KNOWN, network, same, weights

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


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_truncated_or_altered_checkpoint_is_refused(is_cut: bool, tmp_path: Path) -> None:
    path = kept(tmp_path)
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(path.read_bytes()[:-5] if is_cut else content)
    with pytest.raises(
        CheckpointError, match=r"is damaged: its checksum is wrong\n  delete .* to train from the start"
    ):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', '{"format": 1, "file": "gone", "sha256": ""}'])
def test_a_damaged_manifest_is_refused(text: str, tmp_path: Path) -> None:
    kept(tmp_path)
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(CheckpointError, match="is damaged"):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"state": {"epoch": 4}}, "was changed: its checksum is wrong"),
        ({"format": 99}, "has format 99"),
    ],
)
def test_a_changed_manifest_is_refused(changed: dict[str, object], message: str, tmp_path: Path) -> None:
    kept(tmp_path)
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps(manifest | changed))
    with pytest.raises(CheckpointError, match=message):
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


def trainer(dim: int = 6) -> Trainer:
    return Trainer.from_source(network(dim=dim, rule_dropout=0.2), GRAPH, KNOWN.evidence, epochs=9)


def test_a_trainer_goes_on_where_another_stopped_bit_for_bit() -> None:
    first = trainer()
    for _ in range(3):
        first.step()
    kept = trainer_state(first)
    rest = [first.step().loss for _ in range(3)]
    second = trainer()
    restore_trainer(second, *kept)
    assert second.epoch == 3
    assert [second.step().loss for _ in range(3)] == rest
    assert same(weights(first.model), weights(second.model))


def test_what_is_kept_does_not_change_with_the_trainer() -> None:
    first = trainer()
    kept = {name: value.clone() for name, value in trainer_state(first)[0].items()}
    tensors, _ = trainer_state(first)
    first.step()
    assert all(torch.equal(tensors[name], kept[name]) for name in kept)


def test_another_network_is_refused() -> None:
    with pytest.raises(CheckpointError, match="does not fit this network"):
        restore_trainer(trainer(dim=5), *trainer_state(trainer()))


def epoch(number: int) -> Epoch:
    return Epoch(number, 1.0 / number, 0.5, 0.25, 0.0, None, 0.1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trace.jsonl"


def written(path: Path, epochs: int) -> Trace:
    trace = Trace(path)
    for number in range(1, epochs + 1):
        trace.add(epoch(number))
    return trace


def test_a_trace_that_is_written_is_read(path: Path) -> None:
    trace = written(path, 3)
    kept = trace.keep()
    assert kept["lines"] == trace.lines == 3
    assert [record["number"] for record in read_trace(path)] == [1, 2, 3]
    trace.close()


def test_lines_after_the_checkpoint_are_cut_and_the_checksum_goes_on(path: Path) -> None:
    trace = written(path, 3)
    kept = trace.keep()
    trace.add(epoch(4))
    trace.close()
    path.write_bytes(path.read_bytes() + b'{"number": 5, "lo')
    again = Trace.resumed(path, kept)
    assert [record["number"] for record in read_trace(path)] == [1, 2, 3]
    again.add(epoch(4))
    full = written(path.with_name("whole"), 4)
    assert again.keep() == full.keep()
    again.close()
    full.close()


def test_a_changed_line_before_the_checkpoint_is_refused(path: Path) -> None:
    trace = written(path, 3)
    kept = trace.keep()
    trace.close()
    content = path.read_bytes()
    flipped = (content[:i] + bytes([content[i] ^ 1]) + content[i + 1 :] for i in range(0, 300, 17))
    for damaged in (*flipped, b"".join(content.splitlines(keepends=True)[:2])):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=r"was changed, or is damaged: its checksum is wrong\n  delete it"):
            Trace.resumed(path, kept)


def test_a_trace_that_is_gone_begins_anew(path: Path) -> None:
    trace = Trace.resumed(path, {"lines": 3, "sha256": "0"})
    assert trace.lines == 0
    trace.close()
    assert read_trace(path) == []
    assert read_trace(path.with_name("none")) == []


@pytest.mark.parametrize("line", ["{", "[]", "7", '{"number": 1}', "\x00", "[" * 100_000, "\udcff"])
def test_a_damaged_trace_is_refused(line: str, path: Path) -> None:
    path.write_bytes(line.encode("utf-8", "surrogateescape"))
    with pytest.raises(CheckpointError, match=r"trace\.jsonl is damaged"):
        read_trace(path)
    good = json.dumps(dict.fromkeys(("number", "loss", "supervised", "semantic", "regularisation", "valid"), 1.0))
    path.write_text(good + "\n" + good.replace("1.0", '"x"', 1))
    with pytest.raises(CheckpointError, match="a line is no record of an epoch"):
        read_trace(path)
