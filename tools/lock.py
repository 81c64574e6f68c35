"""Writes locks/test.txt: what the tests install, at the versions of constraints.txt, with the hashes of the files.

    make lock            after a change of constraints.txt or of the extra [test]

A package has the hashes of all files of its version, for every platform, that the index lists, and of those in the
folders of pip's find-links. Which packages there are is read from what is installed: it is so for this platform alone.
"""

import argparse
import hashlib
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

from tools.needed import ROOT, installed

LOCK = ROOT / "locks" / "test.txt"
HEAD = """\
# What `.[test]` and the build of r2n install, with the hashes of the files: Linux on x86-64, Python 3.11, the CPU build
# of torch. `make locked` installs from it, `make lock` writes it; constraints.txt says the versions.
"""
BUILD = "hatchling"
LISTED = re.compile(r'href="[^"]*?/?([^"/]+)#sha256=([0-9a-f]{64})"')


def setting(name: str) -> list[str]:
    """The values that pip is configured with."""
    asked = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", name], capture_output=True, text=True, check=False
    )
    return asked.stdout.split()


def version_of(file: str) -> Version | None:
    """The version of a wheel or a source archive by its name."""
    try:
        return parse_wheel_filename(file)[1] if file.endswith(".whl") else parse_sdist_filename(file)[1]
    except (InvalidWheelFilename, InvalidSdistFilename):
        return None


def listed(index: str, name: str) -> Iterator[tuple[str, str]]:
    """File and hash of every release of a package that an index lists."""
    asked = urllib.request.Request(f"{index.rstrip('/')}/{name}/", headers={"Accept": "text/html"})
    with urllib.request.urlopen(asked, timeout=60) as page:
        yield from LISTED.findall(page.read().decode())


def at_hand(folders: list[str], name: str) -> Iterator[tuple[str, str]]:
    """File and hash of the package in folders of this machine."""
    for path in sorted(p for folder in folders for p in Path(folder).glob("*.whl")):
        if canonicalize_name(path.name.split("-")[0]) == name:
            yield path.name, hashlib.sha256(path.read_bytes()).hexdigest()


def entry(name: str, version: str, files: Iterator[tuple[str, str]]) -> str:
    """The lines of one package."""
    hashes = sorted({digest for file, digest in files if version_of(file) == Version(version)})
    if not hashes:
        sys.exit(f"the index lists no file of {name} {version}")
    return " \\\n    ".join([f"{name}=={version}", *(f"--hash=sha256:{digest}" for digest in hashes)]) + "\n"


def main() -> None:
    """Write the lock."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--index", help="the index to ask, if not that of pip")
    index = arguments.parse_args().index or next(iter(setting("global.index-url")), None)
    if index is None:
        from pip._internal.models.index import PyPI  # pip's own default: it has no command that says it

        index = PyPI.simple_url
    folders = setting("global.find-links")
    names = list(installed(["test"], also=[BUILD]))
    # as installed, with a local part such as that of torch's CPU build: pip prefers a file whose hash the index states
    versions = {name: distribution(name).version for name in names}
    entries = [entry(n, versions[n], iter([*listed(index, n), *at_hand(folders, n)])) for n in names]
    LOCK.write_text(HEAD + "".join(entries), encoding="utf-8")
    print(f"{LOCK.relative_to(ROOT)}: {len(names)} packages")


if __name__ == "__main__":
    main()
