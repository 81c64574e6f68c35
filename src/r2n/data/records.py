"""Rows as they are read, the formats of files, and sources that have columns: Parquet, SQLite, PostgreSQL, Arrow."""

import os
import re
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, ClassVar, Literal
from urllib.parse import parse_qsl, quote, urlsplit

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from jaxtyping import Bool, Int64

from r2n.errors import ConfigError, DataError, Location, first_names, nearest
from r2n.files import check_regular, json_text

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
    """How a file is read: whether the first row is a header, the allowed numbers of columns, the table to pick.

    `header` may be a function that decides it, from the columns of the first rows and the line of the first (from 0).
    """

    header: bool | Callable[[Sequence[pa.Array], int], bool] = False
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


def cell_text(value: object) -> tuple[str | None, str | None]:
    """A value of Python as text, and what it is (a key of NO_CONSTANTS) where it is no constant."""
    if value is None or type(value) is str:
        return value, None
    if isinstance(value, float):
        is_constant = abs(value) < MOST_WHOLE
        return str(int(value) if is_constant and value.is_integer() else value), None if is_constant else "number"
    if isinstance(value, bytes):
        return value.decode("utf-8"), None
    if isinstance(value, int):
        return str(value).lower(), None  # true, false
    return json_text(value), "list" if isinstance(value, list) else "object"


def texts_and_kinds(columns: Iterable[Iterable[object]]) -> tuple[tuple[pa.Array, ...], tuple[pa.Array, ...]]:
    """Columns of values of Python as text, and what those are that are no constants."""
    cells = [list(map(cell_text, column)) for column in columns]
    texts, kinds = (tuple(pa.array([cell[i] for cell in column], pa.string()) for column in cells) for i in (0, 1))
    return texts, kinds


def quoted_name(name: str) -> str:
    """The name of a table or column in SQL."""
    return '"' + name.replace('"', '""') + '"'


def fetch_texts(relation: duckdb.DuckDBPyRelation) -> tuple[pa.Array, ...]:
    """The columns of a query's answer, all text."""
    return tuple(join_chunks(column.chunks) for column in relation.to_arrow_table().columns)


def join_chunks(chunks: Iterable[pa.Array]) -> pa.Array:
    """Chunks of text as one array."""
    return pa.chunked_array(list(chunks), pa.string()).combine_chunks()


INDEX_OF_PANDAS = "__index_level_"
SQLITE_BATCH = 100_000
MOST_ROWS_A_BYTE, MANY = 100, 1_000_000  # rows of facts differ: more of them from one byte are none
MOST_STEPS = 10**9  # of SQLite for a view: about twenty seconds; a table ends by itself
STEPS_AT_ONCE = 10**6


def read_arrow(source: object, name: str | None = None) -> Records:
    """The rows of an object that speaks Arrow's PyCapsule interface; errors call it by its name, or its type."""
    name = name or source_name(source)
    try:
        return as_text(pa.table(source), name)
    except (pa.ArrowException, duckdb.Error, TypeError, ValueError) as error:
        what = f"this cannot be read as a table ({shortened('; '.join(map(str, error.args)), 200)})"
        hint = (
            "give each column one type, text or numbers: frame['COLUMN'].astype(str); of lists, frame.explode('COLUMN')"
        )
        raise DataError(what, where=Location(name), hint=f"{hint} makes rows") from None


@register_format
class Parquet(TableFormat):
    """Parquet."""

    name, suffixes = "parquet", (".parquet",)

    def records(self, path: Path, options: ReadOptions) -> Sequence[Records]:
        """The rows of the file."""
        with _opened(path) as file:
            return [as_text(file.read(), str(path))]


@contextmanager
def _opened(path: Path) -> Iterator[pq.ParquetFile]:
    """A file, unless it says that it has far more rows than it has room for: they would fill the memory."""
    try:
        with pq.ParquetFile(path) as file:
            rows = sum(file.metadata.row_group(i).num_rows for i in range(file.num_row_groups))
            size = path.stat().st_size
            if rows > MANY and rows > MOST_ROWS_A_BYTE * size:
                raise unreadable(path, "a table of facts", f"{rows:,} rows in {size:,} bytes repeat each other")
            yield file
    except (pa.ArrowException, duckdb.Error, OSError) as error:
        raise unreadable(path, "Parquet", error) from None


def source_name(source: object) -> str:
    """How errors call an object: `pandas.DataFrame`."""
    return f"{type(source).__module__.split('.')[0]}.{type(source).__name__}"


def as_text(table: pa.Table, source: str) -> Records:
    """Every column as text; null stays null."""
    kept = [j for j, name in enumerate(table.column_names) if not name.startswith(INDEX_OF_PANDAS)]
    names = tuple(table.column_names[j] for j in kept)
    plain = [_plain(table.column(j)) for j in kept]
    columns: tuple[pa.Array, ...] = ()
    kinds = columns
    if plain:
        cells = zip(*(cell_sql(f"c{j}", column.type) for j, column in enumerate(plain)), strict=True)
        with closing(duckdb.connect()) as connection:
            connection.register("given", pa.table(plain, [f"c{j}" for j in range(len(plain))]))
            selected = ", ".join(text for part in cells for text in part)
            columns, kinds = _halves(fetch_texts(connection.sql(f"SELECT {selected} FROM given")))
    return Records(source, names, columns, np.arange(table.num_rows), partial(row_location, source), kinds=kinds)


def _halves(found: Iterable[pa.Array]) -> tuple[tuple[pa.Array, ...], tuple[pa.Array, ...]]:
    """The columns as text, and behind them as many columns of what their cells are."""
    parts = tuple(found)
    return parts[: len(parts) // 2], parts[len(parts) // 2 :]


def cell_sql(name: str, kind: pa.DataType) -> tuple[str, str]:
    """The SQL of a cell as text, and of what it is where it is no constant; DuckDB and Spark read it alike."""
    if pa.types.is_floating(kind):
        return number_text(name), number_kind(name)
    if pa.types.is_decimal(kind) and kind.scale > 0:
        return f"regexp_replace(CAST({name} AS VARCHAR), '\\.?0+$', '')", "CAST(NULL AS VARCHAR)"
    if not pa.types.is_nested(kind):
        return f"CAST({name} AS VARCHAR)", "CAST(NULL AS VARCHAR)"
    held = "map" if pa.types.is_map(kind) else "struct" if pa.types.is_struct(kind) else "list"
    return f"CAST({name} AS VARCHAR)", f"CASE WHEN {name} IS NOT NULL THEN '{held}' END"


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values of a dictionary (of texts DuckDB reads it), and bytes as the UTF-8 text that they hold."""
    if pa.types.is_dictionary(column.type) and str(column.type.value_type) not in ("string", "large_string"):
        column = pa.chunked_array([part.dictionary_decode() for part in column.chunks], column.type.value_type)
    return column.cast(pa.large_string()) if str(column.type) in ("binary", "large_binary") else column


@register_format
class SQLite(TableFormat):
    """A table or view of an SQLite file: the one named, or the only one."""

    name, suffixes, has_tables = "sqlite", (".sqlite", ".sqlite3", ".db"), True
    mistaken_for = "an SQLite database"

    def records(self, path: Path, options: ReadOptions) -> Sequence[Records]:
        """The rows of the table."""
        name, where = options.table, Location(str(path))
        try:
            with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as connection:
                query = "SELECT name, type FROM sqlite_master"
                query += " WHERE type IN ('table', 'view') AND substr(name, 1, 7) <> 'sqlite_'"
                kinds = dict(connection.execute(query))
                if name is None and len(kinds) == 1:
                    (name,) = kinds
                if name is None or name not in kinds:
                    what = f"the database has no table '{name}'" if name else f"the database has {len(kinds)} tables"
                    near, listed = nearest(name or "", kinds), ", ".join(sorted(kinds)) or "none"
                    hint = f"{near} say which with `table`; the tables are: {listed}".strip()
                    raise DataError(what, where=where, hint=hint)
                if kinds[name] == "view":
                    left = iter(range(MOST_STEPS // STEPS_AT_ONCE))
                    connection.set_progress_handler(lambda: next(left, None) is None, STEPS_AT_ONCE)
                return [_sqlite_rows(path, connection, name)]
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
                what = f"the view '{name}' has not ended after {MOST_STEPS:,} steps of SQLite"
                raise DataError(what, where=where, hint=ENDLESS) from None
            raise unreadable(path, "an SQLite database", error) from None


def _sqlite_rows(path: Path, connection: sqlite3.Connection, table: str) -> Records:
    cursor = connection.execute(f"SELECT * FROM {quoted_name(table)}")
    names, size, count = tuple(column[0] for column in cursor.description), path.stat().st_size, 0
    batches = [texts_and_kinds(() for _ in names)]
    while rows := cursor.fetchmany(SQLITE_BATCH):
        count += len(rows)
        if count > MANY and count > MOST_ROWS_A_BYTE * size:  # as no table has: it would fill the memory
            what = f"the view '{table}' has given {count:,} rows from {size:,} bytes, and has not ended"
            raise DataError(what, where=Location(str(path)), hint=ENDLESS)
        batches.append(texts_and_kinds(zip(*rows, strict=True)))
    columns, kinds = (tuple(map(join_chunks, zip(*part, strict=True))) for part in zip(*batches, strict=True))
    return Records(str(path), names, columns, np.arange(count), partial(row_location, str(path)), kinds=kinds)


SCHEMES = ("postgresql", "postgres")
SECONDS_TO_CONNECT = 10
SECRET = ("password", "sslpassword")
NOT_LET_IN = ("password", "authentication failed", "role ", "no pg_hba.conf entry")
WHO_ASKS = "say who asks in the environment: PGUSER, and PGPASSWORD or a file ~/.pgpass (or PGPASSFILE)"
MOST_LISTED = 20
TABLES = (
    "SELECT table_schema::text, table_name::text FROM information_schema.tables"
    " WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2"
)


def is_postgres(text: object) -> bool:
    """Whether a text is the address of a PostgreSQL database."""
    return isinstance(text, str) and text.startswith(tuple(f"{scheme}://" for scheme in SCHEMES))


@dataclass(frozen=True, slots=True)
class PostgresTable:
    """A table of a database, or what a query finds in it.

    `name` is the table's, in `schema` or where the database looks for it; without either it is the only one there is.
    `query` is a SELECT instead.
    """

    url: str
    schema: str | None = None
    name: str | None = None
    query: str | None = None

    def __post_init__(self) -> None:
        """Check what can be checked without a database, above all that the address holds no secret."""
        if not is_postgres(self.url):
            raise ConfigError(f"'{shortened(self.url)}' is no address", hint="write postgresql://HOST/DATABASE")
        try:
            parts = urlsplit(self.url)
            _ = parts.port
        except ValueError as error:
            raise ConfigError(f"the address of a database cannot be read: {error}") from None
        if parts.password is not None or any(key in SECRET for key, _ in parse_qsl(parts.query)):
            raise ConfigError("the address of a database holds a password", hint=f"take it out, and {WHO_ASKS}")
        if self.query is not None and (self.name is not None or self.schema is not None):
            raise ConfigError("facts come from a query or from a table, not from both", where=Location(str(self)))

    def __str__(self) -> str:
        """The address, and what of the database: `postgresql://db/kg people.works_at`."""
        what = "query" if self.query is not None else ".".join(part for part in (self.schema, self.name) if part)
        return f"{self.url} {what}".rstrip()

    def records(self) -> Records:
        """All rows, in the order in which the database gives them, with all cells as text."""
        try:
            import adbc_driver_postgresql.dbapi as driver
        except ImportError:
            raise ConfigError("reading from PostgreSQL needs its driver", hint="pip install r2n[postgres]") from None
        where, batches = Location(str(self)), list[pa.RecordBatch]()
        with closing(_connected(driver, self.url)) as connection, closing(connection.cursor()) as cursor:
            try:
                cursor.execute("SET TRANSACTION READ ONLY")
                selected = _selected(self, cursor)
                cursor.execute(f"SELECT * FROM {selected} AS given LIMIT 0")
                names = tuple(column[0] for column in cursor.description)
                cells = [f"given.c{j}" for j in range(len(names))]
                is_list = "{0} IS NOT NULL AND pg_typeof({0})::text LIKE '%[]'"
                kinds = [f"CASE WHEN {is_list} THEN 'list' END".format(cell) for cell in cells]
                texts = ", ".join([*(f"{cell}::text" for cell in cells), *kinds])
                columns = ", ".join(f"c{j}" for j in range(len(names)))
                cursor.execute(f"SELECT {texts} FROM {selected} AS given({columns})")
                reader = cursor.fetch_record_batch()
                batches.extend(reader)
                table = pa.Table.from_batches(batches, reader.schema)
            except driver.ProgrammingError as error:
                hint = (
                    "mend the query" if self.query is not None else "may this user read it? Else see the database's log"
                )
                raise DataError(f"the database refuses: {_said(error)}", where=where, hint=hint) from None
            except (driver.Error, pa.ArrowException, OSError) as error:
                what = f"the database went away after {sum(batch.num_rows for batch in batches):,} rows: {_said(error)}"
                hint = "nothing was kept of what was read; ask again when the database is there"
                raise DataError(what, where=where, hint=hint) from None
        columns, kinds = _halves(column.combine_chunks() for column in table.columns)
        return Records(
            str(self), names, columns, np.arange(table.num_rows), partial(row_location, str(self)), kinds=kinds
        )


def _connected(driver: Any, address: str) -> Any:
    url = address
    if "connect_timeout" not in url and "PGCONNECT_TIMEOUT" not in os.environ:
        url = f"{url}{'&' if urlsplit(url).query else '?'}connect_timeout={SECONDS_TO_CONNECT}"
    try:
        return driver.connect(url)
    except driver.Error as error:
        said = _said(error)
        is_known = any(words in said for words in NOT_LET_IN)
        hint = WHO_ASKS if is_known else "is the address right, and the server running? Ask it with psql"
        raise DataError(f"the database cannot be reached: {said}", where=Location(address), hint=hint) from None


def _said(error: BaseException) -> str:
    """The first line of libpq's message, without its prefixes."""
    line = (str(error).strip() or type(error).__name__).splitlines()[0]
    return shortened(re.sub(r"^.*(?:ERROR|FATAL): +|^(?:[A-Z_]+: )?\[libpq\] (?:Failed to connect: )?", "", line), 200)


def _selected(table: PostgresTable, cursor: Any) -> str:
    """The table or query, as written behind FROM."""
    if table.query is not None:
        return f"({table.query.strip().rstrip(';')})"
    cursor.execute(TABLES)
    there = [(row[0], row[1]) for row in cursor.fetchall()]
    named = [(schema, name) for schema, name in there if table.schema in (None, schema) and table.name in (None, name)]
    if len(named) != 1:
        wanted = ".".join(part or "*" for part in (table.schema, table.name))
        near = (
            ""
            if named
            else nearest(table.name or table.schema or "", sorted({part for pair in there for part in pair}))
        )
        listed = first_names(map(".".join, there), MOST_LISTED)
        hint = f"{near} say which with `schema` and `name`; the tables are: {listed or 'none that this user may read'}"
        raise DataError(
            f"{len(named) or 'no'} tables are called {wanted}", where=Location(str(table)), hint=hint.strip()
        )
    return ".".join(map(quoted_name, named[0]))
