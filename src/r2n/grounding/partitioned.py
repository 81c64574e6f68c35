"""Rules -> ground rules: a grounding on disk in parts, a folder a rule, and back as arrays that stay there.

`rule=0/`, `rule=1/`, ... hold Parquet files (a0, a1, ...: the codes of a rule's atoms), in order of their names. What
is read once is laid beside them as plain arrays, which are mapped into memory and never read as a whole.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from r2n.errors import CheckpointError
from r2n.grounding.cache import MANIFEST
from r2n.grounding.content import content_of
from r2n.grounding.ground_rules import Grounder, Grounding, GroundRules
from r2n.grounding.store import Store
from r2n.knowledge.herbrand import Codes
from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.logic.theory import Rule
from r2n.progress import Progress, no_progress
from r2n.whole_files import check_regular, new_file, read_file

FORMAT = "parts-1"
ARRAYS = "_arrays"
ROWS_AT_ONCE = 2**20


@dataclass(frozen=True, slots=True)
class RuleParts:
    """What the manifest says of a rule: where its ground rules are, how many, and what it took to find them."""

    name: str
    folder: str
    files: tuple[tuple[str, str], ...]
    ground_rules: int
    estimate: int
    seconds: float

    @classmethod
    def from_entry(cls, entry: list[Any]) -> "RuleParts":
        """As it stands in a manifest."""
        name, folder, files, *numbers = entry
        return cls(name, folder, tuple((file, checksum) for file, checksum in files), *numbers)


def write_manifest(folder: Path, digest: str, rules: Sequence[RuleParts]) -> None:
    """Say what is in a folder, when all of it is there."""
    entries = [
        [r.name, r.folder, [list(file) for file in r.files], r.ground_rules, r.estimate, r.seconds] for r in rules
    ]
    manifest = {"format": FORMAT, "fingerprint": digest, "rules": entries, "sha256": _whole(digest, entries)}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1), "utf-8")


def parts_of(folder: Path) -> tuple[tuple[str, str], ...]:
    """The Parquet files of a rule, in order, each with its checksum."""
    return tuple((path.name, _checksum(path)) for path in sorted(folder.glob("*.parquet")))


def _checksum(path: Path) -> str:
    check_regular(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _whole(digest: str, entries: list[Any]) -> str:
    return hashlib.sha256(json.dumps([digest, entries]).encode()).hexdigest()


def is_partitioned(folder: Path) -> bool:
    """Whether a folder holds a grounding in parts."""
    try:
        return json.loads(read_file(folder / MANIFEST)).get("format") == FORMAT
    except (OSError, ValueError, AttributeError):
        return False


def read_partitioned(folder: Path, knowledge: KnowledgeBase, grounder: Grounder) -> Grounding | None:
    """The grounding in a folder if it is that of this knowledge base, else None; a damaged one is refused."""
    hint = f"delete {folder} and ground again"
    try:
        manifest = json.loads(read_file(folder / MANIFEST))
        if manifest["fingerprint"] != content_of(knowledge).digest(knowledge.theory, grounder):
            return None
        entries = manifest["rules"]
        if manifest["sha256"] != _whole(manifest["fingerprint"], entries):
            raise ValueError("checksum of the manifest")
        parts = zip(knowledge.theory.rules, entries, strict=True)
        return Grounding(tuple(_read(folder, rule, RuleParts.from_entry(entry)) for rule, entry in parts))
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise CheckpointError(f"the grounding in {folder} is damaged", hint=hint) from error


def _read(folder: Path, rule: Rule, parts: RuleParts) -> GroundRules:
    positions = len(rule.atoms)
    told = hashlib.sha256(json.dumps([list(file) for file in parts.files]).encode()).hexdigest()[:16]
    path = folder / ARRAYS / f"{parts.folder.replace('=', '_')}-{told}.npy"
    if parts.ground_rules == 0:
        return GroundRules(rule, np.zeros((0, positions), np.int64), parts.estimate, parts.seconds)
    if not path.exists():
        _lay_out(folder, parts, positions, path)
    check_regular(path)
    atoms = np.load(path, mmap_mode="r")
    if atoms.shape != (positions, parts.ground_rules) or atoms.dtype != np.int64:
        raise ValueError(f"shape of {path.name}")
    return GroundRules(rule, atoms.T, parts.estimate, parts.seconds)


def _lay_out(folder: Path, parts: RuleParts, positions: int, path: Path) -> None:
    """The files of a rule as one array on disk, some rows at a time."""
    path.parent.mkdir(exist_ok=True)
    with new_file(path) as laid:
        array = np.lib.format.open_memmap(laid.name, "w+", np.int64, (positions, parts.ground_rules))
        row = 0
        for name, checksum in parts.files:
            file = folder / parts.folder / name
            if _checksum(file) != checksum:
                raise ValueError(f"checksum of {name}")
            with pq.ParquetFile(file) as opened:
                for batch in opened.iter_batches(ROWS_AT_ONCE, columns=[f"a{i}" for i in range(positions)]):
                    for i, column in enumerate(batch.columns):
                        array[i, row : row + len(batch)] = column.to_numpy()
                    row += len(batch)
        if row != parts.ground_rules:
            raise ValueError(f"{row} rows of {parts.ground_rules}")
        array.flush()


@dataclass(frozen=True)
class KeptGrounder:
    """A strategy whose grounding was made before, by whatever engine, and is kept in a folder."""

    grounder: Grounder
    folder: Path

    @property
    def reads_evidence(self) -> bool:
        """As the strategy does."""
        return self.grounder.reads_evidence

    def __repr__(self) -> str:
        """As the strategy: where a grounding is kept makes no difference."""
        return repr(self.grounder)

    def ground(self, store: Store, queries: Codes | None = None, progress: Progress = no_progress) -> Grounding:
        """The grounding that is kept; where none is, or that of something else, it is made anew."""
        progress("ground", 0, 0)
        kept = read_partitioned(self.folder, store.knowledge, self.grounder) if is_partitioned(self.folder) else None
        return self.grounder.ground(store, queries, progress) if kept is None else kept
