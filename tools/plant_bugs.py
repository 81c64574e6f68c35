"""Bugs, planted one at a time in a copy of the tree -> the test that finds each of them, or none.

    python tools/plant_bugs.py                 all of tools/planted_bugs.toml
    python tools/plant_bugs.py NAME NAME       some of them

The working tree is never touched. The tests that a bug names are asked first, then those of its folder, then the
properties, the contracts and the end-to-end tests: only what `make test` runs, in one process, and without the checks
of types and shapes at every call, so that it is a test that finds a bug. It must pass without the bug. The exit code is
1 where a bug survives that is not marked as equivalent.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

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
    """What stands in a file, exactly once, and what takes its place; `equivalent`: why nobody could see it."""

    name: str
    file: str
    text: str
    planted: str
    breaks: str
    tests: tuple[str, ...]
    equivalent: str = ""

    def source(self, root: Path) -> str:
        """The file as it is; refused where the text does not stand in it exactly once."""
        source = (root / self.file).read_text("utf-8")
        times = source.count(self.text)
        if times != 1:
            raise PlantError(f"bug '{self.name}': its text stands {times} times in {self.file}, not once: {self.text}")
        return source

    def with_bug(self, root: Path) -> str:
        """The file with the bug in it."""
        return self.source(root).replace(self.text, self.planted)

    def wider(self, root: Path) -> list[str]:
        """Where to ask when the first tests pass: the folder of the file's twin, then what goes through all."""
        folder = Path("tests/unit", *Path(self.file).parts[2:-1])
        return [place for place in (folder.as_posix(), *WIDER) if (root / place).is_dir()]


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
    """Those of these names, or all where none is named."""
    unknown = sorted(set(names) - {bug.name for bug in bugs})
    if unknown:
        raise PlantError(f"there is no bug '{unknown[0]}' in {TABLE.name}")
    return [bug for bug in bugs if not names or bug.name in names]


@contextmanager
def planted(bug: Bug, root: Path) -> Iterator[None]:
    """The bug stands in a tree, and is gone afterwards."""
    source, path = bug.source(root), root / bug.file
    try:
        path.write_text(bug.with_bug(root), "utf-8")
        _forget_compiled(path, root)
        yield
    finally:
        path.write_text(source, "utf-8")
        _forget_compiled(path, root)


def _forget_compiled(path: Path, root: Path) -> None:
    """Python takes a compiled file for the same by its second and its size: a bug may have both."""
    for compiled in _compiled(root).joinpath(*path.parent.parts[1:]).glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


def _compiled(root: Path) -> Path:
    """Where Python keeps what it compiles for a tree: beside it."""
    return root.with_name(f"{root.name}.compiled")


def failing(root: Path, tests: Sequence[str], asked_already: Sequence[str] = ()) -> str | None:
    """The first test that fails in a tree; None where all pass."""
    ignored = [f"--ignore={test}" for test in asked_already]
    code, told = _run(root, [*OPTIONS, *ignored, *tests])
    if code in (PASSED, NO_TESTS):
        return None
    found = _NAMED.search(told)
    if code in (FAILED, INTERRUPTED) and found:
        return found[1]
    if code == -signal.SIGKILL:
        return f"no end of {', '.join(tests)} in {MOST_SECONDS:.0f} s"
    raise PlantError(f"pytest ended with {code} on {', '.join(tests)}:\n{told[-2000:]}")


def _run(root: Path, arguments: Sequence[str]) -> tuple[int, str]:
    """Pytest in a tree, with the sources of that tree; killed with all that it started where it does not end."""
    environment = os.environ | {
        "PYTHONPATH": str(root / "src"),
        "PYTHONPYCACHEPREFIX": str(_compiled(root)),
        "PYTHONDONTWRITEBYTECODE": "",
        "OMP_NUM_THREADS": "1",
        "R2N_TYPE_CHECKS": "0",
    }
    command = [sys.executable, "-m", "pytest", *arguments]
    with tempfile.TemporaryFile("w+") as told:
        process = subprocess.Popen(command, cwd=root, env=environment, stdout=told, stderr=told, start_new_session=True)
        try:
            process.wait(MOST_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
        told.seek(0)
        return code, told.read()


def hunt(bug: Bug, root: Path) -> Found:
    """Plant a bug and ask one set of tests after the other until one finds it."""
    start, asked = perf_counter(), list[str]()
    with planted(bug, root):
        for tests in (bug.tests, *((place,) for place in bug.wider(root))):
            by = failing(root, tests, asked)
            if by is not None:
                return Found(bug, by, perf_counter() - start)
            asked += tests
    return Found(bug, None, perf_counter() - start)


@contextmanager
def copied(root: Path) -> Iterator[Path]:
    """A copy of a tree, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="planted-") as name:
        copy = Path(name) / "tree"
        shutil.copytree(root, copy, ignore=shutil.ignore_patterns(*NOT_COPIED))
        yield copy


def refuse_false_alarms(found: Sequence[Found], root: Path) -> None:
    """Refuse a test that fails without any bug: it would find them all."""
    tests = sorted({part.by for part in found if part.by is not None and ".py" in part.by})
    by = failing(root, tests) if tests else None
    if by is not None:
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
            bug.source(ROOT)
        found: list[Found] = []
        with copied(ROOT) as copy:
            for number, bug in enumerate(bugs, start=1):
                found.append(hunt(bug, copy))
                print(
                    f"{number}/{len(bugs)} {bug.name}: {found[-1].verdict} ({found[-1].by or bug.breaks})", flush=True
                )
            refuse_false_alarms(found, copy)
    except PlantError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"\n{table(found)}")
    return int(any(part.verdict == "SURVIVED" for part in found))


if __name__ == "__main__":
    sys.exit(main())
