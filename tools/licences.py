"""Writes locks/licences.tsv: the licence of every package of constraints.txt, as the package states it.

    make licences        after a change of constraints.txt; an error names each package whose licence is not allowed

A package states its licence as an SPDX expression, else in a line of its own, else by classifiers. Every licence
that it names has to be allowed, also where it leaves a choice.
"""

import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.utils import canonicalize_name

from tools.needed import ROOT, pins

LIST = ROOT / "locks" / "licences.tsv"
HEAD = "package\tversion\tlicence\n"

# Permissive: what is made with r2n may be used, changed and sold under terms of one's own, as long as notices are kept.
# BSD is a classifier that does not say which; all are alike in this.
PERMISSIVE = (
    "0BSD, Apache-2.0, Apache-2.0 WITH LLVM-exception, BSD, BSD-2-Clause, BSD-3-Clause, BSL-1.0, CC0-1.0, ISC, "
    "LicenseRef-Public-Domain, MIT, MIT-0, MIT-CMU, PSF-2.0, Zlib"
)
# Binding for changes of its own files alone, and r2n installs these unchanged beside itself.
FILE_BY_FILE = "MPL-2.0"
ALLOWED = frozenset([*PERMISSIVE.split(", "), FILE_BY_FILE])

# Other words for them.
SPDX = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache License": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD",
    "ISC License": "ISC",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Public Domain": "LicenseRef-Public-Domain",
    "Python Software Foundation License": "PSF-2.0",
    "The MIT License (MIT)": "MIT",
}
# Packages whose own words a person has to read, and what was read.
READ = {
    "atheris": "Apache-2.0",  # its LICENSE: the metadata say nothing
    # its COPYING: the GPL holds for a mode of Emacs, which is not in the wheel
    "docutils": "LicenseRef-Public-Domain AND BSD-2-Clause AND BSD-3-Clause",
}


def stated(package: Distribution) -> str:
    """The licence by the package's metadata, as an SPDX expression where that can be told; empty if it says nothing."""
    metadata = package.metadata
    if expressions := metadata.get_all("License-Expression"):
        return str(expressions[0])
    line = str((metadata.get_all("License") or [""])[0]).strip().partition("\n")[0].strip()
    line = SPDX.get(line, line)
    labels = [str(c).split(" :: ")[-1] for c in metadata.get_all("Classifier") or () if str(c).startswith("License ::")]
    if refused(line) and labels:
        return " AND ".join(SPDX.get(label, label) for label in labels)
    return line


def refused(expression: str) -> list[str]:
    """The licences of an expression that are not allowed."""
    parts = re.split(r"\s+(?:AND|OR)\s+|[()]", expression)
    named = [part.strip() for part in parts if part.strip()]
    return [part for part in named if part not in ALLOWED] if named else ["no licence is stated"]


def licence(name: str) -> str:
    """What a person has read of an installed package, else what it states."""
    return READ.get(canonicalize_name(name)) or stated(distribution(name))


def listed(path: Path = LIST) -> dict[str, tuple[str, str]]:
    """Version and licence by package, of the list as it was written."""
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:])
    return {name: (version, words) for name, version, words in rows}


def main() -> None:
    """Write the list and print it; exit 1 where a licence is not allowed."""
    versions = pins(ROOT / "constraints.txt")
    try:
        rows = {name: f"{name}\t{version}\t{licence(name)}\n" for name, version in versions.items()}
    except PackageNotFoundError as error:
        sys.exit(f"{error.name} is in constraints.txt and not installed: make licences installs every extra")
    LIST.write_text(HEAD + "".join(rows.values()), encoding="utf-8")
    print(LIST.read_text(encoding="utf-8").expandtabs(28), end="")
    wrong = {name: refused(words) for name, (_, words) in listed().items() if refused(words)}
    for name, words in wrong.items():
        print(f"not allowed: {name}: {', '.join(words)}; tools/licences.py says which are", file=sys.stderr)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
