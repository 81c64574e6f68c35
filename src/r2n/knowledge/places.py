"""What is known: a path that a problem file names -> a file in its folder, or in a folder that the user has named.

A problem file may be a stranger's. What it reads ends up in reports and answers, so that it reads nothing elsewhere.
"""

import os
from pathlib import Path

from r2n.errors import ConfigError

FOLDERS_VARIABLE = "R2N_FOLDERS"
"""The environment's name for folders that problem files may read beside their own, separated as in PATH."""
_PACKAGE = Path(__file__).parents[1]  # its problems share files, and no stranger's file is there


def placed(folder: Path, given: str) -> Path:
    """The path of a file that a problem file in this folder names; it, and what it links to, must be there."""
    path = folder / given
    try:
        whole = path.resolve()
    except (OSError, RuntimeError, ValueError):  # a name that no file can have: who opens it says why
        return path
    trusted = [folder, _PACKAGE, *map(Path, filter(None, os.environ.get(FOLDERS_VARIABLE, "").split(os.pathsep)))]
    if not any(whole.is_relative_to(place.resolve()) for place in trusted):
        raise ConfigError(
            f"'{given}' lies outside {folder}, and a problem file reads from its own folder alone",
            hint=f"put the file there, or, where you trust the problem file, set {FOLDERS_VARIABLE}={whole.parent}",
        )
    return path
