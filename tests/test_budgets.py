"""Budgets of the whole: how large the source and the tests are, and how deep imports go."""

import ast
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import r2n

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "r2n"
TRACKED = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.splitlines()
# 29,611 source lines before the defaults for every kind of problem and grounding along paths.
MOST = {
    "source lines": 33_110,
    "code lines": 23_550,
    "files": 121,
    "private functions called once": 221,
    "import chain": 25,
    "test lines": 39_745,
    "public names": 16,
    "modules loaded by import r2n": 120,
}
PATHS = re.compile(r"`((?:src/r2n|tests|docs|examples|tools|benchmarks)/[\w./-]+|[a-z]\w*/[\w/]+\.(?:py|md))`")


@cache
def trees() -> dict[str, ast.Module]:
    """The syntax tree of each module, by its dotted name."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        name = ".".join(("r2n", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def lines(folder: Path) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in folder.rglob("*.py"))


@cache
def nodes(name: str) -> list[ast.AST]:
    return list(ast.walk(trees()[name]))


def code_lines(name: str) -> int:
    """Lines that hold code: no blank line, comment or docstring."""
    texts = set[int]()
    for node in nodes(name):
        if (
            isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
            and ast.get_docstring(node, clean=False) is not None
        ):
            texts.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len({node.lineno for node in nodes(name) if isinstance(node, (ast.stmt, ast.expr))} - texts)


def imports(name: str) -> set[str]:
    """The modules of r2n that a module imports when it is loaded."""
    found = set[str]()
    for node in trees()[name].body:
        if isinstance(node, ast.ImportFrom) and node.module in trees():
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= inner & trees().keys() or {node.module}
    return found


@cache
def depth(name: str) -> int:
    return 1 + max(map(depth, imports(name)), default=0)


def called_once() -> list[str]:
    """Private functions of modules that are named once besides their definition."""
    found = []
    for name in trees():
        used = Counter(node.id for node in nodes(name) if isinstance(node, ast.Name))
        used.update(node.attr for node in nodes(name) if isinstance(node, ast.Attribute))
        private = [n for n in nodes(name) if isinstance(n, ast.FunctionDef) and re.match("_[^_]", n.name)]
        found += [f"{name}.{function.name}" for function in private if used[function.name] == 1]
    return found


def test_the_source_is_small() -> None:
    assert lines(SOURCE) <= MOST["source lines"]
    assert len(trees()) <= MOST["files"]
    assert sum(map(code_lines, trees())) <= MOST["code lines"]
    assert len(called_once()) <= MOST["private functions called once"]


def test_imports_are_shallow() -> None:
    assert max(map(depth, trees())) <= MOST["import chain"]


def test_the_tests_are_small() -> None:
    assert lines(ROOT / "tests") <= MOST["test lines"]


def test_there_are_few_public_names() -> None:
    assert len(r2n.__all__) <= MOST["public names"]


def test_importing_r2n_loads_nothing_heavy() -> None:
    code = "import sys, r2n; print(len(sys.modules), *({'torch', 'numpy', 'duckdb', 'rich'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    count, *heavy = done.stdout.split()
    assert not heavy
    assert int(count) <= MOST["modules loaded by import r2n"]


@pytest.mark.skipif(not TRACKED, reason="no git checkout")
def test_no_tracked_file_holds_a_conflict_marker() -> None:
    marker = re.compile(rb"^(?:<{7} |={7}$|>{7} )", re.M)
    assert [name for name in TRACKED if (ROOT / name).is_file() and marker.search((ROOT / name).read_bytes())] == []


@pytest.mark.parametrize("page", sorted(p.name for p in (ROOT / "docs").glob("*.md")))
def test_paths_in_the_documentation_exist(page: str) -> None:
    named = PATHS.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))
    roots = (ROOT, SOURCE, ROOT / "tests", ROOT / "docs")
    assert [name for name in named if not any((root / name.rstrip("/")).exists() for root in roots)] == []
