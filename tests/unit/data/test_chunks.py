"""A table read part by part holds what it holds read whole, and its errors name the same lines."""

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from r2n.data import text_tables
from r2n.data.tables import Facts, Table, read_fact_chunks, read_facts
from r2n.errors import DataError

LINES = [f"c{i}\t{'p' if i % 3 else 'q'}\tc{i + 1}" for i in range(11)]
TSV = "\n".join([*LINES[:4], "", *LINES[4:]])  # a blank line, and no end of the last
CSV = 'head,relation,tail\na,p,"b, c"\n"x ""y""\nz",q,c\n\nd,p,e\r\nf,q,g\n'
JSONL = '{"head": "a", "relation": "p", "tail": "b"}\n{"head": "a", "relation": "q", "tail": "c"}\n'


def stated(facts: list[Facts]) -> list[tuple[int, str, tuple[str, ...], bool]]:
    """Each fact with its row, in the order of the source."""
    found = [
        (int(part.rows[i]), part.predicate, tuple(column[i].as_py() for column in part.arguments), bool(part.truth[i]))
        for part in facts
        for i in range(len(part))
    ]
    return sorted(found)


def written(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    content = text.encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize(
    ("name", "text"),
    [("a.tsv", TSV), ("a.tsv.gz", TSV), ("b.csv", CSV), ("c.tsv", "\ufeff" + TSV + "\n"), ("d.jsonl", JSONL)],
)
def test_the_parts_are_the_whole(
    name: str, text: str, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_tables, "BLOCK", 7)
    table = Table(written(tmp_path, name, text))
    parts = list(read_fact_chunks(table, size))
    assert stated([facts for part in parts for facts in part]) == stated(list(read_facts(table).facts))
    rows = [int(row) for part in parts for facts in part[:1] for row in facts.rows[:1]]
    assert rows == sorted(rows)
    assert len(parts) > 1 or size > 1
    assert len(parts) == 1 or size < 100


@pytest.mark.parametrize("size", [1, 4])
def test_parquet_is_read_by_rows(size: int, tmp_path: Path) -> None:
    rows = [line.split("\t") for line in LINES]
    columns = {name: [row[i] for row in rows] for i, name in enumerate(("head", "relation", "tail"))}
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({**columns, "label": [i % 2 for i in range(len(rows))]}), path)
    parts = list(read_fact_chunks(Table(path), size))
    assert len(parts) == -(-len(rows) // size)
    assert stated([facts for part in parts for facts in part]) == stated(list(read_facts(Table(path)).facts))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        list(read_fact_chunks(Table(path), size))


@pytest.mark.parametrize(
    "wrong",
    [
        "a\tp\n",  # too few columns
        "a\tp\tb\tc\td\n",
        "a\t\tb\n",  # an empty cell
        "a\tp\tb\t7\n",
    ],
)
@pytest.mark.parametrize("size", [1, 2, 50])
def test_a_wrong_row_is_named_as_where_the_file_is_read_whole(wrong: str, size: int, tmp_path: Path) -> None:
    path = written(tmp_path, "a.tsv", "\n".join(LINES) + "\n" + wrong)
    with pytest.raises(DataError) as whole:
        read_facts(Table(path))
    with pytest.raises(DataError) as caught:
        list(read_fact_chunks(Table(path), size))
    assert str(caught.value) == str(whole.value)


@pytest.mark.parametrize(
    ("name", "content"), [("a.tsv", b"a\tp\tb\n\xff\tp\tb\n"), ("a.csv", b'a,p,b\na,p,"b\n'), ("a.tsv", b"\n\r\n")]
)
def test_what_cannot_be_read_at_all(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as whole:
        read_facts(Table(tmp_path / name))
    with pytest.raises(DataError) as caught:
        list(read_fact_chunks(Table(tmp_path / name), 1))
    assert str(caught.value) == str(whole.value)


def test_tables_in_memory_are_handed_out_in_parts() -> None:
    table = Table(pa.table({"x": ["a", "b", "c"]}), "p")
    assert [[len(facts) for facts in part] for part in read_fact_chunks(table, 2)] == [[2], [1]]
    (facts,) = read_facts(table).facts
    assert facts.take(np.array([2, 0])).arguments[0].to_pylist() == ["c", "a"]
    assert list(read_fact_chunks(Table(pa.table({"x": pa.array([], pa.string())}), "p"), 2)) == []


def test_a_file_that_unpacks_to_far_more_than_it_holds_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv.gz"
    path.write_bytes(gzip.compress(bytes(2**24)) * 5)
    with pytest.raises(DataError, match="more than 100 times its size"):
        next(read_fact_chunks(Table(path), 10))
