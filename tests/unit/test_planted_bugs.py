"""The table of bugs to plant fits the sources, and a planted bug dies or survives as it should."""

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from tools.plant_bugs import (
    ROOT,
    Bug,
    Found,
    PlantError,
    chosen,
    failing,
    hunt,
    planted,
    read_bugs,
    refuse_false_alarms,
    table,
)

BUGS = read_bugs()
SOURCE = "def rank(above: int) -> int:\n    return 1 + above\n"
TEST = "import thing\n\n\ndef test_{name}() -> None:\n    assert {claim}\n"
FILE, FIRST = "src/thing.py", ("tests/test_first.py",)
OFF_BY_ONE = Bug("off-by-one", "thing.rank", "1 + above", "above", "ranks begin at 0", FIRST)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One function, a test that any bug passes, and among the properties one that looks."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # pytest starts faster so
    root = tmp_path / "tree"
    for folder in ("src", "tests/unit", "tests/properties"):
        (root / folder).mkdir(parents=True)
    (root / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\nmarkers = ["slow", "browser", "postgres", "spark"]'
    )
    (root / FILE).write_text(SOURCE)
    (root / "tests/test_first.py").write_text(TEST.format(name="kind", claim="isinstance(thing.rank(0), int)"))
    (root / "tests/properties/test_rank.py").write_text(TEST.format(name="rank", claim="thing.rank(0) == 1"))
    return root


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_of_the_table_fits_its_symbol_and_can_be_run(bug: Bug) -> None:
    path, with_bug = bug.with_bug(ROOT)
    assert ast.dump(ast.parse(with_bug)) != ast.dump(ast.parse(path.read_bytes())), "it changes nothing"
    assert bug.tests
    assert [test for test in bug.tests if not (ROOT / test).is_file()] == []


def test_there_are_forty_of_them_all_over_the_sources() -> None:
    assert len({bug.name for bug in BUGS}) == len(BUGS) >= 40
    packages = {path.parent.name for path in (ROOT / "src/r2n").glob("*/__init__.py")}
    assert packages - {bug.symbol.split(".")[1] for bug in BUGS} <= {"reproduction"}


def test_bugs_are_chosen_by_their_names() -> None:
    assert chosen(BUGS, []) == BUGS
    assert chosen(BUGS, [BUGS[3].name]) == [BUGS[3]]
    with pytest.raises(PlantError, match="there is no bug 'none-at-all'"):
        chosen(BUGS, ["none-at-all"])


@pytest.mark.parametrize(
    ("source", "times"),
    [("def other(): return 1 + above", 0), (SOURCE.replace("1 + above", "1 + above, 1 + above"), 2)],
)
def test_a_context_that_is_not_in_its_symbol_once_is_refused(tree: Path, source: str, times: int) -> None:
    (tree / FILE).write_text(source)
    with pytest.raises(PlantError, match=f"bug 'off-by-one': {times} times in thing.rank, not once: 1 \\+ above"):
        OFF_BY_ONE.with_bug(tree)


def test_a_context_is_found_however_it_is_written_and_wherever_its_symbol_moved(tree: Path) -> None:
    (tree / FILE).write_text("def other(above): return 1 + above\n")
    moved = "class Rank:\n    def rank(self, above):\n        é = '1 + above'; return (1\n            +  above), é\n"
    (tree / "src/moved.py").write_text(moved)
    path, with_bug = OFF_BY_ONE.with_bug(tree)
    assert (path.name, with_bug.decode()) == ("moved.py", moved.replace("1\n            +  above", "above"))


def test_a_planted_bug_is_gone_afterwards_whatever_happens(tree: Path) -> None:
    def stumble() -> None:
        with planted(OFF_BY_ONE, tree):
            assert (tree / FILE).read_text() == SOURCE.replace("1 + above", "above")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stumble()
    assert (tree / FILE).read_text() == SOURCE


@pytest.mark.slow
def test_a_bug_that_the_first_tests_pass_is_found_by_wider_ones(tree: Path) -> None:
    assert failing(tree, OFF_BY_ONE.tests) is None
    found = hunt(OFF_BY_ONE, tree)
    assert (found.by, found.verdict) == ("tests/properties/test_rank.py::test_rank", "died")
    refuse_false_alarms([found], tree)
    (tree / "tests/properties/test_rank.py").unlink()
    survivor = hunt(OFF_BY_ONE, tree)
    assert (survivor.by, survivor.verdict) == (None, "SURVIVED")
    assert Found(replace(OFF_BY_ONE, equivalent="nobody asks"), None, 1.0).verdict == "equivalent"
    assert table([found, survivor]).splitlines()[-1] == "1 died, 1 SURVIVED, 0 equivalent"


def test_a_test_that_fails_without_a_bug_finds_none(tree: Path) -> None:
    (tree / "tests/test_first.py").write_text(TEST.format(name="kind", claim="thing.rank(0) == 0"))
    with pytest.raises(PlantError, match=r"tests/test_first\.py::test_kind fails without any bug"):
        refuse_false_alarms([Found(OFF_BY_ONE, "tests/test_first.py::test_kind", 1.0)], tree)
