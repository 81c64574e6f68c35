"""JSON (an array of objects, or one object a line) -> columns of text, through DuckDB."""

import json
from contextlib import closing
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from jaxtyping import Int64

from r2n.errors import DataError, Location
from r2n.knowledge.reading.records import EXCERPT, Fault, Locate, Records, shortened
from r2n.knowledge.reading.stored_tables import fetch_texts, number_kind, number_text, row_location
from r2n.knowledge.reading.text_files import kept_text, line_location, read_lines, read_text, unreadable

MOST_EMPTY, MOST_EMPTY_SHARE = 1_000_000, 20  # cells; how many for each that is filled


def read_json(path: Path) -> Records:
    """The objects of a JSON file: one array of them, or one a line."""
    data = read_text(path)
    if not _is_array(data):
        return read_json_lines(path)
    text = data.decode("utf-8")
    try:
        with closing(duckdb.connect()) as connection:
            query = """SELECT unnest(from_json(?, '["JSON"]')) AS item"""
            items = fetch_texts(connection.sql(query, params=[text]))[0]
    except duckdb.Error as error:
        raise _json_error(path, text, error) from None
    return _objects(str(path), items, np.arange(len(items)), partial(row_location, str(path)), ())


def read_json_lines(path: Path) -> Records:
    """The objects of a file with one JSON object a line."""
    lines = read_lines(path)
    return _objects(str(path), lines.texts, lines.rows, partial(_line, path), lines.faults)


def json_location(path: Path, row: int) -> Location:
    """Where a record of a JSON file stands."""
    try:
        is_array = _is_array(kept_text(path)[0])
    except (OSError, DataError):  # gone since it was read
        is_array = True
    return row_location(path, row) if is_array else line_location(path, row)


def _is_array(data: bytes) -> bool:
    """Whether the text is one JSON array, rather than one object a line."""
    return data.lstrip().startswith(b"[")


def _json_error(path: Path, text: str, found: duckdb.Error) -> DataError:
    """Python's reader knows lines and columns; where it finds nothing wrong or gives up, DuckDB's word stands."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        line = text.split("\n")[error.lineno - 1]
        where = Location(str(path), error.lineno, error.colno, shortened(line, error.colno + EXCERPT))
        what = f"this is not JSON: {error.msg[0].lower()}{error.msg[1:]}"
        return DataError(what, where=where, hint="the file is damaged or cut short: write it again")
    except (ValueError, RecursionError):  # a number of thousands of digits, thousands of brackets
        pass
    return unreadable(path, "JSON", found)


def _line(path: Path, row: int, column: int | None = None) -> Location:
    """A record's line; its fields have no fixed place in it."""
    return line_location(path, row)


def _objects(
    source: str, items: pa.Array, rows: Int64[np.ndarray, " rows"], locate: Locate, faults: tuple[Fault, ...]
) -> Records:
    """The fields of JSON objects as columns; the names are all fields, in the order of first sight."""
    with closing(duckdb.connect()) as connection:
        connection.register("items", pa.table({"item": items}))
        query = "SELECT CASE WHEN json_valid(item) THEN json_type(item) ELSE 'no JSON' END = 'OBJECT' FROM items"
        is_object = connection.sql(query).to_arrow_table().column(0).to_numpy().astype(bool)
        records = Records(source, (), (items,), rows, locate, faults)
        records = records.without(~is_object, partial(_no_object, locate))
        connection.register("items", pa.table({"item": records.columns[0]}))
        records = _without_repeated_keys(connection, records)
        connection.register("items", pa.table({"item": records.columns[0]}))
        query = "SELECT json_keys(item) AS keys, row_number() OVER () AS row FROM items"
        query = f"SELECT keys, count(*) FROM ({query}) GROUP BY keys ORDER BY min(row)"
        shapes = connection.sql(query).fetchall()
        names = tuple(dict.fromkeys(name for shape, _ in shapes for name in shape))
        _refuse_sparse(source, len(names) * len(records.rows), sum(len(shape) * count for shape, count in shapes))
        pointers = ["/" + name.replace("~", "~0").replace("/", "~1") for name in names]
        found = _fields(connection, pointers) if names else ()
    columns, kinds = found[: len(names)], found[len(names) :]
    return Records(source, names, columns, records.rows, locate, records.faults, kinds)


def _fields(connection: duckdb.DuckDBPyConnection, pointers: list[str]) -> tuple[pa.Array, ...]:
    """A column of text for each field, and then one each of what its cells are where they are no constants."""
    numbers = range(len(pointers))
    picked = [f"json_extract_string(item, ${i + 1}) AS c{i}, json_type(item, ${i + 1}) AS k{i}" for i in numbers]
    texts = [f"CASE k{i} WHEN 'DOUBLE' THEN {number_text(f'CAST(c{i} AS DOUBLE)')} ELSE c{i} END" for i in numbers]
    kinds = [
        f"CASE k{i} WHEN 'ARRAY' THEN 'list' WHEN 'OBJECT' THEN 'object'"
        f" WHEN 'DOUBLE' THEN {number_kind(f'CAST(c{i} AS DOUBLE)')} END"
        for i in numbers
    ]
    query = f"SELECT {', '.join([*texts, *kinds])} FROM (SELECT {', '.join(picked)} FROM items)"
    return fetch_texts(connection.sql(query, params=pointers))


def _without_repeated_keys(connection: duckdb.DuckDBPyConnection, records: Records) -> Records:
    """The objects that give each of their keys once: what is read of two would be by chance."""
    keys = connection.sql("SELECT json_keys(item) AS keys FROM items")
    repeated = keys.filter("len(list_distinct(keys)) < len(keys)")
    is_repeated = keys.project("len(list_distinct(keys)) < len(keys)").to_arrow_table().column(0).to_numpy()
    bad = is_repeated.astype(bool)
    names = dict(zip(records.rows[bad].tolist(), (row[0] for row in repeated.fetchall()), strict=True))

    def error(row: int) -> DataError:
        name = next(key for i, key in enumerate(names[row]) if key in names[row][:i])
        what = f"the key '{shortened(name, 40)}' is given twice"
        return DataError(what, where=records.locate(row), hint="keep one of the two, or give them different names")

    return records.without(bad, error)


def _refuse_sparse(source: str, cells: int, filled: int) -> None:
    """A table that is nearly empty would fill the memory: every object has a cell for each field of any other."""
    if cells > max(MOST_EMPTY, MOST_EMPTY_SHARE * filled):
        what = f"the objects have so many different fields that {cells - filled:,} cells would be empty"
        raise DataError(what, where=Location(source), hint="give the objects the same few fields")


def _no_object(locate: Locate, row: int) -> DataError:
    hint = 'write one object a line, as in {"head": CONSTANT, "relation": PREDICATE, "tail": CONSTANT}'
    return DataError("this is not a JSON object", where=locate(row), hint=hint)
