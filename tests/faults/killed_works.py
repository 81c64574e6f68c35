"""Works of r2n as they are tried under faults: what they need, and what they must leave when they are done."""

import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from safetensors.numpy import load_file

from r2n.data.problem import load_problem
from r2n.grounding.cache import fingerprint, write_grounding
from r2n.grounding.full import FullGrounder
from r2n.grounding.store import Store
from r2n.store.checkpoint import read_checkpoint, read_trace
from tests.faults.warm_process import Ended, WarmProcess
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

    def filled(self, arguments: Sequence[object], out: str = ".") -> list[str]:
        """The arguments with the names that stand for these."""
        names = {"toy": self.toy, "queries": self.queries, "address": self.address, "out": out}
        filled = [str(part) for part in arguments]
        for name, value in names.items():
            filled = [part.replace(f"{{{name}}}", str(value)) for part in filled]
        return filled


def contents(folder: Path) -> Outcome:
    """Every file, by its name and checksum; hidden ones too."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@dataclass(frozen=True)
class Work:
    """A work in a folder of its own, by relative paths, from what `prepare` puts there; `outcome` is what it leaves.

    `kills`: so many at random moments, and half as many between operations on files. `again`: arguments added when it
    is done again; `is_once`: a complete work is not done again.
    """

    name: str
    kills: int
    work: str
    arguments: tuple[object, ...]
    prepare: Callable[[Given, Path], object] = lambda given, folder: None
    outcome: Callable[[Path], Outcome] = contents
    again: tuple[str, ...] = ()
    is_once: bool = False


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
    found = _without(contents(folder), "grounding.json")
    for path in folder.rglob("*.parquet"):
        found[path.name] = pq.read_table(path).to_pydict()
    return found


def _copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target)


def _runs(given: Given, folder: Path) -> None:
    """A run, and another to compare it with."""
    _copy(given.run, folder / "run")
    _copy(given.run, folder / "other")


def _in_parts(given: Given, folder: Path) -> None:
    knowledge, grounder = load_problem(given.toy).knowledge, FullGrounder()
    write_grounding(grounder.ground(Store(knowledge)), folder / "kept", fingerprint(knowledge, grounder))


ARCHIVE_FACTS = "".join(f"c{i * 7919 % 100_003}\tr{i % 7}\tc{i}\n" for i in range(60_000)).encode()
RULES = "".join(f"r{i}:1.0:p(x,y) -> q(x,y)\n" for i in range(60_000)).encode()
FETCHED = [
    ("rules.txt", [("rules.txt", hashlib.sha256(RULES).hexdigest(), None)]),
    ("kg.tar.gz", [(f"{i}/facts.tsv", hashlib.sha256(ARCHIVE_FACTS).hexdigest(), "facts.txt") for i in range(3)]),
]


def write_site(folder: Path) -> None:
    place = folder / "owner" / "repo" / "abc"
    place.mkdir(parents=True)
    (place / "rules.txt").write_bytes(RULES)
    with tarfile.open(place / "kg.tar.gz", "w:gz") as archive:
        entry = tarfile.TarInfo("kg/facts.txt")
        entry.size = len(ARCHIVE_FACTS)
        archive.addfile(entry, io.BytesIO(ARCHIVE_FACTS))


def write_given(folder: Path) -> tuple[Path, Path]:
    rows = [f"{TOWNS[i % len(TOWNS)]}\tliesIn\t{VALLEYS[i // 3 % 2]}\n" for i in range(QUERIES)]
    (folder / "queries.tsv").write_text("".join(rows))
    return write_toy_problem(folder / "toy", epochs=EPOCHS), folder / "queries.tsv"


TRAIN = ["--checkpoint-seconds", 0, "--seed", 3]
OPTIONS = ("training.epochs=20", "model.dim=8", "training.patience=15", "model.rule_dropout=0.1")
SET = [part for option in OPTIONS for part in ("--set", option)]
ATOM = "liesIn(n5, north)"
PAGES = ["--html", "page.html", "--svg", "drawing.svg"]
READING: dict[str, list[object]] = {
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
WRITING: dict[str, list[object]] = {
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
COMMANDS = (
    READING
    | WRITING
    | {
        "report": ["report", "run"],
        "train --resume": ["train", "{toy}", "--out", "run", "--resume"],
        "evaluate --jobs": ["evaluate", "run", "--jobs", "2"],
        "predict --jobs": ["predict", "run", "--queries", "{queries}", "--out", "made.csv", "--jobs", "2"],
    }
)


def command(name: str, kills: int, *arguments: object, **more: Any) -> Work:
    return Work(name, kills, "r2n", arguments, **more)


WORKS = (
    Work("training", 48, "train", ("{toy}", "run", 1), outcome=of_training),
    Work("training of an ensemble", 12, "train", ("{toy}", "run", 2), outcome=of_training),
    command("r2n train", 12, "train", "{toy}", "--out", "run", *TRAIN, outcome=of_training, again=("--resume",)),
    command(
        *("r2n train countries-s3", 12, "train", "countries-s3", "--out", "run", *TRAIN, *SET),
        outcome=of_training,
        again=("--resume",),
    ),
    command("grounding", 24, "ground", "{toy}", "--out", "kept", outcome=of_grounding),
    command(
        *("grounding in place of another", 12, "ground", "{toy}", "--out", "kept"),
        prepare=lambda given, folder: _copy(given.run.parent / "known-body", folder / "kept"),
        outcome=of_grounding,
    ),
    Work("grounding in parts", 12, "collate", ("{toy}", "kept"), _in_parts, outcome=of_grounding),
    Work("download", 24, "fetch", ("{address}", "cache", json.dumps(FETCHED))),
    command("answers", 12, "predict", "run", "--queries", "{queries}", "--out", "answers.csv", prepare=_runs),
    command("report", 12, "report", "run", prepare=_runs),
    command("comparison", 12, "compare", "run", "other", "--html", "page.html", prepare=_runs),
    command("explanation", 12, "explain", "run", ATOM, *PAGES, prepare=_runs),
    command("mined theory", 12, "mine", "{toy}", "--out", "mined.r2n"),
    command("generated problem", 12, "datasets", "generate", "made", is_once=True),
    command("streamed problem", 12, "datasets", "generate", "--out", "made", "--facts", 20_000, is_once=True),
)


@dataclass(frozen=True)
class Trial:
    """A folder in which works are done by the warm process, each in a folder `at` of its own if that is named."""

    warm: WarmProcess
    given: Given
    folder: Path

    def with_run(self, at: str = "") -> Path:
        if not (self.folder / at / "run").exists():
            shutil.copytree(self.given.run, self.folder / at / "run")
        return self.folder / at

    def arguments(self, command: str, out: str = ".") -> list[str]:
        return self.given.filled(COMMANDS[command], out)

    def run(self, work: str, *arguments: object, at: str = "", **more: Any) -> Ended:
        (self.folder / at).mkdir(exist_ok=True)
        return self.warm.run(work, *arguments, folder=self.folder / at, **more)

    def done(self, work: str, *arguments: object, **more: Any) -> Ended:
        ended = self.run(work, *arguments, **more)
        assert ended.code == 0, ended.said
        return ended

    def command(self, name: str, *more: str, at: str = "", out: str = ".", **when: Any) -> Ended:
        self.with_run(at)
        return self.run("r2n", *self.arguments(name, out), *more, at=at, **when)


ENDS = {".svg": b"</svg>", ".html": b"</html>"} | dict.fromkeys((".tsv", ".csv", ".txt", ".toml", ".r2n"), b"")
READERS: dict[str, Callable[[Path], object]] = {
    ".json": lambda path: json.loads(path.read_bytes()),
    ".jsonl": read_trace,
    ".safetensors": load_file,
    ".parquet": pq.read_table,
    ".npy": np.load,
}


def check_whole(folder: Path) -> None:
    """Every file that has its name is complete, whoever reads it."""
    for path in folder.rglob("*"):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.is_file() and not hidden:
            if path.suffix in READERS:
                READERS[path.suffix](path)
            else:
                assert path.read_bytes().removesuffix(b"\n").endswith(ENDS[path.suffix]), path
                assert ENDS[path.suffix] or path.read_bytes().endswith(b"\n"), path
    for manifest in folder.rglob("checkpoint.json"):
        assert read_checkpoint(manifest.parent) is not None
