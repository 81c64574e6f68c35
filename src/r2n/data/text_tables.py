"""Files of text and their formats: TSV, CSV, JSON, facts of logic programs, RDF."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Int64

from r2n.data.records import (
    EXCERPT,
    PACKED,
    Fault,
    Layout,
    ReadOptions,
    Records,
    TableFormat,
    empty_file,
    register_format,
    row_location,
    shortened,
    texts_and_kinds,
    unreadable,
)
from r2n.errors import DataError, Location

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LINE_LIMIT = 2_000_000  # bytes; a longer line is a damaged file or no table of facts
BEGINNING = 2**20  # bytes that show what a file is
BLOCK = 2**22  # bytes that are unpacked at once
MOST_PACKED, LARGE = 100, 2**26  # what is large is no table where so many bytes of it come from one
NEWLINE, RETURN, QUOTE = b'\n\r"'
TAB, COMMA = b"\t,"
MOST_COLUMNS = 10_000
FIRST_ROWS = 20_000  # that show whether the first of them is a header


def unpacked_blocks(path: Path, at_once: int | None = None) -> Iterator[bytes]:
    """The bytes of a file, `at_once` in each block (None: all of a plain file), unpacked as its ending says."""
    packing, size = path.suffix.lower(), 0
    at_once = at_once or (BLOCK if packing in PACKED else None)
    try:
        with pa.input_stream(str(path), compression=PACKED.get(packing)) as stream:
            while block := stream.read(at_once):
                size += len(block)
                if size > LARGE and size > MOST_PACKED * path.stat().st_size:  # it would fill the memory
                    raise OSError(f"unpacked it has more than {MOST_PACKED} times its size")
                yield block
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, f"a {packing} file" if packing in PACKED else "a file", error) from None


def read_text(path: Path) -> bytes:
    """The file's text as UTF-8 bytes, unpacked, without byte order mark, with a newline at its end."""
    data = b"".join(unpacked_blocks(path)).removeprefix(BYTE_ORDER_MARK)
    if not data.strip(b"\r\n"):
        raise empty_file(path)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        what = f"byte 0x{data[error.start]:02X} is not UTF-8 text"
        seems = "UTF-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "Latin-1 or another old encoding"
        hint = f"save the file as UTF-8; it looks like {seems}"
        raise DataError(what, where=text_location(path, data, error.start), hint=hint) from None
    return data if data.endswith(b"\n") else data + b"\n"


def beginning(path: Path) -> bytes:
    """The first bytes of a file's text, unpacked, without byte order mark; of a file that cannot be read, none."""
    try:
        return next(unpacked_blocks(path, BEGINNING), b"").removeprefix(BYTE_ORDER_MARK)
    except DataError:
        return b""


def text_location(path: Path, data: bytes, position: int) -> Location:
    """Where a byte of a text stands, with the beginning of its line."""
    start = data.rfind(b"\n", 0, position) + 1
    column = len(data[start:position].decode("utf-8", "replace")) + 1
    line = data[start : position + 4 * EXCERPT].split(b"\n", 1)[0].removesuffix(b"\r").decode("utf-8", "replace")
    return Location(str(path), data.count(b"\n", 0, position) + 1, column, shortened(line, column + EXCERPT))


def read_lines(path: Path) -> Records:
    """The lines of a file that are not blank, without their ends, as one column."""
    data = read_text(path)
    texts = pc.split_pattern(pa.array([data[:-1].decode("utf-8")], pa.large_string()), "\n").flatten()
    if b"\r" in data:
        texts = pc.replace_substring_regex(texts, r"\r\z", "")
    sizes = pc.binary_length(texts).to_numpy()
    rows = np.flatnonzero(sizes)
    _check_length(path, rows, sizes[rows])
    kept = texts.take(pa.array(rows)).cast(pa.string())

    def locate(row: int, column: int | None = None) -> Location:
        return line_location(path, row)

    return Records(str(path), (), (kept,), rows, locate)


def _check_length(path: Path, rows: Int64[np.ndarray, " rows"], sizes: np.ndarray) -> None:
    """Refuse a file with a line beyond the limit: it is damaged, or no table of facts."""
    if (sizes > LINE_LIMIT).any():
        what = f"the line is longer than {LINE_LIMIT:,} bytes"
        hint = "write one fact a line; a missing line end or quote makes one line of many"
        raise DataError(what, where=line_location(path, int(rows[sizes > LINE_LIMIT][0])), hint=hint)


def line_location(path: Path, row: int, column: int | None = None) -> Location:
    """Where a line (row, from 0) of a file stands, with its beginning; `column` counts characters from 1."""
    try:
        state = path.stat()
        data, ends = _lines(path, state.st_mtime_ns, state.st_size)
    except (OSError, DataError):  # it was removed or changed after it was read
        return Location(str(path), row + 1, column)
    text = data[ends[row - 1] + 1 if row else 0 : ends[row]].removesuffix(b"\r").decode("utf-8")
    return Location(str(path), row + 1, column, shortened(text, max(EXCERPT, (column or 0) + EXCERPT // 2)))


@lru_cache(maxsize=1)
def _lines(path: Path, changed: int, size: int) -> tuple[bytes, Int64[np.ndarray, " lines"]]:
    """The file's text and the ends of its lines, kept for the next error in the same file."""
    data = read_text(path)
    return data, np.flatnonzero(np.frombuffer(data, np.uint8) == NEWLINE)


@dataclass(frozen=True, eq=False, slots=True)
class Cells:
    """The cells of a text: row r has `widths[r]` of them, from `first[r]` on.

    Cell i is item 2 i of `spans`. `rows` holds the line (from 0) on which each row starts; blank lines are none.
    """

    is_quoted: bool
    spans: pa.Array
    first: Int64[np.ndarray, " rows"]
    widths: Int64[np.ndarray, " rows"]
    rows: Int64[np.ndarray, " rows"]

    def column(self, chosen: Int64[np.ndarray, " chosen"], column: int) -> pa.Array:
        """One column of the chosen rows, as text; a doubled quote (there is none outside of quotes) is one."""
        texts = self.spans.take(pa.array(2 * (self.first[chosen] + column))).cast(pa.string())
        return pc.replace_substring(texts, '""', '"') if self.is_quoted else texts


class TextTable(TableFormat):
    """Rows a line, cells apart by a separator.

    The header decides how many columns there are; without one the first row does, or, if `widths` says how many there
    may be, the first row with that many.
    """

    may_be_packed, separator = True, TAB

    def records(self, path: Path, options: ReadOptions) -> Sequence[Records]:
        """The rows of the file."""
        return [cut_table(path, read_text(path), self.separator or TAB, options)]


@register_format
class TSV(TextTable):
    """Cells apart by tabs; quotes are ordinary."""

    name, suffixes, mistaken_for = "tsv", (".tsv", ".txt", ".tab"), "columns apart by tabs"


@register_format
class CSV(TextTable):
    """Cells apart by commas, quoted as in RFC 4180."""

    name, suffixes, mistaken_for, separator = "csv", (".csv",), "columns apart by commas", COMMA


def cut_table(path: Path, data: bytes, separator: int, options: ReadOptions) -> Records:
    """The rows of such a file's text."""
    cells = _split(path, data, separator)
    like_first = np.flatnonzero(cells.widths[:FIRST_ROWS] == cells.widths[0])
    beginning = [cells.column(like_first, j) for j in range(int(cells.widths[0]))]
    has_header = options.header if isinstance(options.header, bool) else options.header(beginning, int(cells.rows[0]))
    chosen = np.arange(int(has_header), len(cells.rows))
    fitting = chosen[np.isin(cells.widths[chosen], options.widths)]
    model = 0 if has_header else int(np.append(fitting, 0)[0])  # it has the right width
    _check_width(path, cells, model)
    expected, line = int(cells.widths[model]), int(cells.rows[model]) + 1
    is_ragged = cells.widths[chosen] != expected
    rows, widths = cells.rows[chosen[is_ragged]], cells.widths[chosen[is_ragged]]

    def ragged(row: int) -> DataError:
        found = int(widths[np.searchsorted(rows, row)])
        what = f"too {'few' if found < expected else 'many'} columns: {found}, where line {line} has {expected}"
        by = "a tab" if separator == TAB else 'a comma (a cell with a comma needs quotes: "a, b")'
        return DataError(what, where=line_location(path, row), hint=f"columns are separated by {by}; mend the line")

    def locate(row: int, column: int | None = None) -> Location:
        """The line of a row, and the character at which a column starts, if the excerpt shows it."""
        where = line_location(path, row)
        if column is None or where.excerpt is None or (separator == COMMA and '"' in where.excerpt):
            return where
        cells = where.excerpt.split(chr(separator))
        return where if len(cells) <= column else line_location(path, row, sum(map(len, cells[:column])) + column + 1)

    faults = (Fault(rows, ragged),) if len(rows) else ()
    chosen = chosen[~is_ragged]
    columns = tuple(cells.column(chosen, j) for j in range(expected))
    names = tuple(column[0].as_py().strip() for column in beginning) if has_header else ()
    return without_header(Records(str(path), names, columns, cells.rows[chosen], locate, faults))


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


def _split(path: Path, data: bytes, separator: int) -> Cells:
    """Cut the text into cells; where there are quotes, not inside them."""
    quoted = separator == COMMA and b'"' in data
    if quoted:
        _check_quotes(path, data)
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
    ends[last] -= (ends[last] > starts[last]) & (raw[np.maximum(ends[last], 1) - 1] == RETURN)  # of a CRLF
    rows = np.searchsorted(np.flatnonzero(raw == NEWLINE), starts[first]) if quoted else np.arange(len(first))
    filled = np.flatnonzero((first < last) | (starts[first] < ends[first]))
    if quoted:
        in_quotes = raw[starts] == QUOTE
        starts, ends = starts + in_quotes, ends - in_quotes
    _check_length(path, rows[filled], (row_ends - starts[first])[filled])
    offsets = pa.py_buffer(np.column_stack([starts, ends]).ravel())
    spans = pa.LargeStringArray.from_buffers(2 * len(starts) - 1, offsets, pa.py_buffer(data))
    cells = Cells(quoted, spans, first[filled], (last - first + 1)[filled], rows[filled])
    _check_width(path, cells, 0)
    return cells


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
        position, what = int(wrong.min()), "a quote stands in the middle of a cell"
        hint = 'write the cell as "say ""hello""", or save the table as TSV, where quotes are ordinary'
    elif len(quotes) % 2:
        position, what = int(opening[~is_doubled][-1]), "this quote is never closed"
        hint = "close it before the cell ends"
    else:
        return
    raise DataError(what, where=text_location(path, data, position), hint=hint)


MOST_EMPTY, MOST_EMPTY_SHARE = 1_000_000, 20  # cells; how many for each that is filled


class _Repeated(str):
    """In place of a JSON object: a key that it gives twice."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Repeated:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    return _Repeated(next(key for key, number in Counter(key for key, _ in pairs).items() if number > 1))


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=lambda name: float(f"no JSON: {name}"))


def _decoded(line: str) -> Any:
    """The value that a line holds; None if it is no JSON."""
    try:
        return _DECODER.decode(line)
    except (ValueError, RecursionError):
        return None


@register_format
class JSON(TableFormat):
    """One array of objects, or one object a line."""

    name, suffixes, may_be_packed = "json", (".json",), True

    def records(self, path: Path, options: ReadOptions) -> Sequence[Records]:
        """The fields of the objects, by column."""
        text = read_text(path).decode("utf-8")
        try:
            if not text.lstrip().startswith("["):
                lines = read_lines(path)
                return [_objects(lines, list(map(_decoded, lines.columns[0].to_pylist())))]
            items = _DECODER.decode(text)
            return [
                _objects(Records(str(path), (), (), np.arange(len(items)), partial(row_location, str(path))), items)
            ]
        except json.JSONDecodeError as error:
            line = text.split("\n")[error.lineno - 1]
            where = Location(str(path), error.lineno, error.colno, shortened(line, error.colno + EXCERPT))
            what = f"this is not JSON: {error.msg[0].lower()}{error.msg[1:]}"
            raise DataError(what, where=where, hint="the file is damaged or cut short: write it again") from None
        except (ValueError, RecursionError) as error:  # thousands of digits or brackets, half a character
            raise unreadable(path, "JSON", error) from None


@register_format
class JSONLines(JSON):
    """The same, by another ending."""

    name, suffixes = "jsonl", (".jsonl", ".ndjson")


def _objects(records: Records, items: list[Any]) -> Records:
    """The fields of JSON objects, one a row, as columns; the names are all fields, in the order of first sight."""
    locate, given = records.locate, dict(zip(records.rows.tolist(), items, strict=True))

    def error(row: int) -> DataError:
        if isinstance(key := given[row], _Repeated):  # which of the two is read would be by chance
            what, hint = f"the key '{shortened(key, 40)}' is given twice", "keep one of the two, or give them two names"
        else:
            what = "this is not a JSON object"
            hint = 'write one object a line, as in {"head": CONSTANT, "relation": PREDICATE, "tail": CONSTANT}'
        return DataError(what, where=locate(row), hint=hint)

    wrong = np.array([not isinstance(item, dict) for item in items], bool)
    records = replace(records, columns=()).without(wrong, error)
    items = [item for item in items if isinstance(item, dict)]
    names = tuple(dict.fromkeys(name for item in items for name in item))
    cells, filled = len(names) * len(items), sum(map(len, items))
    if cells > max(MOST_EMPTY, MOST_EMPTY_SHARE * filled):  # every object has a cell for each field of any other
        what = f"the objects have so many different fields that {cells - filled:,} cells would be empty"
        raise DataError(what, where=Location(records.source), hint="give the objects the same few fields")
    columns, kinds = texts_and_kinds([item.get(name) for item in items] for name in names)
    return replace(records, names=names, columns=columns, kinds=kinds)


LOOKS_LIKE_ATOM = re.compile(r"""\s*(?:!|\\\+|not\s)?\s*[^\s(),'"]+\s*\([^()]+\)\s*(?:[.,%#/]|$)""")
# What repeats is taken in full (*+, ++), so that a long line is read once, whatever is wrong with it.
_QUOTED = r"""(?:'(?:[^'\\]|\\.|'')++'|"(?:[^"\\]|\\.|"")++")"""
_TERM = rf"""(?:{_QUOTED}|[^\s(),'"][^(),]*+)"""
_TERMS = re.compile(rf"\s*+({_TERM})")
_FACT = re.compile(
    rf"""\s*+((?:!|\\\+|not\s)\s*+)?(/?+\w[^\s(),'"]*+|{_QUOTED})\s*+"""
    rf"""\((\s*+{_TERM}\s*+(?:,\s*+{_TERM}\s*+)*+)\)\s*+(\.?)"""
)
_END = re.compile(r"\s*+(?:(?:%|#|//).*)?\Z")


def _word(text: str) -> str:
    """A word of a fact without its quotes and escapes: `'it''s'`, `"a \\" b"`."""
    text, mark = text.rstrip(), text[0]
    return re.sub(rf"""\\(['"\\])|{mark}({mark})""", r"\1\2", text[1:-1]) if mark in "'\"" else text


@register_format
class Prolog(TableFormat):
    """Facts `p(a, 'b c').`, false ones with `!`."""

    name, suffixes, may_be_packed = "prolog", (".pl", ".nl", ".nlt", ".facts", ""), True
    has_names, names_predicates = False, True

    def records(self, path: Path, options: ReadOptions) -> Sequence[Records]:
        """The predicate, the constants and the label of each fact, those of one arity together."""

        def no_fact(row: int) -> DataError:
            where = line_location(path, row)
            if where.excerpt is not None and (":-" in where.excerpt or "->" in where.excerpt):
                return DataError("this is a rule, not a fact", where=where, hint="rules belong into the theory")
            hint = "write `p(a, b).`, and constants with blanks, commas or parentheses in quotes: `p('a, b', c).`"
            return DataError("this is not a fact", where=where, hint=hint)

        lines, by_arity, bad = read_lines(path), dict[int, list[tuple[int, list[str]]]](), list[int]()
        for row, line in zip(lines.rows.tolist(), lines.columns[0].to_pylist(), strict=True):
            facts, end = list[list[str]](), 0
            while fact := _FACT.match(line, end):
                sign, name, terms, dot = fact.groups()
                facts.append([*map(_word, (name, *_TERMS.findall(terms))), "0" if sign else "1"])
                end = fact.end()
                if not dot:
                    break
            if not _END.match(line, end):
                bad.append(row)
                continue
            for words in facts:
                by_arity.setdefault(len(words) - 2, []).append((row, words))
        found = [replace(lines.without(np.isin(lines.rows, bad), no_fact), columns=(), rows=lines.rows[:0])]
        for arity, group in sorted(by_arity.items()):
            columns = tuple(
                pa.array(column, pa.string()) for column in zip(*(words for _, words in group), strict=True)
            )
            layout, rows = Layout(0, tuple(range(1, arity + 1)), arity + 1), np.array([row for row, _ in group])
            found.append(replace(lines, columns=columns, rows=rows, layout=layout))
        return found


class RDF(TableFormat):
    """Triples in one of rdflib's languages, in the file's order.

    Names are full IRIs, literals are their text, blank nodes are `_:FILE:0`, `_:FILE:1`, ...
    """

    may_be_packed, has_names, names_predicates = True, False, True
    needs = ("rdflib", "pip install r2n[rdf]")
    language: ClassVar[str]

    def records(self, path: Path, options: ReadOptions) -> Sequence[Records]:
        """The head, relation and tail of each distinct triple."""
        from rdflib import BNode, Graph

        class InOrder(Graph):
            """A graph that remembers when each triple came: rdflib's own order changes from run to run."""

            def add(self, triple: Any) -> Graph:
                triples.setdefault(triple)
                return super().add(triple)

        text, triples = read_text(path).decode("utf-8"), dict[Any, None]()
        try:
            InOrder().parse(data=text, format=self.language, publicID=path.resolve().as_uri())
        except Exception as error:  # rdflib's parsers raise what they like
            raise unreadable(path, f"RDF ({self.language})", error) from None
        blank: dict[Any, str] = {}  # nodes of this file: those of other files have other names

        def as_text(term: Any) -> str:
            is_blank = isinstance(term, BNode)
            return blank.setdefault(term, f"_:{path.name}:{len(blank)}") if is_blank else str(term)

        columns = tuple(pa.array(map(as_text, terms), pa.string()) for terms in zip(*triples, strict=True))
        columns = columns or (pa.array([], pa.string()),) * 3

        def locate(row: int, column: int | None = None) -> Location:  # rdflib gives no lines
            return Location(str(path), excerpt=" ".join(terms[row].as_py() for terms in columns))

        return [Records(str(path), ("head", "relation", "tail"), columns, np.arange(len(columns[0])), locate)]


for _name, _suffixes, _language in (
    ("ntriples", (".nt",), "nt"),
    ("turtle", (".ttl",), "turtle"),
    ("rdf-xml", (".rdf", ".owl"), "xml"),
):
    register_format(
        type(_name, (RDF,), {"__doc__": RDF.__doc__, "name": _name, "suffixes": _suffixes, "language": _language})
    )
