"""Groundings on disk: what is read, damaged ones, and what they depend on."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from r2n.errors import CheckpointError
from r2n.grounding.cache import (
    ARRAYS,
    MANIFEST,
    KeptGrounder,
    RuleParts,
    fingerprint,
    read_grounding,
    read_partitioned,
    write_grounding,
    write_manifest,
    xxhash64,
)
from r2n.grounding.full import FullGrounder, KnownBodyGrounder
from r2n.grounding.ground_rules import Grounding
from r2n.grounding.store import Store
from tests.unit.grounding.small_knowledge import knowledge

RULES = "rule r: smokes(x) & knows(x, y) -> smokes(y)\nrule s: smokes(x) -> takes(x, y)\n"
KB = knowledge(RULES, "knows(ann,bob)")
GROUNDING = FullGrounder().ground(Store(KB))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_grounding(GROUNDING, tmp_path / "deep" / "out", "digest")
    found = read_grounding(tmp_path / "deep" / "out", KB.theory, "digest")
    assert found is not None
    for ours, theirs in zip(GROUNDING.ground_rules, found.ground_rules, strict=True):
        np.testing.assert_array_equal(ours.atoms, theirs.atoms)
        assert (ours.rule, ours.shape) == (theirs.rule, theirs.shape)
    assert read_grounding(tmp_path / "deep" / "out", KB.theory, "other") is None
    assert read_grounding(tmp_path, KB.theory, "digest") is None


def test_an_earlier_grounding_is_replaced_and_nothing_else_is(tmp_path: Path) -> None:
    write_grounding(GROUNDING, tmp_path / "out", "first")
    write_grounding(Grounding(GROUNDING.ground_rules[:1]), tmp_path / "out", "second")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [MANIFEST, "rule=0"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    (tmp_path / "out" / MANIFEST).rename(tmp_path / "out" / "thesis.tex")
    with pytest.raises(CheckpointError, match="no grounding"):
        write_grounding(GROUNDING, tmp_path / "out", "digest")
    assert (tmp_path / "out" / "thesis.tex").exists()


PARTLY = "rule r: smokes(x) & knows(x, y) -> smokes(y)\nrule s: takes(x, y) -> smokes(x)\n"
KNOWN = knowledge(PARTLY, "smokes(ann) smokes(bob) knows(ann,bob) knows(ann,cy) knows(bob,cy)")
GROUNDER = KnownBodyGrounder()


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A grounding as Spark writes it, each rule in two files."""
    rules = []
    for i, part in enumerate(GROUNDER.ground(Store(KNOWN)).ground_rules):
        own, half = tmp_path / "kept" / f"rule={i}", (len(part) + 1) // 2
        own.mkdir(parents=True)
        for number, rows in enumerate((part.atoms[:half], part.atoms[half:])):
            columns = {f"a{j}": np.ascontiguousarray(rows[:, j]) for j in range(rows.shape[1])}
            pq.write_table(pa.table(columns), own / f"part-{number}.parquet")
        rules.append(RuleParts.from_folder(own, part.rule.name, part.seconds))
    write_manifest(tmp_path / "kept", fingerprint(KNOWN, GROUNDER), rules)
    return tmp_path / "kept"


def rows(grounding: Grounding) -> list[list[list[int]]]:
    return [part.atoms.tolist() for part in grounding.ground_rules]


def test_what_is_read_is_what_was_made_and_stays_on_disk(kept: Path) -> None:
    for _ in range(2):  # from the files, and from the arrays made of them
        found = read_partitioned(kept, KNOWN, GROUNDER)
        assert found is not None
        assert rows(found) == rows(GROUNDER.ground(Store(KNOWN)))
        assert isinstance(found.ground_rules[0].atoms.base, np.memmap)
    assert len(list((kept / ARRAYS).iterdir())) == 1, "a rule without ground rules needs none"


def test_of_other_facts_or_another_strategy_it_is_not_taken(kept: Path) -> None:
    other = knowledge(PARTLY, "smokes(ann) knows(ann,bob)")
    assert read_partitioned(kept, other, GROUNDER) is None
    assert read_partitioned(kept, KNOWN, KnownBodyGrounder(max_groundings=1)) is None
    grounder = KeptGrounder(GROUNDER, kept)
    assert rows(grounder.ground(Store(other))) == rows(GROUNDER.ground(Store(other)))
    assert repr(grounder) == repr(GROUNDER)
    assert grounder.reads_evidence
    assert isinstance(grounder.ground(Store(KNOWN)).ground_rules[0].atoms.base, np.memmap)


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("damage", ["truncate", "alter", "missing", "count", "keys", "none"])
def test_a_damaged_grounding_is_refused(kept: Path, damage: str, on_disk: bool) -> None:
    part, manifest = kept / "rule=0" / "part-0.parquet", json.loads((kept / MANIFEST).read_text())
    content = bytearray(part.read_bytes())
    content[20] ^= 255
    if damage in ("truncate", "alter"):
        part.write_bytes(content if damage == "alter" else part.read_bytes()[:-9])
    elif damage == "missing":
        part.unlink()
    elif damage == "count":
        manifest["rules"][0][3] = 7
    elif damage == "keys":
        del manifest["rules"]
    (kept / MANIFEST).write_text(json.dumps([] if damage == "none" else manifest))
    digest = fingerprint(KNOWN, GROUNDER)
    with pytest.raises(CheckpointError, match=r"is damaged\n  delete"):
        read_grounding(kept, KNOWN.theory, digest, on_disk=on_disk)
    assert not (kept / ARRAYS).exists() or not list((kept / ARRAYS).iterdir())


def test_the_hash_is_that_of_spark() -> None:
    """Values that Spark 4 gives for SELECT xxhash64(0L), xxhash64(1L), xxhash64(-1L), xxhash64(3L, 5L)."""
    hashes = xxhash64([np.array([0, 1, -1])]).view(np.int64).tolist()
    assert hashes == [-5252525462095825812, -7001672635703045582, 3858142552250413010]
    assert xxhash64([np.array([3]), np.array([5])]).view(np.int64).tolist() == [-8319354198352958120]
