"""Predictions -> a run: its trace, one line an epoch, written as it happens and found again when the run goes on.

A checkpoint names the lines that were written before it by their number and checksum. What a killed process wrote after
it is cut off; what was changed before it is refused.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from r2n.errors import CheckpointError
from r2n.training.fit import Epoch
from r2n.whole_files import read_file, write_atomically

NAMES = frozenset({"number", "loss", "supervised", "semantic", "regularisation", "valid"})
HINT = "delete it, to go on with a trace that begins later"


class Trace:
    """A trace that grows; `lines` are those that are there already."""

    def __init__(self, path: Path, lines: list[bytes] | None = None) -> None:
        """Open it; what it holds besides these lines is gone."""
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
            raise CheckpointError(f"{path} cannot be read: {error.strerror}", hint=HINT) from error
        if len(lines) != kept["lines"] or hashlib.sha256(b"".join(lines)).hexdigest() != kept["sha256"]:
            raise CheckpointError(f"{path} was changed, or is damaged: its checksum is wrong", hint=HINT)
        return cls(path, lines)

    def add(self, epoch: Epoch) -> None:
        """One more line, which is in the file as a whole, should the process be killed."""
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
        raise CheckpointError(f"{path} is damaged: {error}", hint=HINT) from error
    if not all(map(_is_record, records)):
        raise CheckpointError(f"{path} is damaged: a line is no record of an epoch", hint=HINT)
    return records


def _is_record(record: Any) -> bool:
    """Whether it tells of an epoch, in numbers."""
    if not isinstance(record, dict) or not record.keys() >= NAMES or record["number"] is None:
        return False
    return all(value is None or isinstance(value, int | float) for value in record.values())
