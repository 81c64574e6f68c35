"""Groundings on disk: fingerprints, one Parquet file per rule, and groundings in parts."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from r2n.data.herbrand import Codes
from r2n.data.knowledge_base import KnowledgeBase
from r2n.errors import CheckpointError, ConfigError
from r2n.files import check_regular, new_file, new_folder, read_file
from r2n.grounding.ground_rules import Grounder, Grounding, GroundRules
from r2n.grounding.store import Store
from r2n.logic.theory import Rule, Theory
from r2n.progress import Progress, no_progress

FORMAT = 2
FORMAT_OF_PARTS = "parts-1"
MANIFEST = "grounding.json"
ARRAYS = "_arrays"
ROWS_AT_ONCE = 2**20

Tally = tuple[int, int]
"""The number of rows, and the exclusive or of their hashes."""

_SEED = 42  # Spark's, of xxhash64
_PRIMES = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


@dataclass(frozen=True)
class Content:
    """The tallies of constants (by name), domains (by id) and known atoms (by ids, for each predicate and truth)."""

    constants: Tally
    domains: Sequence[Tally]
    known: Mapping[tuple[int, bool], Tally]

    def digest(self, theory: Theory, grounder: Grounder) -> str:
        """One digest of these, a theory and a strategy."""
        known = [[p, truth, *tally] for (p, truth), tally in sorted(self.known.items()) if tally[0]]
        content = [repr(grounder), str(theory), self.constants, list(self.domains), known]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def content_of(knowledge: KnowledgeBase) -> Content:
    """The tallies of a knowledge base in this process."""
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
    return Content((len(language.constants), names), domains, known)


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


def fingerprint(knowledge: KnowledgeBase, grounder: Grounder | None = None, queries: Codes | None = None) -> str:
    """A digest of all that a grounding or its network depends on, from theory and evidence to strategy and queries."""
    digest = hashlib.sha256(f"{FORMAT}\n{grounder!r}\n{knowledge.theory}".encode())
    digest.update(json.dumps(knowledge.language.constants).encode())
    arrays = [*knowledge.language.extensions, knowledge.evidence.atoms, knowledge.evidence.truth]
    for array in [*arrays, np.zeros(0, np.int64) if queries is None else queries]:
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    for name, features in sorted(knowledge.features.items()):
        digest.update(f"{name} {features.digest()}".encode())
    for name, codes in sorted(knowledge.candidates.items()):
        digest.update(f"candidates {name} {len(codes)}".encode())
        digest.update(np.ascontiguousarray(codes).tobytes())
    return digest.hexdigest()


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


def write_grounding(grounding: Grounding, folder: Path, digest: str) -> None:
    """Write the grounding into `folder`, in place of an earlier one; the folder appears only when all is written."""
    with opened_for_writing(folder), new_folder(folder) as work:
        entries = []
        for i, part in enumerate(grounding.ground_rules):
            path = work / f"rule_{i}.parquet"
            columns = {f"a{k}": np.ascontiguousarray(column) for k, column in enumerate(part.atoms.T)}
            pq.write_table(pa.table(columns), path, compression="zstd")
            entry = {"name": part.rule.name, "file": path.name, "sha256": _checksum(path), "ground_rules": len(part)}
            entries.append({**entry, "estimate": part.estimate, "seconds": part.seconds, "shape": part.shape})
        _write_manifest(work, FORMAT, digest, entries)


def _write_manifest(folder: Path, form: int | str, digest: str, rules: list[Any]) -> None:
    manifest = {"format": form, "fingerprint": digest, "rules": rules, "sha256": _manifest_checksum(digest, rules)}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1), "utf-8")


def _manifest_checksum(digest: str, rules: list[Any]) -> str:
    return hashlib.sha256(json.dumps([digest, rules], sort_keys=True).encode()).hexdigest()


def _checksum(path: Path) -> str:
    check_regular(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_manifest(
    folder: Path, theory: Theory, form: int | str, digest: str, read: Callable[[Path, Rule, Any], GroundRules]
) -> Grounding | None:
    """The grounding of this format and fingerprint in a folder, else None; a damaged one is refused."""
    try:
        manifest = json.loads(read_file(folder / MANIFEST))
        if manifest["format"] != form or manifest["fingerprint"] != digest:
            return None
        entries = manifest["rules"]
        if manifest["sha256"] != _manifest_checksum(digest, entries):
            raise ValueError("checksum of the manifest")
        parts = zip(theory.rules, entries, strict=True)
        return Grounding(tuple(read(folder, rule, entry) for rule, entry in parts))
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        hint = f"delete {folder} and ground again"
        raise CheckpointError(f"the grounding in {folder} is damaged", hint=hint) from error


def read_grounding(folder: Path, theory: Theory, digest: str) -> Grounding | None:
    """The grounding in `folder` if its fingerprint is `digest`, else None; a damaged one is refused."""
    try:
        if not (folder / MANIFEST).exists():
            return None
    except OSError as error:
        raise ConfigError(f"{str(folder)!r} is no folder: {error.strerror}", hint="give another --out") from error

    def read(folder: Path, rule: Rule, entry: dict[str, Any]) -> GroundRules:
        path = folder / entry["file"]
        if _checksum(path) != entry["sha256"]:
            raise ValueError(f"checksum of {path.name}")
        atoms = np.stack([column.to_numpy() for column in pq.read_table(path).columns]).T
        shape = None if entry["shape"] is None else tuple(entry["shape"])
        return GroundRules(rule, atoms, entry["estimate"], entry["seconds"], shape)

    return _read_manifest(folder, theory, FORMAT, digest, read)


@dataclass(frozen=True, slots=True)
class RuleParts:
    """The entry of a rule in the manifest: the files of its ground rules, each with its checksum, and their number."""

    name: str
    folder: str
    files: Sequence[Sequence[str]]
    ground_rules: int
    estimate: int
    seconds: float


def write_manifest(folder: Path, digest: str, rules: Sequence[RuleParts]) -> None:
    """Write the manifest of a grounding in parts, when all of it is in the folder."""
    _write_manifest(folder, FORMAT_OF_PARTS, digest, [astuple(rule) for rule in rules])


def parts_of(folder: Path) -> tuple[tuple[str, str], ...]:
    """The Parquet files of a rule, in order, each with its checksum."""
    return tuple((path.name, _checksum(path)) for path in sorted(folder.glob("*.parquet")))


def is_partitioned(folder: Path) -> bool:
    """Whether a folder holds a grounding in parts."""
    try:
        return json.loads(read_file(folder / MANIFEST)).get("format") == FORMAT_OF_PARTS
    except (OSError, ValueError, AttributeError):
        return False


def read_partitioned(folder: Path, knowledge: KnowledgeBase, grounder: Grounder) -> Grounding | None:
    """The grounding in a folder if it is that of this knowledge base, else None; a damaged one is refused."""
    digest = content_of(knowledge).digest(knowledge.theory, grounder)
    return _read_manifest(folder, knowledge.theory, FORMAT_OF_PARTS, digest, _read_parts)


def _read_parts(folder: Path, rule: Rule, entry: list[Any]) -> GroundRules:
    """The ground rules of a rule as an array on disk, which is written at the first read, some rows at a time."""
    positions, parts = len(rule.atoms), RuleParts(*entry)
    if parts.ground_rules == 0:
        return GroundRules(rule, np.zeros((0, positions), np.int64), parts.estimate, parts.seconds)
    files = hashlib.sha256(json.dumps(parts.files).encode()).hexdigest()[:16]
    path, shape = folder / ARRAYS / f"{parts.folder.replace('=', '_')}-{files}.npy", (positions, parts.ground_rules)
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        with new_file(path) as temporary:
            array, row = np.lib.format.open_memmap(temporary.name, "w+", np.int64, shape), 0
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
    check_regular(path)
    atoms = np.load(path, mmap_mode="r")
    if atoms.shape != shape or atoms.dtype != np.int64:
        raise ValueError(f"shape of {path.name}")
    return GroundRules(rule, atoms.T, parts.estimate, parts.seconds)


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
        """As the strategy: the folder makes no difference."""
        return repr(self.grounder)

    def ground(self, store: Store, queries: Codes | None = None, progress: Progress = no_progress) -> Grounding:
        """The grounding in the folder; if there is none, or one of something else, it is made."""
        progress("ground", 0, 0)
        kept = read_partitioned(self.folder, store.knowledge, self.grounder) if is_partitioned(self.folder) else None
        return self.grounder.ground(store, queries, progress) if kept is None else kept
