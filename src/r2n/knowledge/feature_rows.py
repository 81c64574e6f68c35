"""What is known: tables of features in any format -> constants with their texts and vectors, each with its row."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Float, Int64

from r2n.errors import DataError, Location, nearest
from r2n.knowledge.reading.json_tables import read_json, read_json_lines
from r2n.knowledge.reading.records import Fault, Locate, Records, shortened
from r2n.knowledge.reading.stored_tables import read_arrow, read_parquet, read_sqlite
from r2n.knowledge.reading.tables import CSV, JSON, JSON_LINES, PARQUET, SQLITE, TSV, Format, format_of
from r2n.knowledge.reading.text_files import check_file
from r2n.knowledge.reading.text_tables import COMMA, TAB, read_text_table

Vectors = Float[np.ndarray, "rows *shape"]
READERS: dict[Format, Callable[[Path, str | None], Records]] = {
    TSV: lambda path, _: read_text_table(path, TAB, True),
    CSV: lambda path, _: read_text_table(path, COMMA, True),
    PARQUET: lambda path, _: read_parquet(path),
    JSON: lambda path, _: read_json(path),
    JSON_LINES: lambda path, _: read_json_lines(path),
    SQLITE: read_sqlite,
}


@dataclass(frozen=True, eq=False, slots=True)
class FeatureRows:
    """Rows of features as they stand in a source: a constant each, with its text, its vector, or both.

    `labels` is what people call the constants. `blank` marks rows that name a constant and nothing more. `faults` are
    the rows that had to be refused.
    """

    source: str
    constants: pa.Array
    texts: pa.Array | None
    vectors: Vectors | None
    blank: Bool[np.ndarray, " rows"]
    rows: Int64[np.ndarray, " rows"]
    locate: Locate
    faults: tuple[Fault, ...] = ()
    labels: pa.Array | None = None

    def without(self, bad: Bool[np.ndarray, " rows"], error: Callable[[int], DataError]) -> "FeatureRows":
        """These rows minus the bad ones, which `error` explains by their row in the source."""
        if not bad.any():
            return self
        good = np.flatnonzero(~bad)
        return replace(
            self,
            constants=self.constants.take(pa.array(good)),
            texts=None if self.texts is None else self.texts.take(pa.array(good)),
            labels=None if self.labels is None else self.labels.take(pa.array(good)),
            vectors=None if self.vectors is None else self.vectors[good],
            blank=self.blank[good],
            rows=self.rows[good],
            faults=(*self.faults, Fault(self.rows[bad], error)),
        )

    def checked(self) -> "FeatureRows":
        """Without numbers that are not finite, and without the second of two rows for one constant."""
        rows = self
        if rows.vectors is not None:
            finite = np.isfinite(rows.vectors).all(axis=tuple(range(1, rows.vectors.ndim)))
            rows = rows.without(~finite & ~rows.blank, partial(_not_finite, rows))
        encoded = rows.constants.dictionary_encode().indices.to_numpy()
        _, first = np.unique(encoded, return_index=True)
        again = np.ones(len(encoded), bool)
        again[first] = False
        return rows.without(again, partial(_said_twice, rows))

    def place(self, row: int) -> int:
        """Where the row of the source stands among these."""
        return int(np.searchsorted(self.rows, row))


def _not_finite(given: FeatureRows, row: int) -> DataError:
    assert given.vectors is not None
    at = given.place(row)
    values = given.vectors[at].reshape(-1)
    number = int(np.flatnonzero(~np.isfinite(values))[0])
    return DataError(
        f"the vector of '{given.constants[at].as_py()}' has {values[number]} as component {number + 1}",
        where=given.locate(row),
        hint="a feature is a finite number (within single precision); fill the gap, or leave the row out",
    )


def _said_twice(given: FeatureRows, row: int) -> DataError:
    at = given.place(row)
    first = int(given.rows[pc.index(given.constants, given.constants[at]).as_py()])
    return DataError(
        f"'{given.constants[at].as_py()}' has features already",
        where=given.locate(row),
        hint=f"they stand at {Location.__str__(given.locate(first))}; keep one of the two rows",
    )


def read_feature_records(source: Path | object, table: str | None = None) -> Records:
    """The rows of a table, by column; a text file begins with a line of column names."""
    if not isinstance(source, Path):
        return read_arrow(source)
    check_file(source)
    reader = READERS.get(format_of(source))
    if reader is None:
        hint = "write them as CSV, TSV, Parquet, JSON or SQLite"
        raise DataError("features are read from tables with named columns", where=Location(str(source)), hint=hint)
    return reader(source, table)


def feature_rows(
    records: Records, key: str | None, text: str | None, vector: tuple[str, ...], label: str | None = None
) -> FeatureRows:
    """Constants, texts, vectors and labels from the named columns; the constants stand in the first one by default."""
    records = _with_constants(records, 0 if key is None else _column(records, key))
    constants = records.columns[0 if key is None else _column(records, key)]
    texts, text_blank = (None, None) if text is None else _texts(records, _column(records, text))
    columns = [_column(records, name) for name in vector]
    as_list = len(columns) == 1 and _holds_lists(records.columns[columns[0]])
    bad, vector_blank, vectors = np.zeros(len(records.rows), bool), None, None
    error: Callable[[int], DataError] = partial(_no_number, records, columns)
    if as_list:
        vectors, vector_blank, bad, error = _from_lists(records, columns[0])
    elif columns:
        vectors, vector_blank, bad = _from_columns(records, columns)
    blank = np.zeros(len(bad), bool)
    for part in (text_blank, vector_blank):
        blank |= part if part is not None else False
    labels = None if label is None else pc.fill_null(pc.cast(records.columns[_column(records, label)], pa.string()), "")
    rows = FeatureRows(
        records.source, constants, texts, vectors, blank, records.rows, records.locate, records.faults, labels
    ).without(bad, error)
    return rows.checked()


def _column(records: Records, name: str) -> int:
    if name in records.names:
        return records.names.index(name)
    near = nearest(name, records.names)
    hint = f"{near} " * bool(near) + f"the columns are: {shortened(', '.join(records.names), 200)}"
    raise DataError(f"there is no column '{name}'", where=Location(records.source), hint=hint)


def _is_blank(column: pa.Array) -> np.ndarray:
    return pc.equal(pc.utf8_trim_whitespace(pc.fill_null(column, "")), "").to_numpy(zero_copy_only=False)


def _with_constants(records: Records, column: int) -> Records:
    if column >= len(records.columns):
        raise DataError("the table of features is empty", where=Location(records.source))

    def error(row: int) -> DataError:
        hint = "name the constant, or take the row out"
        return DataError("here are features of no constant", where=records.locate(row, column), hint=hint)

    return records.without(_is_blank(records.columns[column]), error).with_constants(column)


def _numbers(column: pa.Array, kind: str = "DOUBLE") -> pa.Array:
    """The cells as numbers (or lists of them), null where they are none."""
    with closing(duckdb.connect()) as connection:
        connection.register("given", pa.table({"cell": column}))
        table = connection.sql(f"SELECT TRY_CAST(trim(cell) AS {kind}) AS value FROM given").to_arrow_table()
    return pa.chunked_array(table.column(0).chunks, table.schema.field(0).type).combine_chunks()


def _texts(records: Records, column: int) -> tuple[pa.Array, np.ndarray]:
    texts = pc.fill_null(records.columns[column], "")
    blank = _is_blank(texts)
    filled = texts.filter(pa.array(~blank))
    if len(filled) and _numbers(filled).null_count == 0:
        row = int(records.rows[np.flatnonzero(~blank)[0]])
        raise DataError(
            f"the column '{records.names[column]}' is taken for text, but holds numbers: '{filled[0].as_py()}'",
            where=records.locate(row, column),
            hint=f'for numbers write vector = ["{records.names[column]}"]',
        )
    return texts, blank


def _from_columns(records: Records, columns: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One number a column: the vectors, the rows without any number, the rows where some are missing or none."""
    parsed = [_numbers(records.columns[column]) for column in columns]
    unreadable = np.stack([part.is_null().to_numpy(zero_copy_only=False) for part in parsed], 1)
    blank = np.stack([_is_blank(records.columns[column]) for column in columns], 1).all(axis=1)
    vectors = np.stack([pc.fill_null(part, 0.0).to_numpy(zero_copy_only=False) for part in parsed], 1)
    bad = unreadable.any(axis=1) & ~blank
    return single_precision(vectors), np.asarray(blank), np.asarray(bad)


def single_precision(vectors: np.ndarray) -> np.ndarray:
    """As float32."""
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused as such
        return vectors.astype(np.float32)


def _no_number(records: Records, columns: list[int], row: int) -> DataError:
    at = int(np.searchsorted(records.rows, row))
    column = next(c for c in columns if _numbers(records.columns[c].slice(at, 1)).null_count)
    cell = records.columns[column][at].as_py() or ""
    return DataError(
        f"'{shortened(cell)}' in column '{records.names[column]}' is no number",
        where=records.locate(row, column),
        hint="a vector needs a number in each of its columns; for words write text = instead of vector =",
    )


def _holds_lists(column: pa.Array) -> bool:
    filled = column.filter(pa.array(~_is_blank(column)))
    return len(filled) > 0 and filled[0].as_py().lstrip().startswith("[")


def _from_lists(records: Records, column: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, Callable[[int], DataError]]:
    """One list of numbers a row: the vectors, the rows without one, the rows with another length or no list."""
    blank = _is_blank(records.columns[column])
    lists = _numbers(records.columns[column], "DOUBLE[]")
    sizes = pc.fill_null(pc.list_value_length(lists), -1).to_numpy(zero_copy_only=False).copy()
    sizes[_holds_null(lists)] = -1
    model = int(np.concatenate([np.flatnonzero(sizes > 0), [0]])[0])
    good = sizes == max(int(sizes[model]), 1)
    vectors = np.zeros((len(lists), max(int(sizes[model]), 1)))
    flat = lists.filter(pa.array(good)).flatten()
    vectors[good] = flat.to_numpy(zero_copy_only=False).reshape(-1, vectors.shape[1])

    def error(row: int) -> DataError:
        size, where = int(sizes[np.searchsorted(records.rows, row)]), records.locate(row, column)
        if size < 0:
            hint = "write it as [0.5, 1, -2]"
            return DataError(
                f"column '{records.names[column]}' has no list of finite numbers here", where=where, hint=hint
            )
        other = records.locate(int(records.rows[model]))
        what = f"a vector of {size} numbers, where that at {other} has {sizes[model]}"
        return DataError(what, where=where, hint="all vectors of a domain have one length")

    return single_precision(vectors), blank, ~good & ~blank, error


def _holds_null(lists: pa.Array) -> np.ndarray:
    """Whether a list has a null among its items."""
    parents = pc.list_parent_indices(lists).to_numpy(zero_copy_only=False)
    nulls = pc.list_flatten(lists).is_null().to_numpy(zero_copy_only=False)
    found = np.zeros(len(lists), bool)
    found[parents[nulls]] = True
    return found
