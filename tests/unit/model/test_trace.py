"""Traces: written, named by a checkpoint, cut to it, and refused where they were changed."""

import json
from pathlib import Path

import pytest

from r2n.errors import CheckpointError
from r2n.store.trace import Trace, read_trace
from r2n.training.fit import Epoch


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


def test_what_is_written_is_read(path: Path) -> None:
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
    whole = written(path.with_name("whole"), 4)
    assert again.keep() == whole.keep()
    again.close()
    whole.close()


@pytest.mark.parametrize("place", range(0, 300, 17))
def test_a_changed_line_before_the_checkpoint_is_refused(place: int, path: Path) -> None:
    trace = written(path, 3)
    kept = trace.keep()
    trace.close()
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(CheckpointError, match=r"trace\.jsonl was changed, or is damaged: .*\n  delete it"):
        Trace.resumed(path, kept)
    path.write_bytes(b"".join(bytes(content).splitlines(keepends=True)[:2]))
    with pytest.raises(CheckpointError, match="its checksum is wrong"):
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
