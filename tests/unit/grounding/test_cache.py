"""Groundings on disk: whole and in parts, damaged ones, and what they depend on."""

import json
from pathlib import Path

import numpy as np
import pytest

from r2n.errors import CheckpointError
from r2n.grounding.cache import (
    ARRAYS,
    MANIFEST,
    KeptGrounder,
    content_of,
    fingerprint,
    is_partitioned,
    read_grounding,
    read_partitioned,
    write_grounding,
    xxhash64,
)
from r2n.grounding.full import FullGrounder
from r2n.grounding.ground_rules import Grounding
from r2n.grounding.known_body import KnownBodyGrounder
from r2n.grounding.store import Store
from tests.unit.grounding.parts import write_parts
from tests.unit.grounding.small_knowledge import THEORY, knowledge

RULES = "rule r: smokes(x) & knows(x, y) -> smokes(y)\nrule s: smokes(x) -> takes(x, y)\n"
KB = knowledge(RULES, "knows(ann,bob)")
GROUNDING = FullGrounder().ground(Store(KB))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_grounding(GROUNDING, tmp_path / "deep" / "out", "digest")
    found = read_grounding(tmp_path / "deep" / "out", KB.theory, "digest")
    assert found is not None
    for ours, theirs in zip(GROUNDING.ground_rules, found.ground_rules, strict=True):
        np.testing.assert_array_equal(ours.atoms, theirs.atoms)
        assert (ours.rule, ours.estimate, ours.shape) == (theirs.rule, theirs.estimate, theirs.shape)
    assert read_grounding(tmp_path / "deep" / "out", KB.theory, "other") is None
    assert read_grounding(tmp_path, KB.theory, "digest") is None


def test_an_earlier_grounding_is_replaced_whole(tmp_path: Path) -> None:
    write_grounding(GROUNDING, tmp_path / "out", "first")
    smaller = Grounding(GROUNDING.ground_rules[:1])
    write_grounding(smaller, tmp_path / "out", "second")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [MANIFEST, "rule_0.parquet"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_somebody_elses_folder_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(CheckpointError, match="no grounding"):
        write_grounding(GROUNDING, tmp_path, "digest")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("damage", ["truncate", "alter", "remove", "manifest"])
def test_a_damaged_grounding_is_refused(damage: str, tmp_path: Path) -> None:
    write_grounding(GROUNDING, tmp_path / "out", "digest")
    path = tmp_path / "out" / "rule_1.parquet"
    content = bytearray(path.read_bytes())
    if damage == "truncate":
        path.write_bytes(content[:-9])
    elif damage == "alter":
        content[20] ^= 255
        path.write_bytes(content)
    elif damage == "remove":
        path.unlink()
    else:
        manifest = json.loads((tmp_path / "out" / MANIFEST).read_text())
        del manifest["rules"][0]["sha256"]
        (tmp_path / "out" / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(CheckpointError, match=r"damaged\n  delete"):
        read_grounding(tmp_path / "out", KB.theory, "digest")


def test_the_fingerprint_tells_budgets_apart() -> None:
    assert len({fingerprint(KB, FullGrounder(limit)) for limit in (7, 8, 7)}) == 2


PARTLY = "rule r: smokes(x) & knows(x, y) -> smokes(y)\nrule s: takes(x, y) -> smokes(x)\n"
KNOWN = knowledge(PARTLY, "smokes(ann) smokes(bob) knows(ann,bob) knows(ann,cy) knows(bob,cy)")
GROUNDER = KnownBodyGrounder()


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    folder = tmp_path / "kept"
    write_parts(GROUNDER.ground(Store(KNOWN)), folder, content_of(KNOWN).digest(KNOWN.theory, GROUNDER))
    return folder


def rows(grounding: Grounding) -> list[list[list[int]]]:
    return [part.atoms.tolist() for part in grounding.ground_rules]


def test_what_is_read_is_what_was_made_and_stays_on_disk(kept: Path) -> None:
    assert is_partitioned(kept)
    for _ in range(2):  # from the files, and from the arrays beside them
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


@pytest.mark.parametrize("damage", ["part", "manifest", "missing"])
def test_damaged_parts_are_refused(kept: Path, damage: str) -> None:
    part = kept / "rule=0" / "part-0.parquet"
    if damage == "part":
        part.write_bytes(part.read_bytes()[:-1] + b"x")
    elif damage == "missing":
        part.unlink()
    else:
        manifest = json.loads((kept / MANIFEST).read_text())
        manifest["rules"][0][3] = 7
        (kept / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(CheckpointError, match="is damaged"):
        read_partitioned(kept, KNOWN, GROUNDER)
    assert not (kept / ARRAYS).exists() or not list((kept / ARRAYS).iterdir())


def test_a_folder_of_something_else_holds_none(tmp_path: Path) -> None:
    assert not is_partitioned(tmp_path)
    (tmp_path / MANIFEST).write_text("[]")
    assert not is_partitioned(tmp_path)


SPARK = (-5252525462095825812, -7001672635703045582, 3858142552250413010, -8319354198352958120)
FACTS = "smokes(ann) knows(ann,bob)"


def digest(facts: str = FACTS, false: str = "", rules: str = "", theory: str = THEORY) -> str:
    known = knowledge(rules, facts, false, theory)
    return content_of(known).digest(known.theory, KnownBodyGrounder())


def test_the_hash_is_that_of_spark() -> None:
    """Values that Spark 4 gives for SELECT xxhash64(0L), xxhash64(1L), xxhash64(-1L), xxhash64(3L, 5L)."""
    hashes = xxhash64([np.array([0, 1, -1])]).view(np.int64).tolist()
    assert hashes == [SPARK[0], SPARK[1], SPARK[2]]
    assert xxhash64([np.array([3]), np.array([5])]).view(np.int64).tolist() == [SPARK[3]]


@pytest.mark.parametrize(
    "other",
    [
        digest("smokes(bob) knows(ann,bob)"),
        digest("smokes(ann)"),
        digest("smokes(ann)", "knows(ann,bob)"),
        digest(rules="rule r: smokes(x) -> smokes(x)\n"),
        digest(theory=THEORY.replace("tea", "wine")),
    ],
)
def test_whatever_differs_changes_it(other: str) -> None:
    assert other != digest() == digest()


def test_so_does_another_strategy() -> None:
    known = knowledge("", FACTS)
    content = content_of(known)
    assert content.digest(known.theory, KnownBodyGrounder()) != content.digest(known.theory, FullGrounder())
