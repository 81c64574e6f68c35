"""Rows as they are read, their location in a file, and the formats of files."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import ClassVar, Literal

import duckdb
import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Int64

from r2n.errors import ConfigError, DataError, Location, nearest
from r2n.files import check_regular

EXCERPT = 80
MOST_WHOLE = 2**53  # from here on, decimal numbers do not have all whole ones
PACKED = {".gz": "gzip", ".zst": "zstd"}
NO_CONSTANTS = {
    "list": "write a row for each item (frame.explode of pandas and polars does), or pick others with `columns`",
    **dict.fromkeys(
        ("struct", "map", "object"), "make a column of each of its parts, or pick other columns with `columns`"
    ),
    "number": "keep whole numbers as integers (astype('Int64') of pandas) or as text; where there is no value, leave"
    ' the cell empty, and set empty = "skip"',
}
"""What cells hold that are no constants, and what to do about them."""
OnError = Literal["raise", "skip"]
ENDLESS = "if it recurs without end, bound it; if it is only large, store its rows as a table and read that"


@dataclass(frozen=True, eq=False, slots=True)
class Fault:
    """Rows of a source that are refused for one reason, which `error` gives by row; those allowed are only counted."""

    rows: Int64[np.ndarray, " rows"]
    error: Callable[[int], DataError]
    is_allowed: bool = False


Locate = Callable[..., Location]
"""Gives the location of a row (from 0) of a source, and perhaps of one of its columns (from 0)."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Which columns hold predicates (None: there is but one), arguments, and labels (None: all are true)."""

    predicate: int | None
    arguments: tuple[int, ...]
    label: int | None


@dataclass(frozen=True, eq=False, slots=True)
class Records:
    """The readable rows of a source, by column.

    `names` are the columns' names, if any; `rows` is the line of each row in a text file, else its record, from 0.
    `kinds` has for each column (or is empty) what cells are that are no constants: a key of NO_CONSTANTS.
    """

    source: str
    names: tuple[str, ...]
    columns: tuple[pa.Array, ...]
    rows: Int64[np.ndarray, " rows"]
    locate: Locate
    faults: tuple[Fault, ...] = ()
    kinds: tuple[pa.Array, ...] = ()
    layout: Layout | None = None

    def without(
        self, bad: Bool[np.ndarray, " rows"], error: Callable[[int], DataError], *, is_allowed: bool = False
    ) -> "Records":
        """These records minus the bad ones, which `error` explains by their row."""
        if not bad.any():
            return self
        good = pa.array(np.flatnonzero(~bad))
        columns, kinds = (tuple(part.take(good) for part in parts) for parts in (self.columns, self.kinds))
        faults = (*self.faults, Fault(self.rows[bad], error, is_allowed))
        return replace(self, columns=columns, rows=self.rows[~bad], faults=faults, kinds=kinds)

    def column(self, name: str) -> int:
        """The index of the column of that name."""
        if self.names.count(name) == 1:
            return self.names.index(name)
        what = f"{'two columns are' if name in self.names else 'no column is'} called '{name}'"
        hint = f"{nearest(name, self.names)} the columns are: {shortened(', '.join(self.names), 200)}".strip()
        raise DataError(what, where=Location(self.source), hint=hint)

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


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How a file is read: whether the first row is a header, the allowed numbers of columns, the table to pick."""

    header: bool = False
    widths: tuple[int, ...] = ()
    table: str | None = None


class TableFormat(ABC):
    """A format of files with rows of facts or features: one class, registered with `@register_format`.

    Another package brings a format by an entry point of the group `r2n.readers` with the format's name, which loads
    the module or the class.
    """

    name: ClassVar[str]  # what `format = ...` calls it
    suffixes: ClassVar[tuple[str, ...]] = ()  # the endings of its files, with the dot, in lower case
    may_be_packed: ClassVar[bool] = False  # whether .gz or .zst may follow the ending; `read_text` unpacks such a file
    has_names: ClassVar[bool] = True  # whether its columns have names, as features need
    has_tables: ClassVar[bool] = False  # whether a file has several tables, of which `table` picks one
    names_predicates: ClassVar[bool] = False  # whether each row names its predicate: nothing is to be picked then
    separator: ClassVar[int | None] = None  # the byte between two cells of a text whose first row may be a header
    mistaken_for: ClassVar[str | None] = None  # what its ending says, if files of facts p(a, b) often have it
    needs: ClassVar[tuple[str, str] | None] = None  # the module that it needs, and how to install it

    @abstractmethod
    def records(self, path: Path, options: ReadOptions) -> Sequence[Records]:
        """The rows of a file, those of one width together; `DataError` if it cannot be read."""

    def chunks(self, path: Path, options: ReadOptions, size: int) -> Iterator[Records] | None:
        """The rows of a file in parts of `size` rows, with memory for one part; None if it is read as a whole."""
        return None

    def check_installed(self, path: Path) -> None:
        """Refuse to read without the module that the format needs."""
        try:
            if self.needs is not None:
                import_module(self.needs[0])
        except ImportError:
            what, where = f"reading {self.name} needs {self.needs and self.needs[0]}", Location(str(path))
            raise ConfigError(what, where=where, hint=self.needs and self.needs[1]) from None


_FORMATS: dict[str, TableFormat] = {}
_entry_points = cache(lambda: entry_points(group="r2n.readers"))


def register_format(kind: type[TableFormat]) -> type[TableFormat]:
    """Add a format, by its name."""
    _FORMATS[kind.name] = kind()
    return kind


def table_formats() -> Mapping[str, TableFormat]:
    """All formats by name, those of other packages too."""
    for point in _entry_points():
        if point.name not in _FORMATS:
            loaded = point.load()
            if isinstance(loaded, type) and issubclass(loaded, TableFormat):
                register_format(loaded)
    return _FORMATS


def format_of(path: Path, called: str | None = None) -> TableFormat:
    """The format of a file: as it is called, or by the file's name: that of train.tsv.gz is TSV."""
    if called is not None:
        return table_formats()[called]
    is_packed = path.suffix.lower() in PACKED
    suffix = Path(path.stem if is_packed else path.name).suffix
    found = next((kind for kind in table_formats().values() if suffix.lower() in kind.suffixes), None)
    if found is not None and (found.may_be_packed or not is_packed):
        return found
    endings = ", ".join(sorted(ending for kind in table_formats().values() for ending in kind.suffixes if ending))
    raise DataError(
        f"no reader for '{suffix}{path.suffix if is_packed else ''}' files",
        where=Location(str(path)),
        hint=f"known: {endings}; text also with .gz or .zst behind; no ending means `p(a, b).` facts;"
        ' or say what it is: format = "prolog", in the problem file next to file = ...',
    )


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


def check_file(path: Path) -> None:
    """A DataError unless the path is a file with something in it."""
    where = Location(source=str(path))
    try:
        size = path.stat().st_size
        if not path.is_dir():
            check_regular(path)
    except (FileNotFoundError, NotADirectoryError):
        hint = f"there is no folder {path.parent} either"
        if path.parent.is_dir():
            names = sorted(entry.name for entry in path.parent.iterdir())
            hint = nearest(path.name, names) or f"look into {path.parent}"
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


def row_location(source: Path | str, row: int, column: int | None = None) -> Location:
    """A record of a source that has no lines. (Errors name its columns in words.)"""
    return Location(f"{source}, row {row + 1}")


def number_text(number: str) -> str:
    """The SQL of a decimal number as text: without a fraction where it has none, as if it had been an integer."""
    is_whole = f"abs({number}) < {MOST_WHOLE} AND {number} = floor({number})"
    as_whole, as_is = f"CAST(CAST({number} AS BIGINT) AS VARCHAR)", f"CAST({number} AS VARCHAR)"
    return f"CASE WHEN {is_whole} THEN {as_whole} ELSE {as_is} END"


def number_kind(number: str) -> str:
    """The SQL that is 'number' where a decimal number is no constant: not finite, or without its last digits."""
    return f"CASE WHEN abs({number}) >= {MOST_WHOLE} THEN 'number' END"  # DuckDB holds NaN for the largest


def fetch_texts(relation: duckdb.DuckDBPyRelation) -> tuple[pa.Array, ...]:
    """The columns of a query's answer, all text."""
    return tuple(join_chunks(column.chunks) for column in relation.to_arrow_table().columns)


def join_chunks(chunks: Iterable[pa.Array]) -> pa.Array:
    """Chunks of text as one array."""
    return pa.chunked_array(list(chunks), pa.string()).combine_chunks()
