"""A grounding in parts: read as arrays that stay on disk; what is damaged or of something else."""

import json
from pathlib import Path

import numpy as np
import pytest

import r2n
from r2n.errors import CheckpointError
from r2n.grounding.cache import ARRAYS, MANIFEST, KeptGrounder, content_of, is_partitioned, read_partitioned
from r2n.grounding.known_body import KnownBodyGrounder
from r2n.grounding.store import Store
from tests.unit.grounding.parts import write_parts
from tests.unit.grounding.small_knowledge import knowledge

RULES = "rule r: smokes(x) & knows(x, y) -> smokes(y)\nrule s: takes(x, y) -> smokes(x)\n"
KB = knowledge(RULES, "smokes(ann) smokes(bob) knows(ann,bob) knows(ann,cy) knows(bob,cy)")
GROUNDER = KnownBodyGrounder()


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    folder = tmp_path / "kept"
    write_parts(GROUNDER.ground(Store(KB)), folder, content_of(KB).digest(KB.theory, GROUNDER))
    return folder


def rows(grounding: r2n.Grounding) -> list[list[list[int]]]:
    return [part.atoms.tolist() for part in grounding.ground_rules]


def test_what_is_read_is_what_was_made_and_stays_on_disk(kept: Path) -> None:
    assert is_partitioned(kept)
    for _ in range(2):  # from the files, and from the arrays beside them
        found = read_partitioned(kept, KB, GROUNDER)
        assert found is not None
        assert rows(found) == rows(GROUNDER.ground(Store(KB)))
        assert isinstance(found.ground_rules[0].atoms.base, np.memmap)
    assert len(list((kept / ARRAYS).iterdir())) == 1, "a rule without ground rules needs none"


def test_of_other_facts_or_another_strategy_it_is_not_taken(kept: Path) -> None:
    other = knowledge(RULES, "smokes(ann) knows(ann,bob)")
    assert read_partitioned(kept, other, GROUNDER) is None
    assert read_partitioned(kept, KB, KnownBodyGrounder(max_groundings=1)) is None
    grounder = KeptGrounder(GROUNDER, kept)
    assert rows(grounder.ground(Store(other))) == rows(GROUNDER.ground(Store(other)))
    assert repr(grounder) == repr(GROUNDER)
    assert grounder.reads_evidence


def test_a_kept_grounding_is_taken_in_place_of_work(kept: Path) -> None:
    found = KeptGrounder(GROUNDER, kept).ground(Store(KB))
    assert isinstance(found.ground_rules[0].atoms.base, np.memmap)


@pytest.mark.parametrize("damage", ["part", "manifest", "missing"])
def test_a_damaged_one_is_refused(kept: Path, damage: str) -> None:
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
        read_partitioned(kept, KB, GROUNDER)
    assert not (kept / ARRAYS).exists() or not list((kept / ARRAYS).iterdir())


def test_a_folder_of_something_else_holds_none(tmp_path: Path) -> None:
    assert not is_partitioned(tmp_path)
    (tmp_path / MANIFEST).write_text("[]")
    assert not is_partitioned(tmp_path)
