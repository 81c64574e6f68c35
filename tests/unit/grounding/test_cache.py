"""A grounding on disk."""

import json
from pathlib import Path

import numpy as np
import pytest

import r2n
from r2n.errors import CheckpointError
from r2n.grounding.cache import MANIFEST, fingerprint, read_grounding, write_grounding
from tests.unit.grounding.small_knowledge import codes, knowledge

RULES = "rule r: smokes(x) & knows(x, y) -> smokes(y)\nrule s: smokes(x) -> takes(x, y)\n"
KB = knowledge(RULES, "knows(ann,bob)")
GROUNDING = r2n.FullGrounder().ground(r2n.Store(KB))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_grounding(GROUNDING, tmp_path / "deep" / "out", "digest")
    found = read_grounding(tmp_path / "deep" / "out", KB.theory, "digest")
    assert found is not None
    for ours, theirs in zip(GROUNDING.ground_rules, found.ground_rules, strict=True):
        np.testing.assert_array_equal(ours.atoms, theirs.atoms)
        assert (ours.rule, ours.estimate, ours.shape) == (theirs.rule, theirs.estimate, theirs.shape)


def test_another_fingerprint_or_no_folder_is_none(tmp_path: Path) -> None:
    assert read_grounding(tmp_path, KB.theory, "digest") is None
    write_grounding(GROUNDING, tmp_path / "out", "digest")
    assert read_grounding(tmp_path / "out", KB.theory, "other") is None


def test_an_earlier_grounding_is_replaced_whole(tmp_path: Path) -> None:
    write_grounding(GROUNDING, tmp_path / "out", "first")
    smaller = r2n.Grounding(GROUNDING.ground_rules[:1])
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


def test_the_fingerprint_tells_apart_all_that_matters() -> None:
    grounder = r2n.FullGrounder()
    prints = [
        fingerprint(KB, grounder),
        fingerprint(KB, r2n.FullGrounder(7)),
        fingerprint(KB, r2n.KnownBodyGrounder()),
        fingerprint(KB, grounder, codes(KB, "smokes(ann)")),
        fingerprint(knowledge(RULES, "knows(bob,ann)"), grounder),
        fingerprint(knowledge(RULES, "", "knows(ann,bob)"), grounder),
        fingerprint(knowledge(RULES.replace("-> smokes(y)", "-> smokes(x)"), "knows(ann,bob)"), grounder),
    ]
    assert len(set(prints)) == len(prints)
    assert fingerprint(knowledge(RULES, "knows(ann,bob)"), grounder) == prints[0]
