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
OFF_BY_ONE = Bug(
    "off-by-one", "src/thing.py", "return 1 + above", "return above", "ranks begin at 0", ("tests/test_first.py",)
)


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
    (root / OFF_BY_ONE.file).write_text(SOURCE)
    (root / "tests/test_first.py").write_text(TEST.format(name="kind", claim="isinstance(thing.rank(0), int)"))
    (root / "tests/properties/test_rank.py").write_text(TEST.format(name="rank", claim="thing.rank(0) == 1"))
    return root


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_stands_where_the_table_says_and_can_be_run(bug: Bug) -> None:
    with_bug = bug.with_bug(ROOT)
    assert ast.dump(ast.parse(with_bug)) != ast.dump(ast.parse(bug.source(ROOT))), "it changes nothing"
    assert bug.tests
    for test in bug.tests:
        assert (ROOT / test).is_file(), test


def test_there_are_forty_of_them_all_over_the_sources() -> None:
    assert len({bug.name for bug in BUGS}) == len(BUGS) >= 40
    packages = {path.parent.name for path in (ROOT / "src/r2n").glob("*/__init__.py")}
    assert packages - {Path(bug.file).parts[2] for bug in BUGS} <= {"reproduction"}


def test_bugs_are_chosen_by_their_names() -> None:
    assert chosen(BUGS, []) == BUGS
    assert chosen(BUGS, [BUGS[3].name]) == [BUGS[3]]
    with pytest.raises(PlantError, match="there is no bug 'none-at-all'"):
        chosen(BUGS, ["none-at-all"])


@pytest.mark.parametrize(("source", "times"), [("return 2 + above\n", 0), (SOURCE + SOURCE, 2)])
def test_a_text_that_is_not_there_once_is_refused_by_its_name(tree: Path, source: str, times: int) -> None:
    (tree / OFF_BY_ONE.file).write_text(source)
    with pytest.raises(PlantError, match=f"bug 'off-by-one': its text stands {times} times in src/thing.py"):
        OFF_BY_ONE.source(tree)


def test_a_planted_bug_is_gone_afterwards_whatever_happens(tree: Path) -> None:
    def stumble() -> None:
        with planted(OFF_BY_ONE, tree):
            assert (tree / OFF_BY_ONE.file).read_text() == SOURCE.replace("1 + above", "above")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stumble()
    assert (tree / OFF_BY_ONE.file).read_text() == SOURCE


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
