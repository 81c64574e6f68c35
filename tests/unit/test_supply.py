"""The lists of packages agree: bounds, lowest versions, pins, lock and licences."""

import re
from importlib.metadata import PackageNotFoundError, version

import pytest
from packaging.utils import canonicalize_name
from packaging.version import Version

from tools.licences import licence, listed, refused
from tools.needed import ROOT, direct, installed, pins
from tools.sbom import left_out

PINS = pins(ROOT / "constraints.txt")
LOWEST = pins(ROOT / "locks" / "lowest.txt")
OF_USERS = ("postgres", "rdf", "serve")  # the extras that `make test` and `make test-lowest` install
LOCK = ROOT / "locks" / "test.txt"


def test_every_bound_is_within_the_pins() -> None:
    for requirement in direct(("dev", "judges", "sbom", "spark", "tune")):
        assert requirement.specifier.contains(PINS[requirement.name.replace("_", "-")]), requirement


def test_every_bound_is_the_lowest_version_that_is_tested() -> None:
    bounds = {canonicalize_name(r.name): str(r.specifier) for r in direct(OF_USERS)}
    assert bounds == {name: f">={LOWEST[name]}" for name in bounds}


def test_the_lowest_versions_are_those_of_the_pins_or_older() -> None:
    newer = [name for name in LOWEST.keys() & PINS.keys() if Version(LOWEST[name]) > Version(PINS[name])]
    assert newer == []


def test_the_lock_has_the_pins_and_everything_that_the_tests_need() -> None:
    locked = {name: pinned.partition("+")[0] for name, pinned in pins(LOCK).items()}
    assert locked.items() <= PINS.items()
    if "+" in version("torch"):  # elsewhere torch brings the libraries of its devices
        listed_here = LOWEST if version("duckdb") == LOWEST["duckdb"] else locked
        assert installed(["test"], also=["hatchling"]).keys() <= listed_here.keys()


def test_the_lock_has_hashes_and_names_no_place() -> None:
    lines = [line.strip(" \\") for line in LOCK.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    packages = [line for line in lines if re.fullmatch(r"[a-z0-9.-]+==[\w.+]+", line)]
    assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", line) for line in lines if line not in packages)
    assert len(packages) == len(pins(LOCK))
    assert not any(a in packages and b in packages for a, b in zip(lines, [*lines[1:], packages[0]], strict=True))


def test_every_pinned_package_has_an_allowed_licence() -> None:
    found = listed()
    assert {name: v for name, (v, _) in found.items()} == PINS
    wrong = {name: refused(words) for name, (_, words) in found.items() if refused(words)}
    assert wrong == {}


def test_installed_packages_state_the_licence_of_the_list() -> None:
    compared = 0
    for name, (pinned, words) in listed().items():
        try:
            same = version(name).partition("+")[0] == pinned
        except PackageNotFoundError:
            continue
        if same:
            assert licence(name) == words, name
            compared += 1
    assert compared > 10


@pytest.mark.parametrize(
    ("expression", "not_allowed"),
    [
        ("MIT", []),
        ("Apache-2.0 WITH LLVM-exception AND (MIT OR BSD-3-Clause)", []),
        ("GPL-3.0-only", ["GPL-3.0-only"]),
        ("MIT OR GPL-3.0-only", ["GPL-3.0-only"]),
        ("(MIT AND AGPL-3.0-or-later) OR MIT", ["AGPL-3.0-or-later"]),
        ("", ["no licence is stated"]),
    ],
)
def test_a_licence_that_is_not_allowed_is_named(expression: str, not_allowed: list[str]) -> None:
    assert refused(expression) == not_allowed


def test_a_bill_that_leaves_a_package_out_is_told() -> None:
    licences = [{"license": {"id": "MIT"}}]
    full = {"components": [{"name": "Lark", "version": "1.3.1", "licenses": licences}]}
    assert left_out(full, {"lark": "1.3.1"}) == []
    assert left_out(full, {"lark": "1.3.0", "rich": "15.0.0"}) == ["lark==1.3.0", "rich==15.0.0"]
    assert left_out({"components": [{"name": "lark", "version": "1.3.1"}]}, {"lark": "1.3.1"}) == ["lark==1.3.1"]
