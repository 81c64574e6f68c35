"""Tables of facts: their columns, headers and rows, from any source."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Int64

from r2n.data.reading.logic_facts import file_location, looks_like_atoms, read_prolog_facts, read_rdf
from r2n.data.reading.records import (
    PACKED,
    Fault,
    Locate,
    OnError,
    Records,
    Statements,
    check_file,
    first_written_line,
    line_location,
    settle,
    shortened,
)
from r2n.data.reading.stored_tables import (
    PostgresTable,
    is_postgres,
    read_arrow,
    read_parquet,
    read_sqlite,
    row_location,
    source_name,
)
from r2n.data.reading.text_tables import (
    COMMA,
    TAB,
    first_rows,
    json_location,
    read_json,
    read_json_lines,
    read_text_table,
)
from r2n.errors import ConfigError, DataError, Location, nearest
from r2n.logic.theory import Theory

HEAD = frozenset({"head", "subject", "source", "from", "h", "s"})
RELATION = frozenset({"relation", "predicate", "property", "r", "p"})
TAIL = frozenset({"tail", "object", "target", "to", "t", "o"})
LABEL = frozenset({"label", "truth"})
TRUE, FALSE = ("1", "1.0", "true"), ("0", "0.0", "false")


@dataclass(frozen=True, slots=True)
class Layout:
    """Which columns hold predicates (None: there is but one), arguments, and labels (None: all are true)."""

    predicate: int | None
    arguments: tuple[int, ...]
    label: int | None


def statements(
    records: Records,
    predicate: str | None,
    columns: tuple[str, ...],
    label: str | None,
    *,
    may_be_empty: bool = False,
) -> tuple[Statements, tuple[Fault, ...]]:
    """What the records state, and the rows with an empty cell (which states nothing) or a label that is none."""
    is_hopeless = not len(records.rows) and len(records.faults) > 0
    if is_hopeless or not records.columns:  # no readable row, or no column: an empty frame, JSON's [] and [{}]
        records = records.without(np.ones(len(records.rows), bool), partial(_states_nothing, records.locate))
        return Statements(pa.array([], pa.string()), (), np.zeros(0, bool), records.rows), records.faults
    layout = layout_of(records, predicate, columns, label)
    used = [column for column in (layout.predicate, *layout.arguments, layout.label) if column is not None]
    for column in sorted(used):
        records = records.with_constants(column)
        records = _without_empty(records, column, is_allowed=may_be_empty and column != layout.label)
    truth = np.ones(len(records.rows), bool)
    if layout.label is not None:
        records, truth = _with_truth(records, layout.label)
    if layout.predicate is None:
        predicates = pa.repeat(pa.scalar(predicate, pa.string()), len(records.rows))
    else:
        predicates = records.columns[layout.predicate]
    arguments = tuple(records.columns[column] for column in layout.arguments)
    names = tuple(records.names[column] for column in layout.arguments) if records.names else ()
    if all(name.lower() in HEAD | TAIL or name.isdecimal() for name in names):  # which say nothing of a predicate
        names = ()
    return Statements(predicates, arguments, truth, records.rows, names), records.faults


def _states_nothing(locate: Locate, row: int) -> DataError:
    hint = "a fact needs its predicate and its constants: write them, or take the row out"
    return DataError("there is nothing in the row", where=locate(row), hint=hint)


def layout_of(records: Records, predicate: str | None, columns: tuple[str, ...], label: str | None) -> Layout:
    """Which column of the records is what: as picked, by usual names, else by their order."""
    width = len(records.columns)
    picked = tuple(_find(records, name) for name in columns)
    labelled = _find(records, label) if label is not None else _find_usual(records, LABEL)
    others = tuple(column for column in range(width) if column != labelled)
    if predicate is not None:
        arguments = picked or others
        if not arguments:
            raise _refuse(records, "there is no column left for the arguments", "give at least one column")
        return Layout(None, arguments, labelled)
    if columns:
        if len(picked) != 3:
            hint = "pick head, relation and tail, in that order; or name the `predicate` of the whole table"
            raise _refuse(records, f"{len(picked)} columns are picked, where triples need 3", hint)
        return Layout(picked[1], (picked[0], picked[2]), labelled)
    head, relation, tail = (_find_usual(records, names) for names in (HEAD, RELATION, TAIL))
    if head is not None and relation is not None and tail is not None and len(others) == 3:
        return Layout(relation, (head, tail), labelled)
    return _in_order(records, labelled, others)


def _in_order(records: Records, labelled: int | None, others: tuple[int, ...]) -> Layout:
    """Triples by the order of their columns, where names do not tell."""
    if labelled is None and len(others) == 4:
        labelled, others = others[3], others[:3]
    if len(others) != 3:
        hint = "separate columns by tabs (TSV) or commas (CSV), pick 3 with `columns`, or name the `predicate`"
        width = len(records.columns)
        what = f"{width} column{'s' * (width != 1)}, where triples have 3, or 4 with a label"
        raise _refuse(records, what, hint)
    return Layout(others[1], (others[0], others[2]), labelled)


def _find(records: Records, name: str) -> int:
    """The column of that name."""
    if records.names.count(name) == 1:
        return records.names.index(name)
    problem = "two columns are" if name in records.names else "no column is"
    hint = f"{nearest(name, records.names)} the columns are: {', '.join(records.names)}".strip()
    raise _refuse(records, f"{problem} called '{name}'", hint)


def _find_usual(records: Records, usual: frozenset[str]) -> int | None:
    """The column with one of these names, if there is exactly one."""
    found = [column for column, name in enumerate(records.names) if name.lower() in usual]
    return found[0] if len(found) == 1 else None


def _refuse(records: Records, what: str, hint: str) -> DataError:
    """The error of a whole table: named columns speak for themselves, else the first row is shown."""
    is_shown = not records.names and len(records.rows)
    where = records.locate(int(records.rows[0])) if is_shown else Location(records.source)
    return DataError(what, where=where, hint=hint)


def _without_empty(records: Records, column: int, *, is_allowed: bool) -> Records:
    """The records whose cell in that column holds something."""
    cells = records.columns[column]
    bad = pc.fill_null(pc.equal(cells, ""), True).to_numpy(zero_copy_only=False)
    name = records.called(column)

    def error(row: int) -> DataError:
        hint = (
            "every constant, relation and label needs a value: fill it in, or take the row out; where an empty cell"
            ' says that there is no such fact, as in a table of many columns, set empty = "skip" beside file = ...'
        )
        return DataError(f"{name} is empty", where=records.locate(row, column), hint=hint)

    return records.without(bad, error, is_allowed=is_allowed)


def _with_truth(records: Records, column: int) -> tuple[Records, Bool[np.ndarray, " rows"]]:
    """The records whose label can be read, and what it says."""
    labels = pc.utf8_lower(records.columns[column])
    is_true, is_false = (
        pc.is_in(labels, value_set=pa.array(values)).to_numpy(zero_copy_only=False) for values in (TRUE, FALSE)
    )
    bad = ~(is_true | is_false)
    rows, values = records.rows[bad], records.columns[column].filter(pa.array(bad))

    def error(row: int) -> DataError:
        value = shortened(values[int(np.searchsorted(rows, row))].as_py(), 40)
        hint = f"column {column + 1} is read as the label: write 1 or 0, or pick other columns with `columns`"
        where = records.locate(row, column)
        return DataError(f"the label '{value}' is neither 1 (true) nor 0 (false)", where=where, hint=hint)

    return records.without(bad, error), is_true[~bad]


WORDS = frozenset({"id", "name", "key", "entity", "node", "start", "end", "argument", "probability", "constant"})
"""Names that columns have besides those of triples and labels."""

_NUMBERED = r"[\s_-]*(\d+|id|name)$"  # person1, office_id, City Name
_NUMBER = r"^[\d\s.,:/+%-]*\d[\d\s.,:/+%-]*$"  # dates and times too
_FEW = 3  # rows below the first that show what a column holds
_RARE = 0.05  # share of rows whose constants occur nowhere else, for such a first row to be unusual


@dataclass(frozen=True, slots=True)
class FirstRow:
    """The first row of a table whose options do not say whether it is a header, and how it is read."""

    cells: tuple[str, ...]
    row: int
    source: str
    is_header: bool

    @property
    def note(self) -> str:
        """What it was taken for, and how to overrule that in a problem file."""
        if self.is_header:
            return self.taken("if it is a fact, write header = false in this table of the problem file")
        shown, where = shortened(", ".join(self.cells)), Location(self.source, self.row + 1)
        return (
            f"{where}: '{shown}' was read as a fact, but its constants occur in no other row, which is"
            " usual for a header;"
            " write header = true in this table of the problem file if these are the names of the columns,"
            " header = false if they are constants"
        )

    def taken(self, overruled: str) -> str:
        """That it was taken for a header, and how that is `overruled`."""
        shown, where = shortened(", ".join(self.cells)), Location(self.source, self.row + 1)
        return f"{where}: '{shown}' was read as the names of the columns; {overruled}"


def is_header(columns: Sequence[pa.Array], predicate: str | None, theory: Theory, called: Collection[str] = ()) -> bool:
    """Whether the first row of some columns of text holds their names.

    Without `predicate` the rows are triples. It does where its cells are the usual names (head relation tail), or
    all of them names of the theory or `called` so, or words above numbers, and none of them occurs in another row.
    """
    first = tuple(column[0].as_py().strip() for column in columns)
    if any(not re.search(r"[^\W\d_]", cell) or cell.lower() in (*TRUE, *FALSE) for cell in first):
        return False
    rows, cells = [_below(column) for column in columns], normal(pa.array(first))
    is_alone = not any(pc.any(pc.is_in(column[1:], value_set=cells)).as_py() for column in rows)
    if _are_roles(first, is_triple=predicate is None):
        return is_alone or all(len(cell) > 1 for cell in first)
    if not is_alone or (predicate is None and first[1:2] and first[1] in _predicates(theory)):
        return False
    if any(_is_above_numbers(column) for column in columns):
        return True
    names = vocabulary(theory, (predicate or "", *called))
    if len(rows[0]) == 1:  # person1 may be a constant: there is no other row to compare it with
        rows = [pc.utf8_lower(pc.utf8_trim_whitespace(column)) for column in columns]
    are_names = [_is_in(column, names) for column in rows]
    is_named = np.logical_and.reduce(are_names)
    return bool(is_named[0]) and not is_named[1:].any()


def _below(column: pa.Array) -> pa.Array:
    """The cells as they are compared with the first: its number, if it has one, may be all that differs."""
    if re.search(r"\d", column[0].as_py()):  # person1 above person2: both are constants, or neither
        return normal(column)
    return pa.concat_arrays([normal(column[:1]), pc.utf8_lower(pc.utf8_trim_whitespace(column[1:]))])


def normal(column: pa.Array) -> pa.Array:
    """Names without case, numbers at their end, `id` and `name`: `City_ID` is `city`."""
    lower = pc.utf8_lower(pc.utf8_trim_whitespace(column))
    short = pc.replace_substring_regex(lower, _NUMBERED, "")
    return pc.if_else(pc.equal(short, ""), lower, short)


def vocabulary(theory: Theory, called: Collection[str] = ()) -> frozenset[str]:
    """Names that a column may have: usual ones, those of the theory, and `called`, all of more than one letter."""
    variables = {name for rule in theory.rules for name in rule.variables}
    own = {*variables, *(domain.name for domain in theory.domains), *_predicates(theory), *called}
    known = {name.casefold() for name in own} | {_singular(name.casefold()) for name in called}
    return frozenset(name for name in known | HEAD | RELATION | TAIL | LABEL | WORDS if len(name) > 1)


def _predicates(theory: Theory) -> set[str]:
    in_rules = {atom.predicate for rule in theory.rules for atom in rule.atoms}
    return in_rules | {predicate.name for predicate in theory.predicates}


def _singular(name: str) -> str:
    return name.removesuffix("ies") + "y" if name.endswith("ies") else name.removesuffix("s")


def _is_in(column: pa.Array, names: Collection[str]) -> np.ndarray:
    return pc.is_in(column, value_set=pa.array(sorted(names), pa.string())).to_numpy(zero_copy_only=False)


def _are_roles(cells: Sequence[str], *, is_triple: bool) -> bool:
    """Whether cells are the usual names in full; of one letter, only `h r t` or `s p o`: `s r t` may be a fact."""
    names = [name for name in (cell.lower() for cell in cells) if name not in LABEL]
    roles = (HEAD, RELATION, TAIL) if is_triple else (HEAD, TAIL)
    has_roles = len(names) == len(roles) and all(len(role.intersection(names)) == 1 for role in roles)
    is_spelled_out = all(len(name) > 1 for name in names)
    return has_roles and (is_spelled_out or any(set(names) <= set(family) for family in ("hrt", "spo")))


def _is_above_numbers(column: pa.Array, pattern: str = _NUMBER) -> bool:
    """Whether every other cell of a column is a number (or has the pattern), and the first has no digit."""
    rest = column[1:]
    is_like = len(rest) >= _FEW and pc.all(pc.match_substring_regex(rest, pattern)).as_py()
    return bool(is_like) and re.search(r"\d", column[0].as_py()) is None


class Occurrences:
    """How often constants occur in tables, by row: all that first rows are compared with, counted once.

    `groups` are columns of constants. `known` are those of the given `first` that occur, `alone` and `rows` for each
    group the number of rows whose constants all occur once, and of all rows.
    """

    def __init__(self, groups: Sequence[Sequence[pa.Array]], first: Collection[str]) -> None:
        """Count."""
        columns = pa.chunked_array([column for group in groups for column in group], pa.string())
        counts = pc.value_counts(columns)
        values, once = counts.field("values"), pc.equal(counts.field("counts"), 1)
        self.known = frozenset(values.filter(pc.is_in(values, pa.array(sorted(first), pa.string()))).to_pylist())
        flags = pc.is_in(columns, value_set=values.filter(once)).to_numpy()
        ends = np.cumsum([len(column) for group in groups for column in group])
        flags = iter(np.split(flags, ends[:-1]))
        alone = [[next(flags) for _ in group] for group in groups]
        self.alone = [int(np.logical_and.reduce(group).sum()) if group else 0 for group in alone]
        self.rows = [len(group[0]) if group else 0 for group in groups]


def is_unusual(
    first: Sequence[str], columns: Sequence[pa.Array], own: Sequence[int], others: Occurrences, names: frozenset[str]
) -> bool:
    """Whether a first row that was read as a fact looks like a header: its constants occur in no other row.

    `columns` are the cells of the table's other rows, which are the groups `own` of the `others`: all rows of the
    problem but first ones. That a constant occurs once is no sign of a header where it is usual; one of the `names`, or
    a word above numbers and codes, is.
    """
    if others.known.intersection(first):
        return False
    below = [pa.concat_arrays([pa.array([cell]), column]) for cell, column in zip(first, columns, strict=True)]
    if _is_in(normal(pa.array(list(first))), names).any() or any(_is_above_numbers(column, r"\d") for column in below):
        return any(others.rows)
    if any(re.search(r"[\d/:#@]", cell) for cell in first):  # as codes and addresses have, and few names of columns
        return False
    compared = own if any(others.rows[i] for i in own) else range(len(others.rows))
    single, rows = (sum(counts[i] for i in compared) for counts in (others.alone, others.rows))
    return rows > 0 and single <= _RARE * rows


TRIPLE_WIDTHS = (3, 4)  # head relation tail, and a label


@dataclass(frozen=True, slots=True)
class Table:
    """Where facts stand, and how to read them.

    `source` is a file, a PostgresTable or the address of a database, or an object with `__arrow_c_stream__` (pandas,
    polars, pyarrow). Without `predicate` its rows are triples `head relation tail`, perhaps with a label 1/0 as fourth
    column, or facts that name their predicate (`p(a, b).`, RDF); with it, all columns are arguments. `columns` picks
    the arguments (or head, relation, tail) by name, `label` the labels; a column called label or truth is one anyway.
    `header` says whether the first row of a TSV or CSV file holds the names of its columns. None: where columns are
    picked by name it does; else `r2n.data.reading.tables` decides by what the row and those below it hold.
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
