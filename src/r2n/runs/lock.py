"""Predictions -> a run: one process at a time works in a folder.

The system holds the lock for the process, and lets go of it when the process ends, however it ends: a lock is never
stale, and the file that is left of a killed process blocks nobody. Where the file system knows no locks, there is none.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from r2n.errors import ConfigError

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
    """A descriptor that holds the lock, or None where there are no locks."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError:  # whoever cannot write here hears of it from what is written next
            return None
        if not _is_locked(descriptor, path):
            os.close(descriptor)
            return None
        if _is_still(descriptor, path):
            os.truncate(descriptor, 0)
            os.write(descriptor, str(os.getpid()).encode())
            return descriptor
        os.close(descriptor)  # the one who held it took the file away in between


def _is_locked(descriptor: int, path: Path) -> bool:
    """Whether the lock is ours now; False where there are no locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _HELD:
            return False
        holder = os.read(descriptor, 20).decode(errors="replace").strip()
        os.close(descriptor)
        raise ConfigError(
            f"another process{f' ({holder})' if holder else ''} is at work in {path.parent}",
            hint="wait until it ends (a training then goes on with --resume), or give another --out",
        ) from error
    return True


def _is_still(descriptor: int, path: Path) -> bool:
    """Whether the file that is open is the one at the path."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
