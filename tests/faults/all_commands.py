"""Every command of r2n, as it is tried under faults: in a folder that holds a copy of a run."""

import shutil
from pathlib import Path

from tests.faults.killed_works import ATOM, Given

READING: dict[str, list[str]] = {
    "check": ["check", "{toy}"],
    "ground": ["ground", "{toy}"],
    "mine": ["mine", "{toy}"],
    "infer": ["infer", "{toy}"],
    "evaluate": ["evaluate", "run"],
    "predict": ["predict", "run", "liesIn(?, ?)", "--all", "--top", "32"],
    "explain": ["explain", "run", ATOM],
    "rules": ["rules", "run"],
    "compare": ["compare", "run", "run"],
    "datasets list": ["datasets", "list"],
}
# and what they write
WRITING: dict[str, list[str]] = {
    "train --out": ["train", "{toy}", "--out", "{out}/made"],
    "train --ensemble": ["train", "{toy}", "--ensemble", "2", "--out", "{out}/made"],
    "ground --out": ["ground", "{toy}", "--out", "{out}/made"],
    "mine --out": ["mine", "{toy}", "--out", "{out}/made.r2n"],
    "predict --out": ["predict", "run", ATOM, "--out", "{out}/made.csv"],
    "predict --queries --out": ["predict", "run", "--queries", "{queries}", "--out", "{out}/made.parquet"],
    "explain --html": ["explain", "run", ATOM, "--html", "{out}/made.html"],
    "explain --svg": ["explain", "run", ATOM, "--svg", "{out}/made.svg"],
    "report --out": ["report", "run", "--out", "{out}/made.html"],
    "compare --html": ["compare", "run", "run", "--html", "{out}/made.html"],
    "datasets generate": ["datasets", "generate", "{out}/made", "--facts", "2000"],
    "datasets generate --out": ["datasets", "generate", "--out", "{out}/made", "--facts", "2000"],
}


def filled(arguments: list[str], given: Given, out: str = ".") -> list[str]:
    """The arguments, with the places that they name."""
    return [part.format(toy=given.toy, queries=given.queries, out=out) for part in arguments]


def with_run(given: Given, folder: Path) -> Path:
    """The folder, with a run in it."""
    shutil.copytree(given.run, folder / "run")
    return folder
