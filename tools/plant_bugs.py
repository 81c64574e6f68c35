"""Bugs, planted one at a time in a copy of the tree -> the test that finds each of them, or none.

    python tools/plant_bugs.py                 all of tools/planted_bugs.toml
    python tools/plant_bugs.py NAME NAME       some of them

The working tree is never touched. The tests that a bug names are run first, then those of its folder, then the
properties, the contracts and the end-to-end tests: only what `make test` runs, in one process, and without the checks
of types and shapes at every call, so that it is a test that finds a bug. It must pass without the bug. The exit code is
1 if a bug survives that is not marked as equivalent.
"""

import argparse
import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "tools" / "planted_bugs.toml"
MARKED = "not slow and not browser and not postgres and not spark"
OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "-rfE", "--no-header", "-m", MARKED)
WIDER = ("tests/properties", "tests/contracts", "tests/end_to_end")
NOT_COPIED = (".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "build", "_build", "dist")
MOST_SECONDS = 1800.0
PASSED, FAILED, INTERRUPTED, NO_TESTS = 0, 1, 2, 5
_NAMED = re.compile(r"^(?:FAILED|ERROR) (\S+?\.py(?:::\w+)*)", re.MULTILINE)


class PlantError(Exception):
    """The table and the tree do not fit, or the tests cannot be run."""


@dataclass(frozen=True, slots=True)
class Bug:
    """What is in a symbol, exactly once, and what replaces it; `equivalent`: why nobody could see it."""

    name: str
    symbol: str
    context: str
    planted: str
    breaks: str
    tests: tuple[str, ...]
    equivalent: str = ""

    def with_bug(self, root: Path) -> tuple[Path, bytes]:
        """The file of the symbol, or of one of its last name if it moved, and its source with the bug in it."""
        (statement,) = ast.parse(self.context).body
        context = statement.value if isinstance(statement, ast.Expr) else statement
        found: list[tuple[str, Path, Any]] = [
            (symbol, path, node)
            for symbol, path, definition in _definitions(root / "src", self.symbol.rpartition(".")[2])
            for node in ast.walk(definition)
            if type(node) is type(context) and ast.dump(node) == ast.dump(context)
        ]
        found = [part for part in found if part[0] == self.symbol] or found
        if len(found) != 1:
            raise PlantError(f"bug '{self.name}': {len(found)} times in {self.symbol}, not once: {self.context}")
        _, path, node = found[0]
        lines = path.read_bytes().splitlines(keepends=True)
        first, last = lines[node.lineno - 1][: node.col_offset], lines[node.end_lineno - 1][node.end_col_offset :]
        lines[node.lineno - 1 : node.end_lineno] = [first, self.planted.encode(), last]
        return path, b"".join(lines)


def _definitions(folder: Path, name: str) -> Iterator[tuple[str, Path, Any]]:
    """The functions and classes of a name, with their dotted names and files."""
    for path in sorted(folder.rglob("*.py")):
        source = path.read_bytes()
        if not re.search(rf"\b(def|class) {name}\b".encode(), source):
            continue
        module = ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
        inside: list[tuple[str, Any]] = [(module, ast.parse(source))]
        for prefix, node in inside:
            children = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.FunctionDef | ast.ClassDef)]
            inside += [(f"{prefix}.{part.name}", part) for part in children]
        yield from ((symbol, path, node) for symbol, node in inside[1:] if symbol.endswith(f".{name}"))


@dataclass(frozen=True, slots=True)
class Found:
    """A bug, the test that found it (None: it survived), and the seconds that took."""

    bug: Bug
    by: str | None
    seconds: float

    @property
    def verdict(self) -> str:
        """In one word."""
        if self.by is not None:
            return "died"
        return "equivalent" if self.bug.equivalent else "SURVIVED"


def read_bugs(table: Path = TABLE) -> list[Bug]:
    """The bugs of a table."""
    rows = tomllib.loads(table.read_text("utf-8"))["bug"]
    return [Bug(**{**row, "tests": tuple(row["tests"])}) for row in rows]


def chosen(bugs: Sequence[Bug], names: Sequence[str]) -> list[Bug]:
    """Those of these names, or all if none is named."""
    for name in sorted(set(names) - {bug.name for bug in bugs}):
        raise PlantError(f"there is no bug '{name}' in {TABLE.name}")
    return [bug for bug in bugs if not names or bug.name in names]


@contextmanager
def planted(bug: Bug, root: Path) -> Iterator[Path]:
    """Plant the bug in a tree for a while -> its file, with a time of its own: Python compiles it again."""
    path, with_bug = bug.with_bug(root)
    source, stat, seconds = path.read_bytes(), path.stat(), zlib.crc32(bug.name.encode())
    try:
        path.write_bytes(with_bug)
        os.utime(path, (seconds, seconds))
        yield path
    finally:
        path.write_bytes(source)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def failing(root: Path, tests: Sequence[str], run_before: Sequence[str] = ()) -> str | None:
    """The first test that fails in a tree; None if all pass."""
    code, output = _run(root, [*OPTIONS, *(f"--ignore={test}" for test in run_before), *tests])
    if code in (PASSED, NO_TESTS):
        return None
    found = _NAMED.search(output)
    if code in (FAILED, INTERRUPTED) and found:
        return found[1]
    if code == -signal.SIGKILL:
        return f"no end of {', '.join(tests)} in {MOST_SECONDS:.0f} s"
    raise PlantError(f"pytest ended with {code} on {', '.join(tests)}:\n{output[-2000:]}")


def _run(root: Path, arguments: Sequence[str]) -> tuple[int, str]:
    """Pytest in a tree, with the sources of that tree; killed with all that it started if it does not end."""
    environment = os.environ | {"PYTHONPATH": str(root / "src"), "OMP_NUM_THREADS": "1", "R2N_TYPE_CHECKS": "0"}
    command = [sys.executable, "-m", "pytest", *arguments]
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, cwd=root, env=environment, stdout=output, stderr=output, process_group=0)
        try:
            with suppress(subprocess.TimeoutExpired):
                process.wait(MOST_SECONDS)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
        output.seek(0)
        return code, output.read()


def hunt(bug: Bug, root: Path) -> Found:
    """Plant a bug and run one set of tests after the other until one finds it."""
    start, run_before = perf_counter(), list[str]()
    with planted(bug, root) as path:
        folder = Path("tests/unit", *path.relative_to(root).parts[2:-1]).as_posix()
        for tests in (bug.tests, *((part,) for part in (folder, *WIDER) if (root / part).is_dir())):
            by = failing(root, tests, run_before)
            if by is not None:
                return Found(bug, by, perf_counter() - start)
            run_before += tests
    return Found(bug, None, perf_counter() - start)


@contextmanager
def copied(root: Path) -> Iterator[Path]:
    """A copy of a tree, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="planted-") as name:
        copy = Path(name) / "tree"
        shutil.copytree(root, copy, ignore=shutil.ignore_patterns(*NOT_COPIED))
        yield copy


def refuse_false_alarms(found: Sequence[Found], root: Path) -> None:
    """Refuse a test that fails without any bug: it would find all of them."""
    tests = sorted({part.by for part in found if part.by is not None and ".py" in part.by})
    if tests and (by := failing(root, tests)) is not None:
        raise PlantError(f"{by} fails without any bug")


def table(found: Sequence[Found]) -> str:
    """What became of each bug."""
    width = max((len(part.bug.name) for part in found), default=0)
    lines = [
        f"{part.bug.name:<{width}}  {part.verdict:<10}  {part.seconds:>6.0f} s  {part.by or part.bug.equivalent or '-'}"
        for part in found
    ]
    counts = {kind: sum(part.verdict == kind for part in found) for kind in ("died", "SURVIVED", "equivalent")}
    return "\n".join([*lines, ", ".join(f"{number} {kind}" for kind, number in counts.items())])


def main() -> int:
    """Plant the bugs that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    names = parser.parse_args().names
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what was started ends too
    try:
        bugs = chosen(read_bugs(), names)
        for bug in bugs:
            bug.with_bug(ROOT)
        found: list[Found] = []
        with copied(ROOT) as copy:
            for number, bug in enumerate(bugs, start=1):
                found.append(hunt(bug, copy))
                result = f"{found[-1].verdict} ({found[-1].by or bug.breaks})"
                print(f"{number}/{len(bugs)} {bug.name}: {result}", flush=True)
            refuse_false_alarms(found, copy)
    except PlantError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"\n{table(found)}")
    return int(any(part.verdict == "SURVIVED" for part in found))


if __name__ == "__main__":
    sys.exit(main())
