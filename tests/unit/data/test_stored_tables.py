"""Parquet, SQLite, PostgreSQL and Arrow objects as columns of text."""

import datetime
import socket
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from r2n.data import records as records_module
from r2n.data.records import PostgresTable, is_postgres, read_arrow
from r2n.data.tables import Table, read_fact_chunks, read_facts
from r2n.errors import ConfigError, DataError
from tests.oracles.fact_tables import read_records


def sqlite_file(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    return path


def test_every_type_becomes_text_and_null_stays_null() -> None:
    columns = {
        "integer": [1, None],
        "date": pa.array([datetime.date(2020, 2, 3)] * 2),
        "bytes": pa.array([b"caf\xc3\xa9", b"x"], pa.binary()),
        "Bytes": pa.array(["a", "b"]).dictionary_encode(),  # names may differ in case alone
    }
    records = read_arrow(pa.table(columns))
    assert records.names == tuple(columns)
    texts = [["1", None], ["2020-02-03", "2020-02-03"], ["café", "x"], ["a", "b"]]
    assert [column.to_pylist() for column in records.columns] == texts
    assert records.rows.tolist() == [0, 1]


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
    records = read_records(folder / "t.parquet")
    assert records.names == ("x",)
    assert records.columns[0].to_pylist() == ["1", "2"]


def test_sqlite_types_and_odd_names(tmp_path: Path) -> None:
    path = sqlite_file(
        tmp_path / "100% odd?#.db",
        'CREATE TABLE "my ""table""" ("a b" INTEGER, "c""d" REAL, e)',
        'INSERT INTO "my ""table""" VALUES (1, 2.5, \'x\'), (NULL, 3, CAST(\'y\' AS BLOB))',
    )
    records = read_records(path, None)
    assert records.names == ("a b", 'c"d', "e")
    assert [column.to_pylist() for column in records.columns] == [["1", None], ["2.5", "3"], ["x", "y"]]


def test_sqlite_views_and_empty_tables(tmp_path: Path) -> None:
    path = sqlite_file(tmp_path / "t.db", "CREATE TABLE t (a, b)", "CREATE VIEW v AS SELECT b FROM t")
    assert read_records(path, "v").names == ("b",)
    assert [len(column) for column in read_records(path, "t").columns] == [0, 0]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (None, "the database has 2 tables\n  say which with `table`; the tables are: edges, nodes"),
        (
            "edge",
            "the database has no table 'edge'\n  did you mean 'edges'? say which with `table`; the tables are: edges",
        ),
    ],
)
def test_sqlite_which_table(table: str | None, said: str, tmp_path: Path) -> None:
    path = sqlite_file(tmp_path / "t.db", "CREATE TABLE edges (a)", "CREATE TABLE nodes (a)")
    with pytest.raises(DataError) as caught:
        read_records(path, table)
    assert str(caught.value).startswith(f"{path}: {said}")


def test_sqlite_text_that_is_not_utf8(tmp_path: Path) -> None:
    path = sqlite_file(tmp_path / "t.db", "CREATE TABLE t (a)", "INSERT INTO t VALUES (CAST(x'ff' AS TEXT))")
    with pytest.raises(DataError, match="this cannot be read as an SQLite database"):
        read_records(path, None)


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n)"


def test_an_sqlite_view_that_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that says nothing, told by its steps, and one that goes on saying more, by its rows."""
    monkeypatch.setattr(records_module, "MOST_STEPS", 2 * records_module.STEPS_AT_ONCE)
    path = sqlite_file(tmp_path / "t.db", f"CREATE VIEW silent AS {ENDLESS} SELECT count(*) AS a FROM n")
    with pytest.raises(DataError) as caught:
        read_records(path, None)
    assert str(caught.value) == (
        f"{path}: the view 'silent' has not ended after 2,000,000 steps of SQLite\n"
        "  if it recurs without end, bound it; if it is only large, store its rows as a table and read that"
    )
    monkeypatch.setattr(records_module, "MOST_STEPS", 10**9)
    monkeypatch.setattr(records_module, "MANY", 200_000)
    monkeypatch.setattr(records_module, "MOST_ROWS_A_BYTE", 1)
    path = sqlite_file(tmp_path / "u.db", f"CREATE VIEW more AS {ENDLESS} SELECT i FROM n")
    with pytest.raises(DataError, match=r"u\.db: the view 'more' has given 300,000 rows from 4,096 bytes, and"):
        read_records(path, None)


def test_an_sqlite_view_that_ends_and_a_table_are_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recursion as such is no reason to refuse; a table ends, whatever it takes."""
    monkeypatch.setattr(records_module, "STEPS_AT_ONCE", 1_000)
    monkeypatch.setattr(records_module, "MOST_STEPS", 2_000)
    monkeypatch.setattr(records_module, "SQLITE_BATCH", 7_000)
    path = sqlite_file(
        tmp_path / "t.db",
        f"CREATE VIEW v AS {ENDLESS.replace('FROM n', 'FROM n WHERE i < 9')} SELECT i FROM n",
        f"CREATE TABLE t AS {ENDLESS.replace('FROM n', 'FROM n WHERE i < 20000')} SELECT i FROM n",
    )
    assert read_records(path, "v").columns[0].to_pylist() == [str(i) for i in range(10)]
    assert len(read_records(path, "t").columns[0]) == 20_001


def test_parquet_of_far_more_rows_than_it_has_room_for_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "facts.parquet"
    same = pa.DictionaryArray.from_arrays(pa.array(np.zeros(2_000_000, np.int32)), pa.array(["a"]))
    pq.write_table(pa.table({"head": same, "relation": same, "tail": same}), path)
    with pytest.raises(DataError, match=r"2,000,000 rows in .* bytes repeat each other"):
        read_records(path)


def stored(kind: str, table: pa.Table, path: Path) -> Table:
    """A table of facts of one predicate, in one of the forms that keep the types of numbers."""
    file = path / f"t.{kind}"
    if kind == "parquet":
        pq.write_table(table, file)
    elif kind == "json":
        file.write_text(table.to_pandas().to_json(orient="records"))
    elif kind == "sqlite":
        with closing(sqlite3.connect(file)) as connection:
            table.to_pandas().to_sql("t", connection, index=False)
    return Table(table if kind == "arrow" else file, "p", empty="skip")


@pytest.mark.parametrize("kind", ["arrow", "parquet", "sqlite", "json"])
def test_whole_numbers_are_one_constant_however_they_are_stored(kind: str, tmp_path: Path) -> None:
    """pandas makes 1.0 of an integer where another row has none."""
    table = pa.table({"a": [1.0, None, 3.0, 2.5, -0.0], "b": pa.array([1, 2, 3, 4, 5])})
    (facts,) = read_facts(stored(kind, table, tmp_path)).facts
    assert [column.to_pylist() for column in facts.arguments] == [["1", "3", "2.5", "0"], ["1", "3", "4", "5"]]


NUMBERS = pa.array([1.0, None, 100.0, 2.5])


@pytest.mark.parametrize(
    "cells",
    [
        NUMBERS.dictionary_encode(),
        NUMBERS.cast(pa.decimal128(9, 2)),
        NUMBERS.cast(pa.decimal128(9, 2)).dictionary_encode(),
        pd.Series([1.0, None, 100.0, 2.5], dtype="category"),
        pa.array([b"1", None, b"100", b"2.5"]).dictionary_encode(),
    ],
)
def test_whole_numbers_are_one_constant_in_any_encoding(cells: object) -> None:
    table = pd.DataFrame({"a": cells}) if isinstance(cells, pd.Series) else pa.table({"a": cells})
    assert read_arrow(table).columns[0].to_pylist() == ["1", None, "100", "2.5"]


def test_integers_of_pandas_with_none() -> None:
    frame = pd.DataFrame({"a": [1, None, 3], "b": ["x", "y", "z"]})
    (facts,) = read_facts(Table(frame, "p", empty="skip")).facts
    assert facts.arguments[0].to_pylist() == ["1", "3"]
    with pytest.raises(DataError, match=r"pandas.DataFrame, row 2: column 1 \(a\) is empty"):
        read_facts(Table(frame, "p"))


BIG = float(2**53)


@pytest.mark.parametrize(
    ("cells", "what"),
    [
        (pa.array([["a"], None]), r"row 1: column 1 \(c\) holds a list, no constant: \[a\]"),
        (pa.array([None, {"x": "a"}]), "row 2: .* holds a struct, no constant"),
        (pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())), "row 1: .* holds a map, no constant"),
        (pa.array([[["a"]], [[]]]), "row 1: .* holds a list"),
        (pa.array([1.0, float("nan")]), r"row 2: column 1 \(c\) holds nan, no constant"),
        (pa.array([float("-inf"), 1.0]), r"row 1: column 1 \(c\) holds -inf, no constant"),
        (pa.array([1.0, BIG]), r"row 2: column 1 \(c\) holds 9007199254740992\.0, .* lost its last digits"),
    ],
)
def test_a_cell_that_is_no_constant_is_refused_with_its_row(cells: pa.Array, what: str, tmp_path: Path) -> None:
    table = pa.table({"c": cells, "d": ["x", "y"]})
    with pytest.raises(DataError, match=what):
        read_facts(Table(table, "p", empty="skip"))
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(DataError, match=what):
        list(read_fact_chunks(Table(tmp_path / "t.parquet", "p", empty="skip"), 1))
    (facts,) = read_facts(Table(table, "p", columns=("d",))).facts  # a column that is not read may hold anything
    assert facts.arguments[0].to_pylist() == ["x", "y"]
    skipped = read_facts(Table(table, "p"), on_error="skip")
    assert len(skipped.rejected) >= 1


@pytest.mark.parametrize(
    ("cells", "what"),
    [
        (["a", 1], "pandas.DataFrame: this cannot be read as a table .*column c with type"),
        ([1, pd.NA, "a"], "column c with type object"),
        ([np.zeros(2), "a"], "column c with type object"),
        (["a", frozenset("a")], "column c with type object"),
        ([{"a"}, {"b"}], "row 1: .* holds a list"),
        ([("a",), ("b",)], "row 1: .* holds a list"),
        ([{"a": 1}, {"a": 2}], "row 1: .* holds a struct"),
    ],
)
def test_cells_of_pandas_that_are_no_text_are_refused(cells: list[object], what: str) -> None:
    with pytest.raises(DataError, match=what) as caught:
        read_facts(Table(pd.DataFrame({"c": cells}), "p"))
    assert caught.value.hint


def test_what_an_address_is() -> None:
    assert is_postgres("postgresql://db/kg")
    assert is_postgres("postgres://db/kg")
    assert not is_postgres("postgresql.tsv")
    assert not is_postgres(Path("postgresql://db/kg"))
    assert str(PostgresTable("postgresql://db/kg", "people", "works_at")) == "postgresql://db/kg people.works_at"
    assert str(PostgresTable("postgresql://db/kg", query="SELECT 1")) == "postgresql://db/kg query"
    assert str(PostgresTable("postgresql://db/kg")) == "postgresql://db/kg"
    table = Table("postgresql://db/kg", table="works_at")
    assert table.source == PostgresTable("postgresql://db/kg", name="works_at")
    assert table.name == "postgresql://db/kg works_at"


@pytest.mark.parametrize(
    "url",
    ["postgresql://me:secret@db/kg", "postgresql://db/kg?password=secret", "postgresql://db/kg?a=b&sslpassword=secret"],
)
def test_a_password_in_the_address_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(
        ConfigError, match=r"the address of a database holds a password\n.*PGPASSWORD.*\.pgpass"
    ) as caught:
        PostgresTable(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"url": "mysql://db/kg"}, "is no address"),
        ({"url": "postgresql://db:port/kg"}, "cannot be read"),
        ({"url": "postgresql://db/kg", "name": "t", "query": "SELECT 1"}, "not from both"),
    ],
)
def test_what_else_is_refused_without_a_database(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        PostgresTable(**given)


def test_a_server_that_is_not_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with pytest.raises(DataError, match=r"cannot be reached: .*onnection refused\n.*server running"):
        read_facts(Table(f"postgresql://127.0.0.1:{port}/kg"))


def test_without_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql.dbapi", None)
    with pytest.raises(ConfigError, match=r"needs its driver\n  pip install r2n\[postgres\]"):
        read_facts(Table("postgresql://db/kg"))
