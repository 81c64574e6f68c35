"""What is known: tables of facts in any format -> facts by predicate, each with the way back to its line."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Int64

from r2n.errors import ConfigError, DataError, Location, nearest
from r2n.knowledge.reading.headers import FirstRow, is_header
from r2n.knowledge.reading.json_tables import json_location, read_json, read_json_lines
from r2n.knowledge.reading.layout import statements
from r2n.knowledge.reading.postgres import PostgresTable, is_postgres
from r2n.knowledge.reading.prolog_facts import looks_like_atoms, read_prolog_facts
from r2n.knowledge.reading.rdf import file_location, read_rdf
from r2n.knowledge.reading.records import Fault, OnError, Records, Statements, settle, shortened
from r2n.knowledge.reading.stored_tables import read_arrow, read_parquet, read_sqlite, row_location, source_name
from r2n.knowledge.reading.text_files import PACKED, check_file, first_written_line, line_location
from r2n.knowledge.reading.text_tables import COMMA, TAB, first_rows, read_text_table
from r2n.logic.theory import Theory

TRIPLE_WIDTHS = (3, 4)  # head relation tail, and a label


@dataclass(frozen=True, slots=True)
class Table:
    """Where facts stand, and how to read them.

    `source` is a file, a PostgresTable or the address of a database, or an object with `__arrow_c_stream__` (pandas,
    polars, pyarrow). Without `predicate` its rows are triples `head relation tail`, perhaps with a label 1/0 as fourth
    column, or facts that name their predicate (`p(a, b).`, RDF); with it, all columns are arguments. `columns` picks
    the arguments (or head, relation, tail) by name, `label` the labels; a column called label or truth is one anyway.
    `header` says whether the first row of a TSV or CSV file holds the names of its columns. None: where columns are
    picked by name it does; else `r2n.knowledge.reading.headers` decides by what the row and those below it hold.
    `table` is the one to read of an SQLite file or a database with several. `called` is how errors call the source.
    `format` says what a file is where its ending does not: a name in NAMED_FORMATS. `empty`: "skip" where a row with an
    empty cell states nothing, as in a table of many columns; by default that is an error.
    """

    source: Path | object
    predicate: str | None = None
    columns: tuple[str, ...] = ()
    label: str | None = None
    header: bool | None = None
    table: str | None = None
    called: str | None = None
    format: str | None = None
    empty: str = "error"

    def __post_init__(self) -> None:
        """Check what can be told without reading."""
        if isinstance(self.source, str):
            object.__setattr__(self, "source", self._named(self.source))
        if isinstance(self.columns, str):
            raise ConfigError(f"columns is a list of names, not one text: '{self.columns}'")
        object.__setattr__(self, "columns", tuple(self.columns))
        if not isinstance(self.source, Path | PostgresTable) and not hasattr(self.source, "__arrow_c_stream__"):
            kind = type(self.source).__name__
            what = f"facts come from a file or from a pandas, polars or pyarrow table, not from a {kind}"
            raise ConfigError(what, hint="convert it, for instance with pyarrow.table({...})")
        if self.format is not None and self.format not in NAMED_FORMATS:
            hint = f"{nearest(self.format, NAMED_FORMATS)} there is: {', '.join(NAMED_FORMATS)}".strip()
            raise ConfigError(f"there is no format '{self.format}'", where=Location(self.name), hint=hint)
        if self.empty not in ("error", "skip"):
            raise ConfigError(f"empty is 'error' or 'skip', not '{self.empty}'", where=Location(self.name))
        if self.label is not None and self.label in self.columns:
            raise ConfigError(
                f"column '{self.label}' is picked both as label and as argument", where=Location(self.name)
            )
        if self.header is False and (self.columns or self.label):
            raise ConfigError("columns are picked by name, but header is false", where=Location(self.name))

    def _named(self, source: str) -> "Path | PostgresTable":
        """What a text names: a file, or a database, of which `table` says which one to read."""
        return PostgresTable(source, name=self.table) if is_postgres(source) else Path(source)

    @property
    def name(self) -> str:
        """How errors call the source."""
        if self.called is not None:
            return self.called
        return str(self.source) if isinstance(self.source, Path | PostgresTable) else source_name(self.source)


@runtime_checkable
class Located(Protocol):
    """A source that knows itself where its rows stand."""

    def locate(self, row: int) -> Location:
        """The place of a row, from 0."""
        ...


@dataclass(frozen=True, eq=False, slots=True)
class Facts:
    """The facts of one predicate and arity in one source.

    `arguments` holds an array of constants (text) per position. `rows` says where each fact stands in the
    source, from 0: its line in a text file, else its record. `names` are those of the columns of the arguments, ()
    where the source names none.
    """

    predicate: str
    arguments: tuple[pa.Array, ...]
    truth: Bool[np.ndarray, " facts"]
    rows: Int64[np.ndarray, " facts"]
    table: Table
    names: tuple[str, ...] = ()

    def __len__(self) -> int:
        """The number of facts."""
        return len(self.rows)

    def location(self, i: int) -> Location:
        """Where the i-th fact stands: file and line, or record; the line is looked up only now."""
        source, row = self.table.source, int(self.rows[i])
        if isinstance(source, Located):
            return source.locate(row)
        if not isinstance(source, Path):
            where = row_location(self.table.name, row)
        else:
            where = format_of(source, self.table.format).locate(source, row)
        if where.excerpt is not None or where.line is not None:
            return where
        constants = ", ".join(argument[i].as_py() for argument in self.arguments)
        return Location(where.source, excerpt=shortened(f"{self.predicate}({constants})"))


@dataclass(frozen=True, eq=False, slots=True)
class FactRows:
    """What a table holds: its facts by predicate, and an error for each row that was left out.

    `empty` counts the rows that were allowed to state nothing. `first` is the first row, where nobody says whether it
    is a header.
    """

    facts: tuple[Facts, ...]
    rejected: tuple[DataError, ...]
    empty: int = 0
    first: FirstRow | None = None


Read = tuple[tuple[Statements, ...], tuple[Fault, ...]]


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file: how it is read, and how a row of it is found again."""

    read: Callable[[Table, Path], Read]
    locate: Callable[[Path, int], Location]
    may_be_packed: bool = True


NO_THEORY = Theory()


def read_facts(table: Table, *, on_error: OnError = "raise", theory: Theory = NO_THEORY) -> FactRows:
    """The facts of a table, by predicate.

    A row that cannot be read is a DataError that names its place; `on_error="skip"` collects these errors and
    keeps the other rows. A file that cannot be read at all (missing, empty, damaged, no UTF-8) always raises. The names
    in the `theory` help to see whether a table has a header.
    """
    if on_error not in ("raise", "skip"):
        raise ConfigError(f"on_error is 'raise' or 'skip', not '{on_error}'")
    if isinstance(path := table.source, Path):
        found = checked_format(table, path)
        table, first = with_header(table, found, theory)
        return replace(gathered(table, found.read(table, path), on_error), first=first)
    records = table.source.records() if isinstance(table.source, PostgresTable) else read_arrow(table.source)
    return gathered(table, from_records(table, records), on_error)


def checked_format(table: Table, path: Path) -> Format:
    """The format of a table's file; refused is a file that is none, that looks like another format, or has no parts."""
    check_file(path)
    found = format_of(path, table.format)
    if table.format is None and found in MISTAKEN_FOR:
        _refuse_atoms(table, path, MISTAKEN_FOR[found])
    if table.table is not None and found is not SQLITE:
        raise ConfigError("only SQLite files have a `table` to pick", where=Location(table.name))
    return found


def with_header(table: Table, found: Format, theory: Theory) -> tuple[Table, FirstRow | None]:
    """A table of which is said whether it has a header, and its first row, where that was not said before."""
    if not isinstance(table.source, Path) or found not in SEPARATORS or table.header is not None:
        return table, None
    if table.columns or table.label:
        return replace(table, header=True), None
    row, columns = first_rows(table.source, SEPARATORS[found])
    if not columns:
        return replace(table, header=False), None
    is_one = is_header(columns, table.predicate, theory, (table.source.name.split(".")[0],))
    cells = tuple(column[0].as_py().strip() for column in columns)
    return replace(table, header=is_one), FirstRow(cells, row, table.name, is_one)


def gathered(table: Table, read: Read, on_error: OnError = "raise") -> FactRows:
    """What was read of a table, by predicate; rows that were refused raise, or are told."""
    parts, faults = read
    rejected = settle(faults, on_error)
    empty = sum(len(fault.rows) for fault in faults if fault.is_allowed)
    return FactRows(tuple(facts for part in parts for facts in _by_predicate(part, table)), rejected, empty)


def _by_predicate(part: Statements, table: Table) -> list[Facts]:
    """The statements of each predicate together, predicates in the order of first sight."""
    encoded = part.predicates.dictionary_encode()
    codes = encoded.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    arguments = [column.take(pa.array(order)) for column in part.arguments]
    truth, rows, names = part.truth[order], part.rows[order], part.names
    bounds = np.searchsorted(codes[order], np.arange(len(encoded.dictionary) + 1))
    return [
        Facts(name, tuple(part[start:end] for part in arguments), truth[start:end], rows[start:end], table, names)
        for name, (start, end) in zip(encoded.dictionary.to_pylist(), pairwise(bounds.tolist()), strict=True)
    ]


def from_records(table: Table, records: Records) -> Read:
    """What records state, as the table says to read them."""
    part, faults = statements(records, table.predicate, table.columns, table.label, may_be_empty=table.empty == "skip")
    return (part,), faults


def _read_text_table(separator: int, table: Table, path: Path) -> Read:
    return from_records(table, read_text_table(path, separator, bool(table.header), text_widths(table)))


def text_widths(table: Table) -> tuple[int, ...]:
    """How many columns a table of text may have; none: any number."""
    return TRIPLE_WIDTHS if table.predicate is None else ()


def _read_prolog_facts(table: Table, path: Path) -> Read:
    _refuse_picking(table)
    return read_prolog_facts(path)


def _read_rdf(language: str, table: Table, path: Path) -> Read:
    _refuse_picking(table)
    return from_records(table, read_rdf(path, language))


def _refuse_atoms(table: Table, path: Path, kind: str) -> None:
    """Facts p(a, b) in a file of another ending: cut at their commas, some of them would even pass for triples."""
    row, line = first_written_line(path)
    is_atom = looks_like_atoms(line)
    if is_atom and (table.predicate is None or line.lstrip(" !").startswith(f"{table.predicate}(")):
        ending = path.name.removeprefix(path.name.split(".")[0])
        raise DataError(
            f"this looks like facts written as p(a, b), but the ending {ending} says {kind}",
            where=Location(str(path), row + 1, None, shortened(line)),
            hint=f'write {{ file = "{path.name}", format = "prolog" }} in the problem file, in Python'
            " Table(path, format='prolog'); or call the file .pl",
        )


def _refuse_picking(table: Table) -> None:
    if table.predicate is not None or table.columns or table.label:
        hint, where = "leave out predicate, columns and label", Location(table.name)
        raise ConfigError("these facts name their predicates themselves", where=where, hint=hint)


TSV = Format(partial(_read_text_table, TAB), line_location)
CSV = Format(partial(_read_text_table, COMMA), line_location)
PARQUET = Format(lambda table, path: from_records(table, read_parquet(path)), row_location, False)
JSON = Format(lambda table, path: from_records(table, read_json(path)), json_location)
JSON_LINES = Format(lambda table, path: from_records(table, read_json_lines(path)), line_location)
SQLITE = Format(lambda table, path: from_records(table, read_sqlite(path, table.table)), row_location, False)
NTRIPLES, TURTLE, RDF_XML = (Format(partial(_read_rdf, name), file_location) for name in ("nt", "turtle", "xml"))
PROLOG = Format(_read_prolog_facts, line_location)

SEPARATORS = {TSV: TAB, CSV: COMMA}

NAMED_FORMATS = {
    "tsv": TSV,
    "csv": CSV,
    "parquet": PARQUET,
    "json": JSON,
    "jsonl": JSON_LINES,
    "sqlite": SQLITE,
    "ntriples": NTRIPLES,
    "turtle": TURTLE,
    "rdf-xml": RDF_XML,
    "prolog": PROLOG,
}
MISTAKEN_FOR = {TSV: "columns apart by tabs", CSV: "columns apart by commas", SQLITE: "an SQLite database"}
"""Formats that files of facts p(a, b) often have the ending of."""

FORMATS = {
    **dict.fromkeys((".tsv", ".txt", ".tab"), TSV),
    ".csv": CSV,
    ".parquet": PARQUET,
    ".json": JSON,
    **dict.fromkeys((".jsonl", ".ndjson"), JSON_LINES),
    **dict.fromkeys((".sqlite", ".sqlite3", ".db"), SQLITE),
    ".nt": NTRIPLES,
    ".ttl": TURTLE,
    **dict.fromkeys((".rdf", ".owl"), RDF_XML),
    **dict.fromkeys((".pl", ".nl", ".nlt", ".facts", ""), PROLOG),
}


def format_of(path: Path, called: str | None = None) -> Format:
    """The format of a file: as it is called, or by the file's name: that of train.tsv.gz is TSV."""
    if called is not None:
        return NAMED_FORMATS[called]
    is_packed = path.suffix.lower() in PACKED
    suffix = Path(path.stem if is_packed else path.name).suffix
    found = FORMATS.get(suffix.lower())
    if found is None or (is_packed and not found.may_be_packed):
        known = ", ".join(name for name in FORMATS if name)
        what = f"no reader for '{suffix}{path.suffix if is_packed else ''}' files"
        hint = f"known: {known}; text also with .gz or .zst behind; no ending means `p(a, b).` facts;"
        hint += ' or say what it is: format = "prolog", in the problem file beside file = ...'
        raise DataError(what, where=Location(str(path)), hint=hint)
    return found
