"""Tables of facts: their columns, headers and rows, from any source."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Int64

from r2n.data.records import (
    Fault,
    Layout,
    Locate,
    OnError,
    PostgresTable,
    ReadOptions,
    Records,
    TableFormat,
    check_file,
    format_of,
    is_postgres,
    read_arrow,
    row_location,
    settle,
    shortened,
    source_name,
    table_formats,
)
from r2n.data.text_tables import LOOKS_LIKE_ATOM, beginning
from r2n.errors import ConfigError, DataError, Location, counted, nearest
from r2n.logic.theory import Theory

HEAD = frozenset({"head", "subject", "source", "from", "h", "s"})
RELATION = frozenset({"relation", "predicate", "property", "r", "p"})
TAIL = frozenset({"tail", "object", "target", "to", "t", "o"})
LABEL = frozenset({"label", "truth"})
TRUE, FALSE = ("1", "1.0", "true"), ("0", "0.0", "false")
TRIPLE_WIDTHS = (3, 4)  # head relation tail, and a label
NO_THEORY = Theory()


@dataclass(frozen=True, slots=True)
class Table:
    """Where facts are, and how to read them (docs/data.md, "Tables").

    `source` is a file, a PostgresTable or the address of a database, an object with `__arrow_c_stream__` (pandas,
    polars, pyarrow) or with a method `facts`. Without `predicate` its rows are triples, or name their predicates.
    `header` None: there is one if columns are picked by name, else `is_header` decides. Errors call it `called`.
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
        if isinstance(self.source, str):
            is_address = is_postgres(self.source)
            source = PostgresTable(self.source, name=self.table) if is_address else Path(self.source)
            object.__setattr__(self, "source", source)
        if isinstance(self.columns, str):
            raise ConfigError(f"columns is a list of names, not one text: '{self.columns}'")
        object.__setattr__(self, "columns", tuple(self.columns))
        is_known = isinstance(self.source, Path | PostgresTable) or self.gives_facts
        if not is_known and not hasattr(self.source, "__arrow_c_stream__"):
            kind = type(self.source).__name__
            what = f"facts come from a file or from a pandas, polars or pyarrow table, not from a {kind}"
            raise ConfigError(what, hint="convert it, for instance with pyarrow.table({...})")
        where = Location(self.name)
        if self.format is not None and self.format not in table_formats():
            hint = f"{nearest(self.format, table_formats())} there is: {', '.join(table_formats())}".strip()
            raise ConfigError(f"there is no format '{self.format}'", where=where, hint=hint)
        if self.empty not in ("error", "skip"):
            raise ConfigError(f"empty is 'error' or 'skip', not '{self.empty}'", where=where)
        if self.label is not None and self.label in self.columns:
            raise ConfigError(f"column '{self.label}' is picked both as label and as argument", where=where)
        if self.header is False and (self.columns or self.label):
            raise ConfigError("columns are picked by name, but header is false", where=where)

    @property
    def name(self) -> str:
        """How errors call the source."""
        if self.called is not None:
            return self.called
        return str(self.source) if isinstance(self.source, Path | PostgresTable) else source_name(self.source)

    @property
    def gives_facts(self) -> bool:
        """Whether the source gives its facts itself, those of one predicate and arity together."""
        return hasattr(self.source, "facts")


@dataclass(frozen=True, eq=False, slots=True)
class Facts:
    """The facts of one predicate and arity in one source: an array of constants (text) per position.

    `rows` is the line of each fact in a text file, else its record, from 0. `names` are those of the columns, if any.
    """

    predicate: str
    arguments: tuple[pa.Array, ...]
    truth: Bool[np.ndarray, " facts"]
    rows: Int64[np.ndarray, " facts"]
    table: Table
    names: tuple[str, ...] = ()
    locate: Locate | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, which: Int64[np.ndarray, " taken"]) -> "Facts":
        """Some of the facts, by their indices."""
        arguments = tuple(column.take(pa.array(which)) for column in self.arguments)
        return replace(self, arguments=arguments, truth=self.truth[which], rows=self.rows[which])

    def location(self, i: int) -> Location:
        """Where the i-th fact is: file and line, or record; the line is looked up only now."""
        row = int(self.rows[i])
        where = row_location(self.table.name, row) if self.locate is None else self.locate(row)
        if where.excerpt is not None or where.line is not None or self.table.gives_facts:
            return where
        constants = ", ".join(argument[i].as_py() for argument in self.arguments)
        return Location(where.source, excerpt=shortened(f"{self.predicate}({constants})"))


@dataclass(frozen=True, eq=False, slots=True)
class FactRows:
    """What a table holds: its facts by predicate, and an error for each row that was left out.

    `empty` counts the rows allowed to state nothing; `first` is the first row, unless an option says if it is a header.
    """

    facts: tuple[Facts, ...]
    rejected: tuple[DataError, ...]
    empty: int = 0
    first: "FirstRow | None" = None


def read_facts(table: Table, *, on_error: OnError = "raise", theory: Theory = NO_THEORY) -> FactRows:
    """The facts of a table, by predicate.

    A wrong row is a DataError; `on_error="skip"` collects these and keeps the other rows, but a file that cannot be
    read at all always raises. The names in the `theory` help to see whether a table has a header.
    """
    if on_error not in ("raise", "skip"):
        raise ConfigError(f"on_error is 'raise' or 'skip', not '{on_error}'")
    source: Any = table.source
    first: FirstRow | None = None
    if table.gives_facts:
        return FactRows(source.facts(), ())
    if isinstance(source, Path):

        def decided(columns: Sequence[pa.Array], row: int) -> bool:
            nonlocal first
            cells, called = tuple(column[0].as_py().strip() for column in columns), source.name.split(".")[0]
            first = FirstRow(cells, row, table.name, is_header(columns, table.predicate, theory, (called,)))
            return first.is_header

        kind, is_picked = checked_format(table, source), bool(table.columns or table.label)
        header = decided if table.header is None and not is_picked else is_picked or bool(table.header)
        widths = TRIPLE_WIDTHS if table.predicate is None else ()
        records = kind.records(source, ReadOptions(header, widths, table.table))
    else:
        records = [source.records() if isinstance(source, PostgresTable) else read_arrow(source, table.name)]
    parts = [facts_from_records(table, part) for part in records]
    faults = [fault for _, part in parts for fault in part]
    rejected = settle(faults, on_error)
    empty = sum(len(fault.rows) for fault in faults if fault.is_allowed)
    return FactRows(tuple(facts for part, _ in parts for facts in part), rejected, empty, first)


def read_fact_chunks(table: Table, size: int, *, theory: Theory = NO_THEORY) -> Iterator[tuple[Facts, ...]]:
    """The facts of a table in its order, those of `size` rows (lines of a text) at a time, by predicate."""
    facts = read_facts(table, theory=theory).facts
    last = max((int(part.rows[-1]) for part in facts if len(part)), default=-1)
    for start in range(0, last + 1, size):
        within = ((part, np.searchsorted(part.rows, (start, start + size)).tolist()) for part in facts)
        yield tuple(part.take(np.arange(first, end)) for part, (first, end) in within if first < end)


def checked_format(table: Table, path: Path) -> TableFormat:
    """The format of a table's file; a file that is missing, looks like another format or lacks the table is refused."""
    check_file(path)
    found, where = format_of(path, table.format), Location(table.name)
    found.check_installed(path)
    text = beginning(path).decode("utf-8", errors="replace") if table.format is None and found.mistaken_for else ""
    lines = enumerate(line.strip() for line in text.split("\n"))
    row, line = next(((i, line) for i, line in lines if line and not line.startswith(("%", "#", "//"))), (0, ""))
    if LOOKS_LIKE_ATOM.match(line) and (table.predicate is None or line.lstrip(" !").startswith(f"{table.predicate}(")):
        ending = path.name.removeprefix(path.name.split(".")[0])
        raise DataError(  # cut at their commas, some of them would even pass for triples
            f"this looks like facts written as p(a, b), but the ending {ending} says {found.mistaken_for}",
            where=Location(str(path), row + 1, None, shortened(line)),
            hint=f'write {{ file = "{path.name}", format = "prolog" }} in the problem file, in Python'
            " Table(path, format='prolog'); or call the file .pl",
        )
    if table.table is not None and not found.has_tables:
        raise ConfigError("only SQLite files have a `table` to pick", where=where)
    if found.names_predicates and (table.predicate is not None or table.columns or table.label):
        hint = "leave out predicate, columns and label"
        raise ConfigError("these facts name their predicates themselves", where=where, hint=hint)
    return found


def facts_from_records(table: Table, records: Records) -> tuple[list[Facts], tuple[Fault, ...]]:
    """What records state, by predicate; and the rows with an empty cell (which states nothing) or a wrong label."""
    if not records.columns or (not len(records.rows) and records.faults):  # an empty frame, JSON's [] and [{}]
        hint = "a fact needs its predicate and its constants: write them, or take the row out"
        every, what = np.ones(len(records.rows), bool), "there is nothing in the row"
        return [], records.without(every, lambda row: DataError(what, where=records.locate(row), hint=hint)).faults
    layout = records.layout or layout_of(records, table.predicate, table.columns, table.label)
    used = [column for column in (layout.predicate, *layout.arguments, layout.label) if column is not None]
    for column in sorted(used):
        is_allowed = table.empty == "skip" and column != layout.label
        records = _without_empty(records.with_constants(column), column, is_allowed=is_allowed)
    truth = np.ones(len(records.rows), bool)
    if layout.label is not None:
        records, truth = _with_truth(records, layout.label)
    names = tuple(records.names[column] for column in layout.arguments) if records.names else ()
    if all(name.lower() in HEAD | TAIL or name.isdecimal() for name in names):  # which say nothing of a predicate
        names = ()
    columns, rows = [records.columns[column] for column in layout.arguments], records.rows
    if layout.predicate is None:
        predicates, bounds = [table.predicate or ""], [0, len(rows)]
    else:
        encoded = records.columns[layout.predicate].dictionary_encode()
        codes, predicates = encoded.indices.to_numpy(), encoded.dictionary.to_pylist()
        order = np.argsort(codes, kind="stable")
        bounds = np.searchsorted(codes[order], np.arange(len(predicates) + 1)).tolist()
        columns, truth, rows = [column.take(pa.array(order)) for column in columns], truth[order], rows[order]
    found = []
    for predicate, (start, end) in zip(predicates, pairwise(bounds), strict=True):
        if end > start:
            arguments, part = tuple(column[start:end] for column in columns), slice(start, end)
            found.append(Facts(predicate, arguments, truth[part], rows[part], table, names, records.locate))
    return found, records.faults


def layout_of(records: Records, predicate: str | None, columns: tuple[str, ...], label: str | None) -> Layout:
    """Which column of the records is what: as picked, by usual names, else by their order."""
    width = len(records.columns)
    picked = tuple(records.column(name) for name in columns)
    labelled = records.column(label) if label is not None else _find_usual(records, LABEL)
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
    if labelled is None and len(others) == 4:  # no names: by their order
        labelled, others = others[3], others[:3]
    if len(others) != 3:
        hint = "separate columns by tabs (TSV) or commas (CSV), pick 3 with `columns`, or name the `predicate`"
        raise _refuse(records, f"{counted(width, 'column')}, where triples have 3, or 4 with a label", hint)
    return Layout(others[1], (others[0], others[2]), labelled)


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
            ' says that there is no such fact, as in a table of many columns, set empty = "skip" next to file = ...'
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
            f"{where}: '{shown}' was read as a fact, but its constants occur in no other row, which is usual for a"
            " header; write header = true in this table of the problem file if these are the names of the columns,"
            " header = false if they are constants"
        )

    def taken(self, overruled: str) -> str:
        """That it was taken for a header, and how that is `overruled`."""
        shown, where = shortened(", ".join(self.cells)), Location(self.source, self.row + 1)
        return f"{where}: '{shown}' was read as the names of the columns; {overruled}"


def is_header(columns: Sequence[pa.Array], predicate: str | None, theory: Theory, called: Collection[str] = ()) -> bool:
    """Whether the first row of some columns of text holds their names.

    Without `predicate` the rows are triples. It does if its cells are the usual names (head relation tail), or all of
    them names of the theory or `called` so, or words above numbers, and none of them occurs in another row.
    """
    first = tuple(column[0].as_py().strip() for column in columns)
    if any(not re.search(r"[^\W\d_]", cell) or cell.lower() in (*TRUE, *FALSE) for cell in first):
        return False
    rows, cells = [], normal(pa.array(first))
    for column in columns:  # a number in the first cell may be all that differs: person1 above person2
        if re.search(r"\d", column[0].as_py()):
            rows.append(normal(column))
        else:
            rows.append(pa.concat_arrays([normal(column[:1]), _lower(column[1:])]))
    is_alone = not any(pc.any(pc.is_in(column[1:], value_set=cells)).as_py() for column in rows)
    usual = [cell for cell in map(str.lower, first) if cell not in LABEL]
    roles = (HEAD, RELATION, TAIL) if predicate is None else (HEAD, TAIL)
    has_roles = len(usual) == len(roles) and all(len(role.intersection(usual)) == 1 for role in roles)
    is_family = any(set(usual) <= set(family) for family in ("hrt", "spo"))  # s r t may be a fact
    if has_roles and (is_family or all(len(name) > 1 for name in usual)):
        return is_alone or all(len(cell) > 1 for cell in first)
    if not is_alone or (predicate is None and first[1:2] and first[1] in theory.predicate_names):
        return False
    if any(_is_above_numbers(column) for column in columns):
        return True
    names = vocabulary(theory, (predicate or "", *called))
    if len(rows[0]) == 1:  # person1 may be a constant: there is no other row to compare it with
        rows = list(map(_lower, columns))
    known = pa.array(sorted(names), pa.string())
    is_named = np.logical_and.reduce([np.array(pc.is_in(column, value_set=known)) for column in rows])
    return bool(is_named[0]) and not is_named[1:].any()


def _lower(column: pa.Array) -> pa.Array:
    return pc.utf8_lower(pc.utf8_trim_whitespace(column))


def normal(column: pa.Array) -> pa.Array:
    """Names without case, numbers at their end, `id` and `name`: `City_ID` is `city`."""
    lower = _lower(column)
    short = pc.replace_substring_regex(lower, _NUMBERED, "")
    return pc.if_else(pc.equal(short, ""), lower, short)


def vocabulary(theory: Theory, called: Collection[str] = ()) -> frozenset[str]:
    """Names that a column may have: usual ones, those of the theory, and `called`, all of more than one letter."""
    variables = {name for rule in theory.rules for name in rule.variables}
    own = {*variables, *(domain.name for domain in theory.domains), *theory.predicate_names, *called}
    singular = {re.sub("s$", "", re.sub("ies$", "ys", name.casefold())) for name in called}
    known = {name.casefold() for name in own} | singular
    return frozenset(name for name in known | HEAD | RELATION | TAIL | LABEL | WORDS if len(name) > 1)


def _is_above_numbers(column: pa.Array) -> bool:
    """Whether every other cell of a column is a number, and the first has no digit."""
    rest = column[1:]
    is_like = len(rest) >= _FEW and pc.all(pc.match_substring_regex(rest, _NUMBER)).as_py()
    return bool(is_like) and re.search(r"\d", column[0].as_py()) is None
