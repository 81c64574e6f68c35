"""Pages and pictures -> files: each whole or not at all, and an error that says why it cannot be written."""

from pathlib import Path

from r2n.errors import ConfigError
from r2n.files import write_atomically


def check_writable(path: Path, option: str = "file") -> None:
    """Refuse a file that cannot be written, before any work is done; `option` is where the person named it."""
    try:
        is_folder, has_folder = path.is_dir(), path.absolute().parent.is_dir()
    except (OSError, ValueError) as error:
        raise _unwritable(path, option, error) from error
    if is_folder:
        raise ConfigError(f"'{path}' cannot be written: it is a folder", hint="name a file in it")
    if not has_folder:
        raise ConfigError(f"'{path}' cannot be written: there is no folder {path.parent}", hint="make it first")


def write_file(path: Path, content: bytes | str, option: str = "file") -> None:
    """Write a file, whole or not at all; a text as UTF-8, with `?` for what that cannot hold."""
    check_writable(path, option)
    try:
        write_atomically(path, content.encode("utf-8", "replace") if isinstance(content, str) else content)
    except (OSError, ValueError) as error:
        raise _unwritable(path, option, error) from error


def _unwritable(path: Path, option: str, error: Exception) -> ConfigError:
    why = getattr(error, "strerror", None) or error
    return ConfigError(f"{str(path)!r} cannot be written: {why}", hint=f"give another {option}")
