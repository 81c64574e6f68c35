"""Tables that Spark reads -> what they state: frames of predicate, truth and constants, as text, where they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from sqlglot import exp

from r2n.data.problem import TableOptions, checked_path
from r2n.data.records import NO_CONSTANTS, Records
from r2n.data.stored_tables import MOST_WHOLE, row_location
from r2n.data.tables import FALSE, TRUE, Facts, Layout, Table, layout_of
from r2n.errors import ConfigError, DataError, Location
from r2n.grounding.spark_engine import SparkEngine, parquet_of

TABLE = "table:"
"""How a file's name begins that is no file but a table of Spark's catalog."""


@dataclass(frozen=True, slots=True)
class Stated:
    """A view of Spark's (predicate, truth, c0, c1, ...), all of one arity, of one split."""

    view: str
    split: str
    source: str
    arity: int
    predicates: tuple[str, ...]


def is_read_by_spark(spec: TableOptions, folder: Path) -> bool:
    """Whether Spark reads it by itself: a Parquet file or folder of such, or a table of its catalog."""
    if spec.file is None:
        return False
    if spec.file.startswith(TABLE) or spec.format == "parquet":
        return True
    return spec.format is None and Path(spec.file).suffix.lower() == ".parquet"


def quoted(text: str) -> str:
    """A text as a literal of Spark's SQL."""
    return exp.Literal.string(text).sql("spark")


def named(name: str) -> str:
    """A column, table or view by its name, in Spark's SQL."""
    return exp.to_identifier(name, quoted=True).sql("spark")


def read_stated(engine: SparkEngine, tables: Mapping[str, Sequence[TableOptions]], folder: Path) -> tuple[Stated, ...]:
    """What the tables of each split state; a row that states nothing is refused, or left out where it may be."""
    found: list[Stated] = []
    for split, specs in tables.items():
        for spec in specs:
            found.append(_read(engine, spec, folder, split, f"stated_{len(found)}"))
    return tuple(found)


def _read(engine: SparkEngine, spec: TableOptions, folder: Path, split: str, view: str) -> Stated:
    if not is_read_by_spark(spec, folder):
        raise ConfigError(
            f"Spark does not read {spec.file!r} as facts",
            hint=f"give Parquet, or a table of its catalog: {TABLE}NAME; --engine duckdb reads the other formats",
        )
    source, relation = _relation(spec, folder)
    types = engine.types(relation)
    names = tuple(types)
    layout = _layout(spec, names, source)
    columns = [_text(names[i], types[names[i]], source) for i in layout.arguments]
    predicate = quoted(spec.predicate or "")
    if layout.predicate is not None:
        predicate = _text(names[layout.predicate], types[names[layout.predicate]], source)
    label = "'true'" if layout.label is None else f"lower(trim(CAST({named(names[layout.label])} AS STRING)))"
    outputs = [f"{predicate} AS predicate", f"{label} AS label", *(f"{c} AS c{i}" for i, c in enumerate(columns))]
    engine.view(f"{view}_raw", f"SELECT {', '.join(outputs)} FROM {relation}")
    cells = ["predicate", *(f"c{i}" for i in range(len(columns)))]
    is_full = " AND ".join(f"coalesce({cell}, '') <> ''" for cell in cells)
    predicates = _sound(engine, f"{view}_raw", source, is_full, may_be_empty=spec.empty == "skip")
    true = f"label IN ({', '.join(map(quoted, TRUE))})"
    engine.view(view, f"SELECT predicate, {true} AS truth, {', '.join(cells[1:])} FROM {view}_raw WHERE {is_full}")
    return Stated(view, split, source, len(columns), predicates)


def _text(name: str, kind: str, source: str) -> str:
    """A column as text, in Spark's SQL: as for tables that are read in this process."""
    held = next((held for held in ("array", "map", "struct") if kind.startswith(held)), None)
    if held is not None:
        hint = NO_CONSTANTS["list" if held == "array" else held]
        raise DataError(f"column '{name}' holds {held}s, no constants", where=Location(source), hint=hint)
    cell = named(name)
    if kind not in ("float", "double"):
        return f"CAST({cell} AS STRING)"
    odd = quoted(f"a number in column {name} of {source} is not finite, or has lost its last digits")
    return (
        f"CASE WHEN abs({cell}) >= {MOST_WHOLE} THEN CAST(raise_error({odd}) AS STRING)"
        f" WHEN {cell} = floor({cell}) THEN CAST(CAST({cell} AS BIGINT) AS STRING) ELSE CAST({cell} AS STRING) END"
    )


def _relation(spec: TableOptions, folder: Path) -> tuple[str, str]:
    """How errors call a table, and how SQL does."""
    assert spec.file is not None
    if spec.file.startswith(TABLE):
        name = spec.file.removeprefix(TABLE)
        return name, ".".join(map(named, name.split(".")))
    path = checked_path(folder, spec.file)
    if not path.exists():
        raise DataError("there is no such file", where=Location(str(path)))
    return str(path), parquet_of(path)


def _layout(spec: TableOptions, names: tuple[str, ...], source: str) -> Layout:
    """Which column is what, as for tables that are read in this process."""
    nothing = tuple(pa.array([], pa.string()) for _ in names)
    records = Records(source, names, nothing, np.zeros(0, np.int64), partial(row_location, source))
    return layout_of(records, spec.predicate, spec.columns, spec.label)


def _sound(engine: SparkEngine, view: str, source: str, is_full: str, *, may_be_empty: bool) -> tuple[str, ...]:
    """The predicates of a table, in order; where its rows are wrong, it is refused. One pass over the rows."""
    labels = ", ".join(map(quoted, (*TRUE, *FALSE)))
    found = engine.ask(
        f"SELECT predicate, count_if({is_full}) AS full, count_if(NOT ({is_full})) AS empty,"
        f" count_if(coalesce(label, '') NOT IN ({labels})) AS odd FROM {view} GROUP BY predicate"
    )
    empty, odd = (int(found[name].sum()) for name in ("empty", "odd"))
    if empty and not may_be_empty:
        raise DataError(
            f"{empty:,} rows have an empty cell",
            where=Location(source),
            hint='fill them in, or set empty = "skip" beside file = ... where an empty cell says that there is no fact',
        )
    if odd:
        what = f"{odd:,} rows have a label that is neither true nor false"
        raise DataError(what, where=Location(source), hint=f"labels are {', '.join((*TRUE, *FALSE))}")
    stating = zip(found["predicate"].tolist(), found["full"].tolist(), strict=True)
    return tuple(sorted(name for name, rows in stating if rows))


def empty_facts(stated: Sequence[Stated]) -> list[Facts]:
    """The predicates and arities of what is stated, as facts without any row."""
    none = pa.array([], pa.string())
    return [
        Facts(name, (none,) * part.arity, np.zeros(0, bool), np.zeros(0, np.int64), Table(Path(part.source)))
        for part in stated
        for name in part.predicates
    ]
