"""Groundings on disk: fingerprints, and Parquet files for each rule."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from jaxtyping import Int64

from r2n.data.herbrand import Codes
from r2n.data.knowledge_base import KnowledgeBase
from r2n.errors import CheckpointError, ConfigError
from r2n.files import check_regular, new_file, new_folder, read_file
from r2n.grounding.ground_rules import Grounder, Grounding, GroundRules
from r2n.grounding.store import Store
from r2n.logic.theory import Theory
from r2n.progress import Progress, no_progress

FORMAT = "parts-3"
MANIFEST = "grounding.json"
ARRAYS = "_arrays"
ROWS_AT_ONCE = 2**20

Tally = tuple[int, int]
"""The number of rows, and the exclusive or of their hashes."""

_SEED = 42  # Spark's, of xxhash64
_PRIMES = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def digest_of_tallies(
    theory: Theory,
    grounder: Grounder,
    constants: Tally,
    domains: list[Tally],
    known: dict[tuple[int, bool], Tally],
    more: Sequence[Tally] = (),
) -> str:
    """A digest of theory and strategy, and of the tallies of constants (by name), domains (by id) and known atoms."""
    found = [[p, truth, *tally] for (p, truth), tally in sorted(known.items()) if tally[0]]
    content = [repr(grounder), str(theory), constants, domains, found, *more]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def fingerprint(knowledge: KnowledgeBase, grounder: Grounder, *queries: Codes) -> str:
    """A digest of all that a grounding depends on; without queries and candidates, Spark finds the same."""
    language, names = knowledge.language, 0
    for name in language.constants:
        names ^= int(hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[:15], 16)

    def tally(rows: np.ndarray) -> Tally:
        hashes = xxhash64(list(rows.T))
        return len(rows), int(np.bitwise_xor.reduce(hashes.view(np.int64), initial=0))

    known = {}
    for p, predicate in enumerate(language.predicates):
        known[p, True] = tally(knowledge.facts(predicate))
        known[p, False] = tally(knowledge.false_facts(predicate))
    domains = [tally(language.members(domain)[:, None]) for domain in language.domains]
    candidates = [codes for _, codes in sorted(knowledge.candidates.items())]
    more = [tally(codes[:, None]) for codes in (*candidates, *queries)]
    return digest_of_tallies(knowledge.theory, grounder, (len(language.constants), names), domains, known, more)


def xxhash64(columns: Sequence[np.ndarray]) -> np.ndarray:
    """The hash of each row of 64-bit integers, as Spark's function of this name gives it; uint64."""
    one, two, three, four, five = map(np.uint64, _PRIMES)

    def rotated(values: np.ndarray, by: int) -> np.ndarray:
        return (values << np.uint64(by)) | (values >> np.uint64(64 - by))

    hashes = np.full(len(columns[0]), _SEED, np.uint64)
    for column in columns:
        values = np.ascontiguousarray(column, np.int64).view(np.uint64)
        hashes = (hashes + five + np.uint64(8)) ^ (rotated(values * two, 31) * one)
        hashes = rotated(hashes, 27) * one + four
        hashes = (hashes ^ (hashes >> np.uint64(33))) * two
        hashes = (hashes ^ (hashes >> np.uint64(29))) * three
        hashes = hashes ^ (hashes >> np.uint64(32))
    return hashes


@contextmanager
def opened_for_writing(folder: Path) -> Iterator[None]:
    """Refuse a folder that has other content than a grounding, and one that cannot be written."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        if folder.exists() and any(folder.iterdir()) and not (folder / MANIFEST).exists():
            raise CheckpointError(f"{folder} holds something that is no grounding", hint="give another --out folder")
        yield
    except OSError as error:
        what = f"the grounding cannot be written to {str(folder)!r}: {error.strerror or error}"
        raise ConfigError(what, hint="give another --out") from error


@dataclass(frozen=True, slots=True)
class RuleParts:
    """The entry of a rule in the manifest: the files of its ground rules, each with its checksum, and their number."""

    name: str
    folder: str
    files: Sequence[Sequence[str]]
    ground_rules: int
    seconds: float
    shape: Sequence[int] | None = None

    @classmethod
    def from_folder(cls, path: Path, name: str, seconds: float, shape: Sequence[int] | None = None) -> "RuleParts":
        """The entry of a rule whose ground rules are the Parquet files of a folder, in the order of their names."""
        files = sorted(path.glob("*.parquet"))
        rows = sum(pq.read_metadata(file).num_rows for file in files)
        return cls(name, path.name, [(file.name, _checksum(file)) for file in files], rows, seconds, shape)


def write_grounding(grounding: Grounding, folder: Path, digest: str) -> None:
    """Write the grounding into `folder`, in place of an earlier one; the folder appears only when all is written."""
    with opened_for_writing(folder), new_folder(folder) as work:
        rules = []
        for i, part in enumerate(grounding.ground_rules):
            path = work / f"rule={i}"
            path.mkdir()
            columns = {f"a{k}": np.ascontiguousarray(column) for k, column in enumerate(part.atoms.T)}
            pq.write_table(pa.table(columns), path / f"rule_{i}.parquet", compression="zstd")
            rules.append(RuleParts.from_folder(path, part.rule.name, part.seconds, part.shape))
        write_manifest(work, digest, rules)


def write_manifest(folder: Path, digest: str, rules: Sequence[RuleParts]) -> None:
    """Write the manifest of a grounding, when all of it is in the folder."""
    entries = [astuple(rule) for rule in rules]
    manifest = {"format": FORMAT, "fingerprint": digest, "rules": entries}
    manifest["sha256"] = _manifest_checksum(digest, entries)
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1), "utf-8")


def _manifest_checksum(digest: str, rules: list[Any]) -> str:
    return hashlib.sha256(json.dumps([digest, rules], sort_keys=True).encode()).hexdigest()


def _checksum(path: Path) -> str:
    check_regular(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_grounding(folder: Path, theory: Theory, digest: str, *, on_disk: bool = False) -> Grounding | None:
    """The grounding in `folder` if its fingerprint is `digest`, else None; a damaged one is refused.

    `on_disk`: its ground rules are arrays on disk, which are written there at the first read.
    """
    try:
        if not (folder / MANIFEST).exists():
            return None
    except OSError as error:
        raise ConfigError(f"{str(folder)!r} is no folder: {error.strerror}", hint="give another --out") from error
    try:
        manifest = json.loads(read_file(folder / MANIFEST))
        if manifest["format"] != FORMAT or manifest["fingerprint"] != digest:
            return None
        entries = manifest["rules"]
        if manifest["sha256"] != _manifest_checksum(digest, entries):
            raise ValueError("checksum of the manifest")
        found = []
        for rule, entry in zip(theory.rules, entries, strict=True):
            parts = RuleParts(*entry)
            if parts.ground_rules and on_disk:
                atoms = _array_on_disk(folder, parts, len(rule.atoms)).T
            else:
                atoms = np.empty((len(rule.atoms), parts.ground_rules), np.int64).T
                _fill(atoms.T, folder, parts)
            shape = None if parts.shape is None else tuple(parts.shape)
            found.append(GroundRules(rule, atoms, parts.seconds, shape))
        return Grounding(tuple(found))
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        hint = f"delete {folder} and ground again"
        raise CheckpointError(f"the grounding in {folder} is damaged", hint=hint) from error


def read_partitioned(folder: Path, knowledge: KnowledgeBase, grounder: Grounder) -> Grounding | None:
    """All ground rules of a knowledge base, which Spark has written into a folder; None if it has not."""
    return read_grounding(folder, knowledge.theory, fingerprint(knowledge, grounder), on_disk=True)


def _array_on_disk(folder: Path, parts: RuleParts, positions: int) -> Int64[np.ndarray, "positions ground_rules"]:
    """The ground rules of a rule as an array on disk, which is written at the first read, some rows at a time."""
    files = hashlib.sha256(json.dumps(parts.files).encode()).hexdigest()[:16]
    path, shape = folder / ARRAYS / f"{parts.folder.replace('=', '_')}-{files}.npy", (positions, parts.ground_rules)
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        with new_file(path) as temporary:
            array = np.lib.format.open_memmap(temporary.name, "w+", np.int64, shape)
            _fill(array, folder, parts)
            array.flush()
    check_regular(path)
    found = np.load(path, mmap_mode="r")
    if found.shape != shape or found.dtype != np.int64:
        raise ValueError(f"shape of {path.name}")
    return found


def _fill(array: Int64[np.ndarray, "positions ground_rules"], folder: Path, parts: RuleParts) -> None:
    """Read the files of a rule into an array; a wrong checksum or number of rows is a ValueError."""
    row = 0
    for name, checksum in parts.files:
        file = folder / parts.folder / name
        if _checksum(file) != checksum:
            raise ValueError(f"checksum of {name}")
        with pq.ParquetFile(file) as opened:
            for batch in opened.iter_batches(ROWS_AT_ONCE, columns=[f"a{i}" for i in range(len(array))]):
                for i, column in enumerate(batch.columns):
                    array[i, row : row + len(batch)] = column.to_numpy()
                row += len(batch)
    if row != parts.ground_rules:
        raise ValueError(f"{row} rows of {parts.ground_rules}")


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
        return repr(self.grounder)

    def ground(self, store: Store, queries: Codes | None = None, progress: Progress = no_progress) -> Grounding:
        """The grounding in the folder; if there is none, or one of something else, it is made."""
        progress("ground", 0, 0)
        kept = None if store.asks_closed else read_partitioned(self.folder, store.knowledge, self.grounder)
        return self.grounder.ground(store, queries, progress) if kept is None else kept
