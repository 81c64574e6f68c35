"""Rows as they are read, where they stand in their file, and text files line by line."""

import gzip
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol, cast, runtime_checkable

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Int64

from r2n.errors import DataError, Location, nearest
from r2n.files import check_regular

EXCERPT = 80
_APART = "make a column of each of its parts, or pick other columns with `columns`"
NO_CONSTANTS = {
    "list": "write a row for each item (frame.explode of pandas and polars does), or pick others with `columns`",
    **dict.fromkeys(("struct", "map", "object"), _APART),
    "number": "keep whole numbers as integers (astype('Int64') of pandas) or as text; where there is no value, leave"
    ' the cell empty, and set empty = "skip"',
}
"""What cells hold that are no constants, and what to do about them."""
OnError = Literal["raise", "skip"]


@dataclass(frozen=True, eq=False, slots=True)
class Fault:
    """Rows of a source that are refused for one reason; the error of each is made only when asked for.

    Rows that were allowed to state nothing are no error: they are only counted.
    """

    rows: Int64[np.ndarray, " rows"]
    error: Callable[[int], DataError]
    is_allowed: bool = False


@runtime_checkable
class Locate(Protocol):
    """Names the place of a row (from 0) of a source, and of one of its columns (from 0)."""

    def __call__(self, row: int, column: int | None = None, /) -> Location:
        """The place."""
        ...


@dataclass(frozen=True, eq=False, slots=True)
class Records:
    """The readable rows of a source, by column.

    `names` are the columns' names, () where the source has none. `rows` says where each row stands in the
    source, from 0: its line in a text file, its record elsewhere. `locate` names that place. `kinds` says for each
    column (none: for no column) which cells are no constants, and what they are: null, or a key of NO_CONSTANTS.
    """

    source: str
    names: tuple[str, ...]
    columns: tuple[pa.Array, ...]
    rows: Int64[np.ndarray, " rows"]
    locate: Locate
    faults: tuple[Fault, ...] = ()
    kinds: tuple[pa.Array, ...] = ()

    def without(
        self, bad: Bool[np.ndarray, " rows"], error: Callable[[int], DataError], *, is_allowed: bool = False
    ) -> "Records":
        """These records minus the bad ones, which `error` explains by their row."""
        if not bad.any():
            return self
        good = np.flatnonzero(~bad)
        columns, kinds = (tuple(part.take(pa.array(good)) for part in parts) for parts in (self.columns, self.kinds))
        faults = (*self.faults, Fault(self.rows[bad], error, is_allowed))
        return Records(self.source, self.names, columns, self.rows[good], self.locate, faults, kinds)

    def called(self, column: int) -> str:
        """How errors call a column."""
        return f"column {column + 1}" + (f" ({self.names[column]})" if self.names else "")

    def with_constants(self, column: int) -> "Records":
        """The records whose cell in that column is one value that can be a constant."""
        if not self.kinds:
            return self
        cells, kinds = self.columns[column], self.kinds[column]

        def error(row: int) -> DataError:
            at = int(np.searchsorted(self.rows, row))
            kind, cell = kinds[at].as_py(), shortened(str(cells[at].as_py()), 40)
            held = f"{cell}, no constant" if "n" in cell else f"{cell}, which has lost its last digits"
            held = held if kind == "number" else f"a{'n' * (kind == 'object')} {kind}, no constant: {cell}"
            what = f"{self.called(column)} holds {held}"
            return DataError(what, where=self.locate(row, column), hint=NO_CONSTANTS[kind])

        return self.without(kinds.is_valid().to_numpy(zero_copy_only=False), error)


@dataclass(frozen=True, eq=False, slots=True)
class Statements:
    """Facts of one arity, each with its predicate and its truth, in the order of the source.

    `names` are those of the columns that hold the arguments, () where the source has none.
    """

    predicates: pa.Array
    arguments: tuple[pa.Array, ...]
    truth: Bool[np.ndarray, " rows"]
    rows: Int64[np.ndarray, " rows"]
    names: tuple[str, ...] = ()


def settle(faults: Sequence[Fault], on_error: OnError) -> tuple[DataError, ...]:
    """Raise the error of the first bad row, or ("skip") give the errors of all, in the source's order."""
    faults = [fault for fault in faults if not fault.is_allowed]
    if not faults:
        return ()
    if on_error == "raise":
        first = min(faults, key=lambda fault: fault.rows[0])
        raise first.error(int(first.rows[0]))
    found = [(int(row), fault.error) for fault in faults for row in fault.rows]
    return tuple(error(row) for row, error in sorted(found, key=lambda pair: pair[0]))


def shortened(text: str, keep: int = EXCERPT) -> str:
    """The text, cut after `keep` characters."""
    return text if len(text) <= keep else text[: keep - 1] + "…"


BYTE_ORDER_MARK = b"\xef\xbb\xbf"
PACKED = (".gz", ".zst")
LINE_LIMIT = 2_000_000  # bytes; a longer line is a damaged file or no table of facts
BEGINNING = 2**20  # bytes that show what a file is
BLOCK = 2**22  # bytes that are unpacked at once
MOST_PACKED, LARGE = 100, 2**26  # what is large is no table where so many bytes of it come from one
NEWLINE, RETURN, QUOTE = b'\n\r"'


def check_file(path: Path) -> None:
    """A DataError unless the path is a file with something in it."""
    where = Location(source=str(path))
    try:
        size = path.stat().st_size
        if not path.is_dir():
            check_regular(path)
    except (FileNotFoundError, NotADirectoryError):
        if path.parent.is_dir():
            hint = nearest(path.name, sorted(entry.name for entry in path.parent.iterdir()))
            raise DataError("there is no such file", where=where, hint=hint or f"look into {path.parent}") from None
        hint = f"there is no folder {path.parent} either"
        raise DataError("there is no such file", where=where, hint=hint) from None
    except (OSError, ValueError) as error:
        raise unreadable(path, "a file", error) from None
    if path.is_dir():
        files = sorted(entry.name for entry in path.iterdir() if entry.is_file())
        listed = f"; it holds {', '.join(files[:5])}" if files else ""
        raise DataError("this is a folder, not a file", where=where, hint=f"name one of its files{listed}")
    if size == 0:
        raise empty_file(path)


def empty_file(path: Path) -> DataError:
    """The error for a file that holds nothing."""
    hint = "write one fact a line, as in `CONSTANT<TAB>PREDICATE<TAB>CONSTANT`, or leave the file out"
    return DataError("the file is empty", where=Location(source=str(path)), hint=hint)


def unreadable(path: Path, kind: str, reason: BaseException | str) -> DataError:
    """The error for a file that is damaged, or not of the kind that its name says."""
    first_line = (str(reason).strip() or type(reason).__name__).splitlines()[0]
    what = f"this cannot be read as {kind} ({shortened(first_line, 160)})"
    hint = "the file is damaged, cut short, or misnamed: fetch or write it again"
    return DataError(what, where=Location(source=str(path)), hint=hint)


def read_text(path: Path) -> bytes:
    """The file's text as UTF-8 bytes, unpacked, without byte order mark, with a newline at its end."""
    data = _unpacked(path).removeprefix(BYTE_ORDER_MARK)
    if not data.strip(b"\r\n"):
        raise empty_file(path)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _not_utf8(path, data, error.start) from None
    return data if data.endswith(b"\n") else data + b"\n"


def first_written_line(path: Path) -> tuple[int, str]:
    """The first line, with its number from 0, that is neither blank nor a comment, looking at the beginning only."""
    lines = enumerate(line.strip() for line in beginning(path).decode("utf-8", errors="replace").split("\n"))
    return next(((row, line) for row, line in lines if line and not line.startswith(("%", "#", "//"))), (0, ""))


def beginning(path: Path) -> bytes:
    """The first bytes of a file's text, unpacked, without byte order mark; of a file that cannot be read, none."""
    try:
        with cast(BinaryIO, pa.input_stream(str(path), compression="detect")) as stream:
            return stream.read(BEGINNING).removeprefix(BYTE_ORDER_MARK)
    except (OSError, pa.ArrowException):
        return b""


def _unpacked(path: Path) -> bytes:
    packing = path.suffix.lower()
    try:
        if packing == ".gz":
            with gzip.open(path) as stream:
                return _all_of(path, stream)
        if packing == ".zst":
            with pa.input_stream(str(path), compression="zstd") as stream:
                return _all_of(path, stream)
        return path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise unreadable(path, f"a {packing} file" if packing in PACKED else "a file", error) from None


def _all_of(path: Path, stream: Any) -> bytes:
    blocks, size = [], 0
    while block := stream.read(BLOCK):
        blocks.append(block)
        size += len(block)
        check_unpacked(path, size)
    return b"".join(blocks)


def check_unpacked(path: Path, size: int) -> None:
    """Refuse a file of which so much more has come than it holds: that would fill the memory, and be no table."""
    if size > LARGE and size > MOST_PACKED * path.stat().st_size:
        reason = f"unpacked it has more than {MOST_PACKED} times its size"
        raise unreadable(path, f"a {path.suffix.lower()} file", reason)


def _not_utf8(path: Path, data: bytes, position: int) -> DataError:
    line, start = place(data, position)
    end = data.find(b"\n", start)
    text = data[start : end if end >= 0 else len(data)]
    column = len(text[: position - start].decode("utf-8")) + 1
    excerpt = text[: position - start + EXCERPT].decode("utf-8", errors="replace")
    utf16 = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    hint = f"save the file as UTF-8; it looks like {'UTF-16' if utf16 else 'Latin-1 or another old encoding'}"
    return DataError(
        f"byte 0x{data[position]:02X}, byte {position - start + 1} of line {line}, is not UTF-8 text",
        where=Location(str(path), line, column, excerpt),
        hint=hint,
    )


def place(data: bytes, position: int) -> tuple[int, int]:
    """The line (from 1) of a byte, and the byte at which that line starts."""
    return data.count(b"\n", 0, position) + 1, data.rfind(b"\n", 0, position) + 1


@dataclass(frozen=True, eq=False, slots=True)
class Lines:
    """The lines of a file that are not blank, with their rows (from 0), and those that are too long."""

    texts: pa.Array
    rows: Int64[np.ndarray, " rows"]
    faults: tuple[Fault, ...]


def read_lines(path: Path) -> Lines:
    """The file line by line, without line ends."""
    data = read_text(path)
    raw = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(raw == NEWLINE)
    starts = np.concatenate([[0], ends[:-1] + 1])
    texts = spans(data, starts, ends - ends_with_return(raw, starts, ends))
    rows = np.flatnonzero(ends > starts + ends_with_return(raw, starts, ends))
    is_long = (ends - starts)[rows] > LINE_LIMIT
    faults = too_long(path, rows[is_long])
    rows = rows[~is_long]
    return Lines(texts.take(pa.array(2 * rows)).cast(pa.string()), rows, faults)


def ends_with_return(
    raw: np.ndarray, starts: Int64[np.ndarray, " spans"], ends: Int64[np.ndarray, " spans"]
) -> Int64[np.ndarray, " spans"]:
    """1 for each span of bytes whose last byte is the first half of a CRLF, else 0."""
    return ((ends > starts) & (raw[np.maximum(ends, 1) - 1] == RETURN)).astype(np.int64)


def spans(data: bytes, starts: Int64[np.ndarray, " spans"], ends: Int64[np.ndarray, " spans"]) -> pa.Array:
    """Spans of a text as an array over the text itself: span i is item 2 i, what follows it item 2 i + 1."""
    offsets = np.column_stack([starts, ends]).ravel()
    buffers = pa.py_buffer(np.ascontiguousarray(offsets)), pa.py_buffer(data)
    return pa.LargeStringArray.from_buffers(max(len(offsets) - 1, 0), *buffers)


def too_long(path: Path, rows: Int64[np.ndarray, " rows"]) -> tuple[Fault, ...]:
    """The fault of lines beyond the limit."""

    def error(row: int) -> DataError:
        what = f"the line is longer than {LINE_LIMIT:,} bytes"
        hint = "write one fact a line; a missing line end or quote makes one line of many"
        return DataError(what, where=line_location(path, row), hint=hint)

    return (Fault(rows, error),) if len(rows) else ()


def line_location(path: Path, row: int, column: int | None = None) -> Location:
    """Where a line (row, from 0) of a file stands, with its beginning; `column` counts characters from 1."""
    try:
        data, ends = kept_text(path)
    except (OSError, DataError):  # gone since it was read
        return Location(str(path), row + 1, column)
    text = data[ends[row - 1] + 1 if row else 0 : ends[row]].removesuffix(b"\r").decode("utf-8")
    return Location(str(path), row + 1, column, shortened(text, max(EXCERPT, (column or 0) + EXCERPT // 2)))


def kept_text(path: Path) -> tuple[bytes, Int64[np.ndarray, " lines"]]:
    """The file's text and the ends of its lines, kept until another is asked for: errors come in crowds."""
    state = path.stat()
    return _kept_text(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=1)
def _kept_text(path: Path, changed: int, size: int) -> tuple[bytes, Int64[np.ndarray, " lines"]]:
    data = read_text(path)
    return data, np.flatnonzero(np.frombuffer(data, np.uint8) == NEWLINE)
