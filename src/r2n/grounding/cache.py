"""Rules -> ground rules: a grounding written to Parquet, one file a rule, and found again by its fingerprint."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from r2n.errors import CheckpointError, ConfigError
from r2n.grounding.ground_rules import Grounder, Grounding, GroundRules
from r2n.knowledge.herbrand import Codes
from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.logic.theory import Rule, Theory
from r2n.whole_files import new_folder, read_file

FORMAT = 2
MANIFEST = "grounding.json"


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


def write_grounding(grounding: Grounding, folder: Path, digest: str) -> None:
    """Write the grounding into `folder`, in place of an earlier one; the folder appears only when all is written."""
    try:
        _write_grounding(grounding, folder, digest)
    except OSError as error:
        raise ConfigError(
            f"the grounding cannot be written to {str(folder)!r}: {error.strerror or error}", hint="give another --out"
        ) from error


def _write_grounding(grounding: Grounding, folder: Path, digest: str) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    if folder.exists() and any(folder.iterdir()) and not (folder / MANIFEST).exists():
        raise CheckpointError(f"{folder} holds something that is no grounding", hint="give another --out folder")
    with new_folder(folder) as work:
        rules = [_write_rule(part, work / f"rule_{i}.parquet") for i, part in enumerate(grounding.ground_rules)]
        manifest = {"format": FORMAT, "fingerprint": digest, "rules": rules, "sha256": _whole(digest, rules)}
        (work / MANIFEST).write_text(json.dumps(manifest, indent=1), "utf-8")


def _whole(digest: str, rules: list[Any]) -> str:
    """One checksum over all that the manifest says."""
    return hashlib.sha256(json.dumps([digest, rules], sort_keys=True).encode()).hexdigest()


def _write_rule(part: GroundRules, path: Path) -> dict[str, object]:
    columns = {f"a{i}": np.ascontiguousarray(part.atoms[:, i]) for i in range(part.atoms.shape[1])}
    pq.write_table(pa.table(columns), path, compression="zstd")
    return {
        "name": part.rule.name,
        "file": path.name,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "ground_rules": len(part),
        "estimate": part.estimate,
        "seconds": part.seconds,
        "shape": part.shape,
    }


def read_grounding(folder: Path, theory: Theory, digest: str) -> Grounding | None:
    """The grounding in `folder` if its fingerprint is `digest`, else None; a damaged one is refused."""
    try:
        if not (folder / MANIFEST).exists():
            return None
    except OSError as error:
        raise ConfigError(f"{str(folder)!r} is no folder: {error.strerror}", hint="give another --out") from error
    hint = f"delete {folder} and ground again"
    try:
        manifest = json.loads(read_file(folder / MANIFEST))
        if manifest["format"] != FORMAT or manifest["fingerprint"] != digest:
            return None
        entries = manifest["rules"]
        if manifest["sha256"] != _whole(digest, entries):
            raise ValueError("checksum of the manifest")
        parts = zip(theory.rules, entries, strict=True)
        return Grounding(tuple(_read_rule(folder, rule, entry) for rule, entry in parts))
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise CheckpointError(f"the grounding in {folder} is damaged", hint=hint) from error


def _read_rule(folder: Path, rule: Rule, entry: dict[str, Any]) -> GroundRules:
    path = folder / entry["file"]
    if hashlib.sha256(read_file(path)).hexdigest() != entry["sha256"]:
        raise ValueError(f"checksum of {path.name}")
    table = pq.read_table(path)
    atoms = np.stack([column.to_numpy() for column in table.columns]).T
    shape = None if entry["shape"] is None else tuple(entry["shape"])
    return GroundRules(rule, atoms, entry["estimate"], entry["seconds"], shape)
