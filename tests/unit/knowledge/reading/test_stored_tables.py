"""Parquet, SQLite and Arrow objects as columns of text."""

import datetime
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from r2n.errors import DataError
from r2n.knowledge.reading import stored_tables
from r2n.knowledge.reading.stored_tables import read_arrow, read_parquet, read_sqlite, row_location


def sqlite_file(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    return path


def test_every_type_becomes_text_and_null_stays_null() -> None:
    records = read_arrow(
        pa.table(
            {
                "integer": [1, None],
                "date": pa.array([datetime.date(2020, 2, 3)] * 2),
                "bytes": pa.array([b"caf\xc3\xa9", b"x"], pa.binary()),
                "category": pa.array(["a", "b"]).dictionary_encode(),
            }
        )
    )
    assert records.names == ("integer", "date", "bytes", "category")
    assert [column.to_pylist() for column in records.columns] == [
        ["1", None],
        ["2020-02-03", "2020-02-03"],
        ["café", "x"],
        ["a", "b"],
    ]
    assert records.rows.tolist() == [0, 1]


def test_names_that_differ_only_in_case() -> None:
    records = read_arrow(pa.table({"a": ["1"], "A": ["2"]}))
    assert [column.to_pylist() for column in records.columns] == [["1"], ["2"]]


def test_the_index_of_pandas_is_no_column() -> None:
    stored = pa.Table.from_pandas(pd.DataFrame({"a": ["x", "y"]}, index=[5, 7]), preserve_index=True)
    assert "__index_level_0__" in stored.column_names
    assert read_arrow(stored).names == ("a",)


def test_an_object_that_is_no_table() -> None:
    class Broken:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            raise ValueError("no stream today")

    with pytest.raises(DataError, match=r"Broken: this cannot be read as a table \(no stream today\)"):
        read_arrow(Broken())
    with pytest.raises(DataError, match="this cannot be read as a table"):
        read_arrow(pa.table({"a": pa.array([b"\xff"], pa.binary())}))


def test_parquet_in_a_folder_that_looks_like_a_pattern(tmp_path: Path) -> None:
    folder = tmp_path / "a=1[*]"
    folder.mkdir()
    pq.write_table(pa.table({"x": ["1", "2"]}), folder / "t.parquet")
    records = read_parquet(folder / "t.parquet")
    assert records.names == ("x",)
    assert records.columns[0].to_pylist() == ["1", "2"]


def test_row_location() -> None:
    assert str(row_location("t.parquet", 4)) == "t.parquet, row 5"


def test_sqlite_types_and_odd_names(tmp_path: Path) -> None:
    path = sqlite_file(
        tmp_path / "100% odd?#.db",
        'CREATE TABLE "my ""table""" ("a b" INTEGER, "c""d" REAL, e)',
        'INSERT INTO "my ""table""" VALUES (1, 2.5, \'x\'), (NULL, 3, CAST(\'y\' AS BLOB))',
    )
    records = read_sqlite(path, None)
    assert records.names == ("a b", 'c"d', "e")
    assert [column.to_pylist() for column in records.columns] == [["1", None], ["2.5", "3.0"], ["x", "y"]]


def test_sqlite_views_and_empty_tables(tmp_path: Path) -> None:
    path = sqlite_file(tmp_path / "t.db", "CREATE TABLE t (a, b)", "CREATE VIEW v AS SELECT b FROM t")
    assert read_sqlite(path, "v").names == ("b",)
    assert [len(column) for column in read_sqlite(path, "t").columns] == [0, 0]


def test_sqlite_which_table(tmp_path: Path) -> None:
    path = sqlite_file(tmp_path / "t.db", "CREATE TABLE edges (a)", "CREATE TABLE nodes (a)")
    with pytest.raises(DataError) as caught:
        read_sqlite(path, None)
    assert str(caught.value) == (
        f"{path}: the database has 2 tables\n  say which with `table`; the tables are: edges, nodes"
    )
    with pytest.raises(DataError) as caught:
        read_sqlite(path, "edge")
    assert str(caught.value) == (
        f"{path}: the database has no table 'edge'\n  did you mean 'edges'? the tables are: edges, nodes"
    )


def test_sqlite_text_that_is_not_utf8(tmp_path: Path) -> None:
    path = sqlite_file(tmp_path / "t.db", "CREATE TABLE t (a)", "INSERT INTO t VALUES (CAST(x'ff' AS TEXT))")
    with pytest.raises(DataError, match="this cannot be read as an SQLite database"):
        read_sqlite(path, None)


def test_sqlite_many_rows(tmp_path: Path) -> None:
    path = sqlite_file(
        tmp_path / "t.db",
        "CREATE TABLE t (a)",
        "INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 250000)"
        " SELECT i FROM n",
    )
    assert read_sqlite(path, None).columns[0].to_pylist() == [str(i) for i in range(250_001)]


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n)"


def test_an_sqlite_view_that_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that says nothing, told by its steps, and one that goes on saying more, by its rows."""
    monkeypatch.setattr(stored_tables, "MOST_STEPS", 2 * stored_tables.STEPS_AT_ONCE)
    path = sqlite_file(tmp_path / "t.db", f"CREATE VIEW silent AS {ENDLESS} SELECT count(*) AS a FROM n")
    with pytest.raises(DataError) as caught:
        read_sqlite(path, None)
    assert str(caught.value) == (
        f"{path}: the view 'silent' has not ended after 2,000,000 steps of SQLite\n"
        "  if it recurs without end, bound it; if it is only large, store its rows as a table and read that"
    )
    monkeypatch.setattr(stored_tables, "MOST_STEPS", 10**9)
    monkeypatch.setattr(stored_tables, "MANY", 200_000)
    monkeypatch.setattr(stored_tables, "MOST_ROWS_A_BYTE", 1)
    path = sqlite_file(tmp_path / "u.db", f"CREATE VIEW more AS {ENDLESS} SELECT i FROM n")
    with pytest.raises(DataError, match=r"u\.db: the view 'more' has given 300,000 rows from 4,096 bytes, and"):
        read_sqlite(path, None)


def test_an_sqlite_view_that_ends_and_a_table_are_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recursion as such is no reason to refuse; a table ends, whatever it takes."""
    monkeypatch.setattr(stored_tables, "MOST_STEPS", 2 * stored_tables.STEPS_AT_ONCE)
    path = sqlite_file(
        tmp_path / "t.db",
        f"CREATE VIEW v AS {ENDLESS.replace('FROM n', 'FROM n WHERE i < 9')} SELECT i FROM n",
        f"CREATE TABLE t AS {ENDLESS.replace('FROM n', 'FROM n WHERE i < 900000')} SELECT i FROM n",
    )
    assert read_sqlite(path, "v").columns[0].to_pylist() == [str(i) for i in range(10)]
    assert len(read_sqlite(path, "t").columns[0]) == 900_001


def test_parquet_of_far_more_rows_than_it_has_room_for_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "facts.parquet"
    same = pa.DictionaryArray.from_arrays(pa.array(np.zeros(2_000_000, np.int32)), pa.array(["a"]))
    pq.write_table(pa.table({"head": same, "relation": same, "tail": same}), path)
    with pytest.raises(DataError, match=r"2,000,000 rows in .* bytes repeat each other"):
        read_parquet(path)
