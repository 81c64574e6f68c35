"""Parts of answers: kept, found again, joined into one file; never half a file."""

import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from r2n.errors import CheckpointError, ConfigError
from r2n.model.jobs import AnswerParts, file_digest

ASKED = {"queries": "q.tsv"}


def answers(rows: list[int], *arguments: str, label: bool | None = None) -> pa.Table:
    count = len(rows)
    columns = {"row": rows, "rank": [1] * count, "predicate": ["p"] * count}
    columns |= {f"argument_{i + 1}": [name] * count for i, name in enumerate(arguments)}
    columns |= {name: [0.5] * count for name in ("probability", "network", "logit")}
    columns |= {name: [True] * count for name in ("known", "closed", "reached")}
    return pa.table({**columns, "label": pa.array([label] * count, pa.bool_())})


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".tsv", ".jsonl", ".json"])
def test_parts_become_one_file_with_the_columns_of_all(ending: str, tmp_path: Path) -> None:
    parts = AnswerParts(tmp_path / f"a{ending}")
    with parts.opened(ASKED) as before:
        assert before == 0
        parts.keep(1, answers([3], "a", "b", label=False))
        parts.keep(0, answers([1, 2], "a"))
        assert parts.join() == 3
    assert [path.name for path in tmp_path.iterdir()] == [f"a{ending}"]
    frame = {
        ".parquet": lambda: pd.read_parquet(parts.file),
        ".csv": lambda: pd.read_csv(parts.file),
        ".tsv": lambda: pd.read_csv(parts.file, sep="\t"),
        ".jsonl": lambda: pd.read_json(parts.file, lines=True),
        ".json": lambda: pd.read_json(parts.file),
    }[ending]()
    assert frame["row"].tolist() == [1, 2, 3]
    assert list(frame.columns)[:5] == ["row", "rank", "predicate", "argument_1", "argument_2"]
    assert frame["argument_2"].isna().tolist() == [True, True, False]
    assert list(frame.columns)[-1] == "label"


def test_labels_that_are_all_true_are_not_told(tmp_path: Path) -> None:
    parts = AnswerParts(tmp_path / "a.parquet")
    with parts.opened(ASKED):
        parts.keep(0, answers([1], "a", label=True))
        parts.join()
    assert "label" not in pd.read_parquet(parts.file).columns


def test_what_was_done_is_found_again_and_what_was_asked_otherwise_is_not(tmp_path: Path) -> None:
    parts = AnswerParts(tmp_path / "a.parquet")
    with parts.opened(ASKED):  # and no more
        parts.keep(0, answers([1], "a"))
    assert not parts.file.exists()
    with parts.opened(ASKED) as before:
        assert before == 1
        with pytest.raises(ConfigError, match=r"is at work in .*\.a\.parquet\.parts"), parts.opened(ASKED):
            pass
    with parts.opened({"queries": "other.tsv"}) as before:
        assert before == 0
    assert list(tmp_path.iterdir()) == []  # nothing was done, nothing is left


def test_a_damaged_part_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    parts = AnswerParts(tmp_path / "a.parquet")
    with parts.opened(ASKED):
        parts.keep(0, answers([1], "a"))
        parts.path(0).write_bytes(b"no Parquet")
        with pytest.raises(CheckpointError, match=r"a part in .* is damaged"):
            parts.join()
    assert [path.name for path in tmp_path.iterdir()] == [parts.folder.name]
    assert json.loads((parts.folder / "manifest.json").read_text())["queries"] == "q.tsv"


def test_a_file_in_the_way_and_digests(tmp_path: Path) -> None:
    parts = AnswerParts(tmp_path / "a.parquet")
    parts.folder.write_text("in the way")
    with pytest.raises(ConfigError, match="cannot be written"), parts.opened(ASKED):
        pass
    assert file_digest(parts.folder) != file_digest(Path(__file__))
