"""Reading and writing files so that they are complete or absent; JSON text."""

import errno
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO


def json_text(document: Any, *, indent: int | None = None, ascii_alone: bool = False) -> str:
    """A document as JSON; `ascii_alone` escapes all other characters."""
    try:
        return json.dumps(document, indent=indent, ensure_ascii=ascii_alone, allow_nan=False)
    except ValueError:  # rare, so that the document is looked through only then
        return json.dumps(finite(document), indent=indent, ensure_ascii=ascii_alone, allow_nan=False)


def finite(value: Any) -> Any:
    """The same with None for numbers that are not finite, and lists for tuples."""
    if isinstance(value, Mapping):
        return {key: finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not isfinite(value) else value


try:
    import fcntl
except ImportError:  # not a system that has them
    fcntl = None

_TEMPORARY = re.compile(r"\.(?P<name>.+)\.[0-9a-f]+\.tmp", re.DOTALL)


def read_file(path: Path) -> bytes:
    """The content of a file; `check_regular` refuses what may never end."""
    check_regular(path)
    return path.read_bytes()


def check_regular(path: Path) -> None:
    """An OSError where a path leads to a folder, a pipe, a device or a socket; to open some of these is to wait."""
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        kinds = {stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}
        what = f"it is a {kinds.get(stat.S_IFMT(mode), 'special file')}, not a regular file"
        raise OSError(errno.EINVAL, what, str(path))


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file under a temporary name, flush it to the disk, rename."""
    with new_file(path) as file:
        file.write(content)


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A file to be written, which replaces the old one when all is done; if that fails, the old one stays."""
    take_away(path.parent, path.name)
    temporary, descriptor = _made(path)
    try:
        with open(temporary, "wb", opener=lambda *_: descriptor) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if fcntl is None:
                file.close()  # where an open file cannot be renamed
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to be filled, which replaces the old one when all is done; if that fails, the old one stays."""
    with scratch_folder(path) as work:
        yield work
        replace_folder(work, path)


def replace_folder(work: Path, path: Path) -> None:
    """Rename a folder, in place of one that may be there."""
    if not path.exists():
        work.replace(path)
        return
    with scratch_folder(path) as old:
        path.replace(old / "old")
        work.replace(path)


@contextmanager
def scratch_folder(path: Path) -> Iterator[Path]:
    """A folder next to a path, under a temporary name, which is removed in the end."""
    take_away(path.parent, path.name)
    work, descriptor = _made(path, is_folder=True)
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if descriptor >= 0:
            os.close(descriptor)


def take_away(folder: Path, name: str | None = None) -> None:
    """Remove what killed processes left half written in a folder: of one file, or of all."""
    try:
        entries = list(os.scandir(folder))
    except OSError:  # whoever writes there next says why
        return
    for entry in entries:
        found = _TEMPORARY.fullmatch(entry.name)
        if fcntl is None or found is None or name not in (None, found["name"]) or entry.is_symlink():
            continue
        with suppress(OSError):  # a process holds it, or it is gone already
            descriptor = os.open(entry.path, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if is_same_file(descriptor, path := Path(entry.path)):
                    shutil.rmtree(path) if entry.is_dir() else path.unlink()
            finally:
                os.close(descriptor)


def _made(path: Path, *, is_folder: bool = False) -> tuple[Path, int]:
    """A new file or folder under a temporary name, and a descriptor that holds it (-1: there is none)."""
    while True:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
        if is_folder:
            temporary.mkdir()
        if is_folder and fcntl is None:
            return temporary, -1
        how = os.O_RDONLY if is_folder else os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with suppress(FileNotFoundError if is_folder else FileExistsError):
            descriptor = os.open(temporary, how, 0o666)
            if fcntl is not None:
                with suppress(OSError):  # no locks here
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
            if is_same_file(descriptor, temporary):
                return temporary, descriptor
            os.close(descriptor)  # another took it for a left-over before it was held


def is_same_file(descriptor: int, path: Path) -> bool:
    """Whether an open file is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
