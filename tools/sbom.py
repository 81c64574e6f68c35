"""Writes build/sbom.json: what is installed in .venv, as a bill of materials in CycloneDX's form.

    make sbom

cyclonedx-py, which is installed apart, writes and validates it. Here it is checked that it names every package that the
tests need, at its version and with a licence.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from tools.needed import ROOT, installed

WRITTEN = ROOT / "build" / "sbom.json"


def left_out(bill: Mapping[str, Any], versions: Mapping[str, str]) -> list[str]:
    """The packages that the bill does not name at their versions, or without a licence."""
    components = bill.get("components", ())
    named = {(canonicalize_name(c["name"]), c["version"]) for c in components if c.get("licenses")}
    return [f"{name}=={version}" for name, version in versions.items() if (name, version) not in named]


def main() -> None:
    """Write the bill with the program that is named, and check it."""
    WRITTEN.parent.mkdir(exist_ok=True)
    options = ["--pyproject", str(ROOT / "pyproject.toml"), "--mc-type", "library", "--output-reproducible"]
    command = [sys.argv[1], "environment", *options, "--validate", "--short-PURLs", "-o", str(WRITTEN), sys.executable]
    if subprocess.run(command, check=False).returncode:
        sys.exit(f"{Path(sys.argv[1]).name} wrote no valid bill")
    versions = {name: package.version for name, package in installed(["test"]).items()}
    if missing := left_out(json.loads(WRITTEN.read_text(encoding="utf-8")), versions):
        sys.exit(f"{WRITTEN.relative_to(ROOT)} lacks, or has without a licence: {', '.join(missing)}")
    print(f"{WRITTEN.relative_to(ROOT)}: valid, and names the {len(versions)} packages of the tests")


if __name__ == "__main__":
    main()
