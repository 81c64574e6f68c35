"""What is killed while it writes: works of r2n, what they need, and what has to stand there when they are done."""

import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from safetensors.numpy import load_file

from r2n.data.problem import load_problem
from r2n.grounding.cache import digest_of_all, write_grounding
from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.store.checkpoint import read_checkpoint
from r2n.store.trace import read_trace
from tests.toy_problem import TOWNS, VALLEYS, write_toy_problem

EPOCHS = 8
QUERIES = 40_000  # three parts
Outcome = dict[str, Any]


@dataclass(frozen=True)
class Given:
    """What is made once: a problem, a run on it, queries, and a server with something to fetch."""

    toy: Path
    run: Path
    queries: Path
    address: str


@dataclass(frozen=True)
class Work:
    """A work in a folder of its own, by relative paths, from what `prepare` lays there; `outcome` is what it leaves.

    `kills`: so many at random moments, and half as many between operations on files. `again`: what is said more when it
    is done again; what `is_once` refuses to be, where it was whole.
    """

    name: str
    kills: int
    work: str
    arguments: Callable[[Given], list[object]]
    prepare: Callable[[Given, Path], None] = lambda given, folder: None
    outcome: Callable[[Path], Outcome] = lambda folder: contents(folder)
    again: tuple[str, ...] = ()
    is_once: bool = False


def contents(folder: Path) -> Outcome:
    """Every file, by its name and checksum; hidden ones too."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _without(outcome: Outcome, *endings: str) -> Outcome:
    """The files of these kinds by their names alone, for they hold times."""
    return {name: "" if name.endswith(endings) else digest for name, digest in outcome.items()}


def of_training(folder: Path) -> Outcome:
    """All files, with the lines of traces but their seconds, and the metrics."""
    found = _without(contents(folder), "checkpoint.json", "trace.jsonl", "report.json", "report.html")
    for path in folder.rglob("trace.jsonl"):
        found[str(path)[len(str(folder)) :]] = [{**record, "seconds": 0} for record in read_trace(path)]
    for path in folder.rglob("report.json"):
        found["metrics"] = [report["metrics"] for report in json.loads(path.read_text())["reports"]]
    return found


def of_grounding(folder: Path) -> Outcome:
    """All files, and the ground rules."""
    found = _without(contents(folder), "grounding.json")
    for path in folder.rglob("*.parquet"):
        found[path.name] = pq.read_table(path).to_pydict()
    return found


def _copy_run(given: Given, folder: Path) -> None:
    shutil.copytree(given.run, folder / "run")


def _two_runs(given: Given, folder: Path) -> None:
    _copy_run(given, folder)
    shutil.copytree(given.run, folder / "other")


def _other_grounding(given: Given, folder: Path) -> None:
    """A grounding of another strategy, to be replaced."""
    shutil.copytree(given.run.parent / "known-body", folder / "kept")


def _in_parts(given: Given, folder: Path) -> None:
    knowledge, grounder = load_problem(given.toy).knowledge, FullGrounder()
    write_grounding(grounder.ground(Store(knowledge)), folder / "kept", digest_of_all(knowledge, grounder))


ARCHIVE_FACTS = "".join(f"c{i * 7919 % 100_003}\tr{i % 7}\tc{i}\n" for i in range(60_000)).encode()
RULES = "".join(f"r{i}:1.0:p(x,y) -> q(x,y)\n" for i in range(60_000)).encode()
FETCHED = [
    ("rules.txt", [("rules.txt", hashlib.sha256(RULES).hexdigest(), None)]),
    ("kg.tar.gz", [(f"{i}/facts.tsv", hashlib.sha256(ARCHIVE_FACTS).hexdigest(), "facts.txt") for i in range(3)]),
]


def write_site(folder: Path) -> None:
    """What the server has: a file, and an archive."""
    place = folder / "owner" / "repo" / "abc"
    place.mkdir(parents=True)
    (place / "rules.txt").write_bytes(RULES)
    with tarfile.open(place / "kg.tar.gz", "w:gz") as archive:
        entry = tarfile.TarInfo("kg/facts.txt")
        entry.size = len(ARCHIVE_FACTS)
        archive.addfile(entry, io.BytesIO(ARCHIVE_FACTS))


def write_given(folder: Path) -> tuple[Path, Path]:
    """A problem, and queries on it."""
    rows = [f"{TOWNS[i % len(TOWNS)]}\tliesIn\t{VALLEYS[i // 3 % 2]}\n" for i in range(QUERIES)]
    (folder / "queries.tsv").write_text("".join(rows))
    return write_toy_problem(folder / "toy", epochs=EPOCHS), folder / "queries.tsv"


TRAIN = ["--checkpoint-seconds", 0, "--seed", 3]
OPTIONS = ("training.epochs=20", "model.dim=8", "training.patience=15", "model.rule_dropout=0.1")
SET = [part for option in OPTIONS for part in ("--set", option)]
ATOM = "liesIn(n5, north)"

WORKS = (
    Work("training", 48, "train", lambda given: [given.toy, "run", 1], outcome=of_training),
    Work("training of an ensemble", 12, "train", lambda given: [given.toy, "run", 2], outcome=of_training),
    Work(
        "r2n train",
        12,
        "r2n",
        lambda given: ["train", given.toy, "--out", "run", *TRAIN],
        outcome=of_training,
        again=("--resume",),
    ),
    Work(
        "r2n train countries-s3",
        12,
        "r2n",
        lambda given: ["train", "countries-s3", "--out", "run", *TRAIN, *SET],
        outcome=of_training,
        again=("--resume",),
    ),
    Work("grounding", 24, "r2n", lambda given: ["ground", given.toy, "--out", "kept"], outcome=of_grounding),
    Work(
        "grounding in place of another",
        12,
        "r2n",
        lambda given: ["ground", given.toy, "--out", "kept"],
        _other_grounding,
        outcome=of_grounding,
    ),
    Work("grounding in parts", 12, "lay out", lambda given: [given.toy, "kept"], _in_parts, outcome=of_grounding),
    Work("download", 24, "fetch", lambda given: [given.address, "cache", json.dumps(FETCHED)]),
    Work(
        "answers",
        12,
        "r2n",
        lambda given: ["predict", "run", "--queries", given.queries, "--out", "answers.csv"],
        _copy_run,
    ),
    Work("report", 12, "r2n", lambda given: ["report", "run"], _copy_run),
    Work("comparison", 12, "r2n", lambda given: ["compare", "run", "other", "--html", "page.html"], _two_runs),
    Work(
        "explanation",
        12,
        "r2n",
        lambda given: ["explain", "run", ATOM, "--html", "page.html", "--svg", "drawing.svg"],
        _copy_run,
    ),
    Work("mined theory", 12, "r2n", lambda given: ["mine", given.toy, "--out", "mined.r2n"]),
    Work("generated problem", 12, "r2n", lambda given: ["datasets", "generate", "made"], is_once=True),
    Work(
        "streamed problem",
        12,
        "r2n",
        lambda given: ["datasets", "generate", "--out", "made", "--facts", 20_000],
        is_once=True,
    ),
)


def check_whole(folder: Path) -> None:
    """Every file that has its name is whole, whoever reads it."""
    for path in folder.rglob("*"):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.is_file() and not hidden:
            _check(path)
    for manifest in folder.rglob("checkpoint.json"):
        assert read_checkpoint(manifest.parent) is not None


def _check(path: Path) -> None:
    content = path.read_bytes()
    if path.suffix in ENDS:
        assert content.rstrip(b"\n").endswith(ENDS[path.suffix]), path
    elif path.suffix in READERS:
        READERS[path.suffix](path)
    else:
        assert path.suffix in TEXTS, path
        assert content.endswith(b"\n"), path


ENDS = {".svg": b"</svg>", ".html": b"</html>"}
READERS: dict[str, Callable[[Path], object]] = {
    ".json": lambda path: json.loads(path.read_bytes()),
    ".jsonl": read_trace,
    ".safetensors": load_file,
    ".parquet": pq.read_table,
    ".npy": np.load,
}
TEXTS = (".tsv", ".csv", ".txt", ".toml", ".r2n")
