"""How many examples a property looks at, where the profile's own number would take too long; and tables of cases."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

STATED = 200  # examples of a property where nothing else is stated
FAST = 80  # of these in the profile `fast`, that of `make test`
THOROUGH = 10 * STATED


def at_most(examples: int, because: str) -> settings:
    """So many examples in the profile `free`, fewer in `fast`, ten times as many in `thorough`; `because` says why."""
    assert because
    profile = settings.default
    assert profile is not None
    return settings(max_examples=max(1, examples * profile.max_examples // STATED))


def first_of(cases: Iterable[Any], quick: int) -> list[Any]:
    """Cases of a parametrised test, of which `make test` looks at the first; the others are slow in their number."""
    return [case if i < quick else pytest.param(case, marks=pytest.mark.slow) for i, case in enumerate(cases)]


def fixture(name: str) -> dict[str, Any]:
    """The cases in a file of `tests/fixtures`."""
    return tomllib.loads((Path(__file__).parent / "fixtures" / name).read_text("utf-8"))
