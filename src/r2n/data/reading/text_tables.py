"""Tables of text: TSV, CSV and JSON."""

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Int64

from r2n.data.reading.records import (
    BEGINNING,
    BYTE_ORDER_MARK,
    EXCERPT,
    LINE_LIMIT,
    NEWLINE,
    QUOTE,
    RETURN,
    Fault,
    Locate,
    Records,
    beginning,
    ends_with_return,
    kept_text,
    line_location,
    place,
    read_lines,
    read_text,
    shortened,
    spans,
    too_long,
    unreadable,
)
from r2n.data.reading.stored_tables import fetch_texts, number_kind, number_text, row_location
from r2n.errors import DataError, Location

TAB, COMMA = b"\t,"
MOST_COLUMNS = 10_000


@dataclass(frozen=True, eq=False, slots=True)
class Cells:
    """The cells of a text: row r has `widths[r]` of them, from `first[r]` on, `lengths[r]` bytes in all.

    `rows` holds the line (from 0) on which each row starts; blank lines are no rows.
    """

    spans: pa.Array
    first: Int64[np.ndarray, " rows"]
    widths: Int64[np.ndarray, " rows"]
    lengths: Int64[np.ndarray, " rows"]
    rows: Int64[np.ndarray, " rows"]

    def column(self, chosen: Int64[np.ndarray, " chosen"], column: int) -> pa.Array:
        """One column of the chosen rows, as text."""
        return self.spans.take(pa.array(2 * (self.first[chosen] + column))).cast(pa.string())


def read_text_table(path: Path, separator: int, has_header: bool, widths: tuple[int, ...] = ()) -> Records:
    """The rows of a TSV (separator TAB, quotes are ordinary) or CSV (COMMA, quotes as in RFC 4180) file.

    The header decides how many columns there are; without one the first row does, or, where `widths` says
    how many there may be, the first row with so many.
    """
    return cut_table(path, read_text(path), separator, has_header, widths)


def first_rows(path: Path, separator: int) -> tuple[int, tuple[pa.Array, ...]]:
    """The line (from 0) of a table's first row, and the columns of the rows at its beginning that are as wide as it.

    There is no column where the beginning cannot be read: who reads the whole file says why.
    """
    data = beginning(path)
    raw = np.frombuffer(data, np.uint8)
    is_end = raw == NEWLINE
    if separator == COMMA:
        is_end &= ~np.logical_xor.accumulate(raw == QUOTE)
    ends = np.flatnonzero(is_end)
    if len(data) >= BEGINNING - len(BYTE_ORDER_MARK):  # the last row may be cut
        data = data[: int(ends[-1]) + 1] if len(ends) else b""
    elif not data.endswith(b"\n"):
        data += b"\n"
    if not data.strip(b"\r\n"):
        return 0, ()
    try:
        data.decode("utf-8")
        cells, column = _cells(path, data, separator)
    except (UnicodeDecodeError, DataError):
        return 0, ()
    chosen = np.flatnonzero(cells.widths == cells.widths[0])
    return int(cells.rows[0]), tuple(column(chosen, j) for j in range(int(cells.widths[0])))


def _cells(path: Path, data: bytes, separator: int) -> tuple[Cells, Callable[[np.ndarray, int], pa.Array]]:
    """The cells of a text, and how to take a column of some of its rows."""
    quoted = separator == COMMA and b'"' in data
    if quoted:
        _check_quotes(path, data)
    cells = _split(data, separator, quoted)
    _check_width(path, cells, 0)
    return cells, partial(_unquoted_column if quoted else Cells.column, cells)


def cut_table(path: Path, data: bytes, separator: int, has_header: bool, widths: tuple[int, ...] = ()) -> Records:
    """The rows of such a file's text; of a part of it, rows count from the part's first line."""
    cells, column = _cells(path, data, separator)
    first = tuple(column(np.zeros(1, np.int64), j)[0].as_py() for j in range(int(cells.widths[0])))
    chosen = np.arange(int(has_header), len(cells.rows))
    is_long = cells.lengths[chosen] > LINE_LIMIT
    model = 0 if has_header else _model(cells, chosen[~is_long], widths)
    _check_width(path, cells, model)
    is_ragged = (cells.widths[chosen] != cells.widths[model]) & ~is_long
    faults = too_long(path, cells.rows[chosen[is_long]])
    if is_ragged.any():
        faults += (_ragged(path, cells, model, chosen[is_ragged], separator),)
    chosen = chosen[~is_long & ~is_ragged]
    columns = tuple(column(chosen, j) for j in range(int(cells.widths[model])))
    names = tuple(name.strip() for name in first) if has_header else ()
    records = Records(str(path), names, columns, cells.rows[chosen], partial(_locate, path, separator), faults)
    return without_header(records)


def without_header(records: Records) -> Records:
    """The records without rows that are the header once more, as where files were put behind each other."""

    def error(row: int) -> DataError:
        hint = "take the line out; if it is a fact, give the columns other names in the first line"
        return DataError("the names of the columns stand here again", where=records.locate(row), hint=hint)

    cells = zip(records.columns, records.names, strict=False)
    equal = [pc.equal(pc.utf8_trim_whitespace(column), name).to_numpy(zero_copy_only=False) for column, name in cells]
    return records.without(np.logical_and.reduce(equal), error) if equal else records


def _check_width(path: Path, cells: Cells, row: int) -> None:
    """Each column costs time and memory, however little is in it."""
    width = int(cells.widths[row])
    if width > MOST_COLUMNS:
        hint = "write one fact a line; a missing line end makes one line of many"
        where = line_location(path, int(cells.rows[row]))
        raise DataError(f"{width:,} columns, more than {MOST_COLUMNS:,}", where=where, hint=hint)


def _model(cells: Cells, chosen: Int64[np.ndarray, " chosen"], widths: tuple[int, ...]) -> int:
    """The row that shows how many columns there are."""
    allowed = chosen[np.isin(cells.widths[chosen], widths)]
    return int(np.concatenate([allowed, chosen, [0]])[0])


def _split(data: bytes, separator: int, quoted: bool) -> Cells:
    """Cut the text into cells; where there are quotes, not inside them."""
    raw = np.frombuffer(data, np.uint8)
    is_line_end, is_cell_end = raw == NEWLINE, (raw == separator) | (raw == NEWLINE)
    if quoted:
        outside = ~np.logical_xor.accumulate(raw == QUOTE)
        is_line_end, is_cell_end = is_line_end & outside, is_cell_end & outside
    ends = np.flatnonzero(is_cell_end)
    starts = np.concatenate([[0], ends[:-1] + 1])
    last = np.flatnonzero(is_line_end[ends])  # the last cell of each row
    first = np.concatenate([[0], last[:-1] + 1])
    row_ends = ends[last].copy()
    ends[last] -= ends_with_return(raw, starts[last], ends[last])
    rows = np.searchsorted(np.flatnonzero(raw == NEWLINE), starts[first]) if quoted else np.arange(len(first))
    filled = np.flatnonzero((first < last) | (starts[first] < ends[first]))
    if quoted:
        in_quotes = raw[starts] == QUOTE
        starts, ends = starts + in_quotes, ends - in_quotes
    widths, lengths = (last - first + 1)[filled], (row_ends - starts[first])[filled]
    return Cells(spans(data, starts, ends), first[filled], widths, lengths, rows[filled])


def _unquoted_column(cells: Cells, chosen: Int64[np.ndarray, " chosen"], column: int) -> pa.Array:
    """One column; a doubled quote (there is none outside of quotes) is one."""
    return pc.replace_substring(cells.column(chosen, column), '""', '"')


def _check_quotes(path: Path, data: bytes) -> None:
    """Every quote must open a cell, close it, or be doubled; else nobody can tell where the rows end."""
    raw = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(raw == QUOTE)
    opening, closing = quotes[::2], quotes[1::2]
    before, after = raw[np.maximum(opening, 1) - 1], raw[closing + 1]
    is_doubled = np.concatenate([[False], opening[1:] == closing[: len(opening) - 1] + 1])
    opens = (opening == 0) | np.isin(before, (COMMA, NEWLINE)) | is_doubled
    is_crlf = (after == RETURN) & (raw[np.minimum(closing + 2, len(raw) - 1)] == NEWLINE)
    closes = np.isin(after, (COMMA, NEWLINE, QUOTE)) | is_crlf
    wrong = np.concatenate([opening[~opens], closing[~closes]])
    if len(wrong):
        hint = 'write the cell as "say ""hello""", or save the table as TSV, where quotes are ordinary'
        raise _quote_error(path, data, int(wrong.min()), "a quote stands in the middle of a cell", hint)
    if len(quotes) % 2:
        start = int(opening[~is_doubled][-1])
        raise _quote_error(path, data, start, "this quote is never closed", "close it before the cell ends")


def _quote_error(path: Path, data: bytes, position: int, what: str, hint: str) -> DataError:
    line, start = place(data, position)
    column = len(data[start:position].decode("utf-8")) + 1
    text = data[start : data.find(b"\n", start)].removesuffix(b"\r").decode("utf-8")
    where = Location(str(path), line, column, shortened(text, column + EXCERPT))
    return DataError(what, where=where, hint=hint)


def _ragged(path: Path, cells: Cells, model: int, wrong: Int64[np.ndarray, " wrong"], separator: int) -> Fault:
    """The fault of rows that have more or fewer columns than the model row."""
    rows, widths = cells.rows[wrong], cells.widths[wrong]
    expected, line = int(cells.widths[model]), int(cells.rows[model]) + 1

    def error(row: int) -> DataError:
        found = int(widths[np.searchsorted(rows, row)])
        what = f"too {'few' if found < expected else 'many'} columns: {found}, where line {line} has {expected}"
        by = "a tab" if separator == TAB else 'a comma (a cell with a comma needs quotes: "a, b")'
        return DataError(what, where=line_location(path, row), hint=f"columns are separated by {by}; mend the line")

    return Fault(rows, error)


def _locate(path: Path, separator: int, row: int, column: int | None = None) -> Location:
    """The line of a row, and the character at which a column starts, if that is plain to see."""
    where = line_location(path, row)
    if column is None or where.excerpt is None or (separator == COMMA and '"' in where.excerpt):
        return where
    cells = where.excerpt.split(chr(separator))
    if len(cells) <= column:  # beyond what the excerpt shows
        return where
    return line_location(path, row, sum(map(len, cells[:column])) + column + 1)


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
