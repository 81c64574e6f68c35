"""TSV or CSV text -> columns of text, cell by cell as the file has them.

Cells are cut straight from the bytes: CSV readers (DuckDB's too) drop an empty last cell, refuse LF and CRLF
in one file, or trim blanks around quotes, and here nothing may change or vanish in silence.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Int64

from r2n.errors import DataError, Location
from r2n.knowledge.reading.records import EXCERPT, Fault, Records, shortened
from r2n.knowledge.reading.text_files import (
    BEGINNING,
    BYTE_ORDER_MARK,
    LINE_LIMIT,
    NEWLINE,
    QUOTE,
    RETURN,
    beginning,
    ends_with_return,
    line_location,
    place,
    read_text,
    spans,
    too_long,
)

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
