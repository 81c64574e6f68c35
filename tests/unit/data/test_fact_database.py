"""Facts as tables: what is loaded, what is added behind it, and that nothing else can be read."""

from collections.abc import Iterator
from contextlib import closing

import duckdb
import pyarrow as pa
import pytest

from r2n.data.fact_database import FactDatabase, Select
from r2n.data.tables import Table, read_facts


def database(connection: duckdb.DuckDBPyConnection, *rows: tuple[str, str, str]) -> FactDatabase:
    table = pa.table([list(column) for column in zip(*rows, strict=True)], ["x", "y", "label"])
    return FactDatabase(connection, read_facts(Table(table, "p", label="label")).facts)


def select(sql: str) -> Select:
    return Select(sql, sql, "[derived] q", is_recursive=False)


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with closing(duckdb.connect()) as opened:
        yield opened


def test_what_is_added_stands_behind_what_was_there_and_nothing_twice(connection: duckdb.DuckDBPyConnection) -> None:
    facts = database(connection, ("b", "c", "1"), ("a", "b", "1"))
    facts.add("p", select("SELECT c2, c1 FROM p UNION ALL SELECT c1, c2 FROM p"))
    assert facts.count("p") == 4
    assert [column.to_pylist() for column in facts.rows_after("p", 2)] == [["b", "c"], ["a", "b"]]
