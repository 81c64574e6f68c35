"""Which packages r2n needs with given extras: from pyproject.toml through what is installed here."""

import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]


def direct(extras: Iterable[str] = ()) -> Iterator[Requirement]:
    """What pyproject.toml asks for: the core, then each extra with the extras of r2n that it names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    yield from map(Requirement, project["dependencies"])
    open_extras = list(extras)
    for extra in open_extras:
        for requirement in map(Requirement, optional[extra]):
            if requirement.name == project["name"]:
                open_extras += [more for more in sorted(requirement.extras) if more not in open_extras]
            else:
                yield requirement


def installed(extras: Iterable[str] = (), also: Iterable[str] = ()) -> dict[str, Distribution]:
    """Each package that these extras and further packages lead to here, by its canonical name, in order of name.

    What is needed and not installed raises importlib.metadata.PackageNotFoundError.
    """
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    to_see = [(requirement, "") for requirement in [*direct(extras), *map(Requirement, also)]]
    while to_see:
        requirement, wanted_by = to_see.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": wanted_by}):
            continue
        name = canonicalize_name(requirement.name)
        found.setdefault(name, distribution(name))
        for extra in {"", *requirement.extras}:
            if (name, extra) not in seen:
                seen.add((name, extra))
                to_see += [(Requirement(text), extra) for text in found[name].requires or ()]
    return dict(sorted(found.items()))


def pins(path: Path) -> dict[str, str]:
    """The versions of a file of lines `name==version`, by canonical name; hashes and comments are passed over."""
    lines = (line.split("#")[0].strip(" \\") for line in path.read_text(encoding="utf-8").splitlines())
    pairs = (line.split("==") for line in lines if "==" in line)
    return {canonicalize_name(name): version.split()[0] for name, version in pairs}
