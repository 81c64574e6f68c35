"""Pages and pictures -> files: each whole or not at all, and an error that says why it cannot be written."""

from pathlib import Path

from r2n.errors import ConfigError


def check_writable(path: Path) -> None:
    """Refuse a file that cannot be written, before any work is done."""
    try:
        is_folder, has_folder = path.is_dir(), path.absolute().parent.is_dir()
    except OSError as error:
        raise ConfigError(f"'{path}' cannot be written: {error.strerror}", hint="give another file") from error
    if is_folder:
        raise ConfigError(f"'{path}' cannot be written: it is a folder", hint="name a file in it")
    if not has_folder:
        raise ConfigError(f"'{path}' cannot be written: there is no folder {path.parent}", hint="make it first")


def write_file(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all."""
    from r2n.runs.checkpoint import write_atomically

    check_writable(path)
    try:
        write_atomically(path, content)
    except OSError as error:
        raise ConfigError(f"'{path}' cannot be written: {error.strerror}", hint="give another file") from error
