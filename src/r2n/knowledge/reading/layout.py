"""Columns of text -> statements: which column is what, and what each row states."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool

from r2n.errors import DataError, Location, nearest
from r2n.knowledge.reading.records import Fault, Locate, Records, Statements, shortened

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
