"""The trace of a training, one JSON line an epoch, and the lock of a run folder."""

import errno
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from r2n.errors import CheckpointError, ConfigError
from r2n.files import is_same_file, read_file, write_atomically
from r2n.training.fit import Epoch

try:
    import fcntl
except ImportError:  # not a system that has them
    fcntl = None

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
HINT = "delete it, to go on with a trace that begins later"


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
            raise CheckpointError(f"{path} cannot be read: {error.strerror}", hint=HINT) from error
        if len(lines) != kept["lines"] or hashlib.sha256(b"".join(lines)).hexdigest() != kept["sha256"]:
            raise CheckpointError(f"{path} was changed, or is damaged: its checksum is wrong", hint=HINT)
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
        raise CheckpointError(f"{path} is damaged: {error}", hint=HINT) from error
    for record in records:
        is_record = isinstance(record, dict) and record.keys() >= NAMES and record["number"] is not None
        if not is_record or not all(value is None or isinstance(value, int | float) for value in record.values()):
            raise CheckpointError(f"{path} is damaged: a line is no record of an epoch", hint=HINT)
    return records
