"""Predicates that are not stated but derived from the facts, by SQL.

Every predicate of the facts is a table of its name with the columns c1, c2, ... that holds its true atoms;
`denied.NAME` holds its false atoms. A definition is one SELECT over these tables. It may be a stranger's, and must give
the same facts each time: the database is in memory and closed to all else, the tables are sorted, one thread reads them
in their order, and DuckDB's own reading of the SQL is searched for settings, catalogs, clocks, random numbers and other
SQL in a text.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from r2n.data.interruptible import interruptible
from r2n.data.knowledge_base import declaration, wrong_arity
from r2n.data.records import ENDLESS, OnError, fetch_texts, join_chunks, quoted_name
from r2n.data.tables import Facts, Table
from r2n.errors import ConfigError, DataError, Location
from r2n.logic.language import Predicate

MOST_SECONDS = 60.0  # of one SELECT
MOST_BYTES = 2**32  # that one SELECT may need, besides the tables
ONLY_FACTS = "a definition reads facts alone: no file, setting, clock or random number"
_LOCKED = (
    "threads = 1",
    "enable_external_access = false",
    "python_enable_replacements = false",
    "lock_configuration = true",
)
_NESTED = ("list", "array", "struct", "map", "union")
_TABLE_FUNCTIONS = {"range", "generate_series", "unnest"}
# of those that DuckDB holds for the same each time
_OF_THE_PROCESS = {
    *("current_setting", "getvariable", "version", "current_localtime", "current_localtimestamp"),
    *("current_user", "current_role", "session_user", "user", "current_catalog", "get_block_size", "ago"),
    *("json_serialize_plan", "json_serialize_sql", "json_deserialize_sql"),
}
_WITHOUT_BRACKETS = {"current_time", "current_timestamp", "localtime", "localtimestamp"}

Definitions = Mapping[str, str]
"""For each derived predicate its SELECT."""
Node = dict[str, Any]


def derive(
    definitions: Definitions,
    facts: Sequence[Facts],
    background: Sequence[Facts] = (),
    *,
    declared: Sequence[Predicate] = (),
    on_error: OnError = "raise",
    source: str | None = None,
) -> tuple[list[Facts], list[DataError]]:
    """The facts that the definitions add, predicate by predicate; a later one may use those before it.

    A fact with a wrong number of constants raises, or (`on_error="skip"`) is not read; the second part holds the errors
    of the background, while `facts` are checked again when they are encoded. `source` names the problem in errors.
    """
    if not definitions:
        return [], []
    wrong = _wrong_arities([*facts, *background], declared)
    if wrong and on_error == "raise":
        raise next(iter(wrong.values()))
    found = []
    with closing(duckdb.connect()) as connection:
        arities = _load(connection, [group for group in (*facts, *background) if group not in wrong])
        for name, sql in definitions.items():
            where = f"{source} [derived] {name}" if source else f"[derived] {name}"
            try:
                added = _add(connection, arities, name, sql.strip().rstrip(";"))
            except ConfigError as error:
                at = Location(where, excerpt=sql.strip().split("\n")[0])
                raise ConfigError(error.what, where=at, hint=error.hint) from error
            columns, count = tuple(join_chunks(part.chunks) for part in added.columns), added.num_rows
            table = Table(added, name, called=where)
            found.append(Facts(name, columns, np.ones(count, bool), np.arange(count), table))
    return found, [wrong[group] for group in background if group in wrong]


def _wrong_arities(facts: Sequence[Facts], declared: Sequence[Predicate]) -> dict[Facts, DataError]:
    """An error for all facts that have more or fewer constants than declared, or than where first stated."""
    signatures = {predicate.name: predicate for predicate in declared}
    first: dict[str, Facts] = {}
    wrong: dict[Facts, DataError] = {}
    for group in facts:
        stated = first.setdefault(group.predicate, group)
        if group.table is stated.table and group.rows[0] < stated.rows[0]:  # a reader may sort by arity
            first[group.predicate] = group
    for group in facts:
        stated, predicate = first[group.predicate], signatures.get(group.predicate)
        arity = len(stated.arguments) if predicate is None else predicate.arity
        if len(group.arguments) != arity:
            hint = f"it is first stated at {stated.location(0)}" if predicate is None else declaration(predicate)
            wrong[group] = wrong_arity(group, arity, hint)
    return wrong


def _load(connection: duckdb.DuckDBPyConnection, facts: Sequence[Facts]) -> dict[str, int]:
    """Make the tables of the facts, close the database to all else, and give the arity of each predicate."""
    arities: dict[str, int] = {}
    connection.execute("CREATE SCHEMA denied")
    for predicate in dict.fromkeys(group.predicate for group in facts):
        groups = [group for group in facts if group.predicate == predicate]
        names = _create(connection, arities, predicate, len(groups[0].arguments))
        tables = [f"memory.{schema}.{quoted_name(predicate)}" for schema in ("main", "denied")]
        for truth, table in zip((True, False), tables, strict=True):
            parts = [
                pa.table([column.filter(pa.array(group.truth == truth)) for column in group.arguments], names)
                for group in groups
            ]
            _insert(connection, table, pa.concat_tables(parts))
        row = connection.execute("SELECT * FROM {} INTERSECT SELECT * FROM {}".format(*tables)).fetchone()
        if row is not None:
            what = f"{predicate}({', '.join(row)}) is stated both true and false"
            raise DataError(what, hint="keep one of the two")
    connection.execute("SET temp_directory = ''")  # what recurs without end would fill the disk
    (used,) = connection.execute("SELECT sum(memory_usage_bytes) FROM duckdb_memory()").fetchone()  # pyright: ignore
    for setting in (f"memory_limit = '{int(used) + MOST_BYTES} B'", *_LOCKED):
        connection.execute(f"SET {setting}")
    return arities


def _insert(connection: duckdb.DuckDBPyConnection, table: str, rows: pa.Table) -> None:
    connection.register("incoming", rows)  # a predicate of this name is in another catalog
    connection.execute(f"INSERT INTO {table} SELECT DISTINCT * FROM temp.main.incoming ORDER BY ALL")
    connection.unregister("incoming")


def _names(arity: int) -> list[str]:
    return [f"c{i}" for i in range(1, arity + 1)]


def _create(connection: duckdb.DuckDBPyConnection, arities: dict[str, int], predicate: str, arity: int) -> list[str]:
    """Make a predicate's two empty tables, if it has none yet, and give the names of their columns."""
    if predicate not in arities:
        twin = next((name for name in arities if name.casefold() == predicate.casefold()), None)
        if twin is not None:
            what = f"predicates '{twin}' and '{predicate}' differ in case alone, which SQL does not distinguish"
            raise ConfigError(what, hint="rename one of them, or state the derived predicate as facts")
        arities[predicate] = arity
        columns = ", ".join(f"{name} VARCHAR" for name in _names(arity))
        for schema in ("main", "denied"):
            connection.execute(f"CREATE TABLE memory.{schema}.{quoted_name(predicate)} ({columns})")
    return _names(arity)


def _add(connection: duckdb.DuckDBPyConnection, arities: dict[str, int], name: str, sql: str) -> pa.Table:
    """Add what a SELECT gives and the predicate's table does not hold yet; what was added, in order."""
    listed = ", ".join(f"{other}({', '.join(_names(arity))})" for other, arity in sorted(arities.items()))
    try:
        statements = connection.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise ConfigError(
                "it is not one SELECT", hint=f"a derived predicate is one SELECT over the tables {listed}"
            )
        forbidden = forbidden_in(sql, arities)
        if forbidden is not None:
            raise ConfigError(forbidden, hint=f"{ONLY_FACTS}; the tables are: {listed}")
        with interruptible(connection, MOST_SECONDS):
            kinds = connection.sql(sql).types
            columns = fetch_texts(connection.sql(f"SELECT DISTINCT COLUMNS(*)::VARCHAR FROM ({sql}\n)"))
    except duckdb.InterruptException as error:
        raise ConfigError(f"it has not ended after {MOST_SECONDS:g} seconds", hint=ENDLESS) from error
    except duckdb.OutOfMemoryException as error:
        raise ConfigError(f"it needs more than {MOST_BYTES / 2**30:.1f} GiB of memory", hint=ENDLESS) from error
    except duckdb.Error as error:
        what = f"the database refuses it: {str(error).splitlines()[0]}"
        raise ConfigError(what, hint=f"the tables are: {listed}") from error
    for i, (kind, column) in enumerate(zip(kinds, columns, strict=True), start=1):
        if kind.id in _NESTED:
            hint = "select one value for each constant: unnest(...), list[1] or struct.field"
            raise ConfigError(f"column {i} holds {kind.id}s, no constants", hint=hint)
        empty = column.null_count + (pc.sum(pc.equal(column, "")).as_py() or 0)
        if empty:
            raise ConfigError(f"column {i} has no value in {empty:,} of {len(column):,} rows")
    names = _create(connection, arities, name, len(columns))
    if len(columns) != arities[name]:
        raise ConfigError(f"it gives {len(columns)} columns, but {name} takes {arities[name]} constants")
    given = connection.from_arrow(pa.table(list(columns), names)).except_(connection.sql(f"FROM {quoted_name(name)}"))
    added = given.order(", ".join(names)).to_arrow_table()
    _insert(connection, f"memory.main.{quoted_name(name)}", added)
    return added


def forbidden_in(sql: str, tables: Collection[str]) -> str | None:
    """What one SELECT does that a definition over these tables may not; None: nothing."""
    question = "SELECT json_serialize_sql(?, skip_null := true, skip_empty := true)"
    with duckdb.connect() as connection:
        (text,) = connection.execute(question, [sql]).fetchone()  # pyright: ignore
    try:
        tree = json.loads(text)
    except RecursionError:
        return "it is nested too deep"
    if tree.get("error"):
        return "it cannot be analysed"
    known, waiting = {name.casefold() for name in tables}, [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            other = _other_table(node, known) or _other_function(node)
            if other is not None:
                return f"it reads {other}"
        waiting += node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return None


def _other_table(node: Node, tables: Collection[str]) -> str | None:
    if node.get("type") == "SHOW_REF":
        return "the catalog"
    if node.get("type") == "TABLE_FUNCTION":
        called = str(node.get("function", {}).get("function_name", "")).casefold()
        return None if called in _TABLE_FUNCTIONS else f"the function {called}"
    if node.get("type") != "BASE_TABLE":
        return None
    catalog, schema, name = (node.get(f"{key}_name", "") for key in ("catalog", "schema", "table"))
    is_known = catalog in ("", "memory") and schema.casefold() in ("", "main", "denied") and name.casefold() in tables
    if is_known or not (catalog or schema or name.casefold() in _forbidden()[1]):  # what does not exist DuckDB refuses
        return None
    return f"the table {'.'.join(filter(None, (catalog, schema, name)))}"


def _other_function(node: Node) -> str | None:
    if isinstance(node.get("sample"), dict):
        return "a sample"
    if node.get("class") == "COLUMN_REF":
        names = [str(part).casefold() for part in node.get("column_names", ())]
        return names[0] if len(names) == 1 and names[0] in _WITHOUT_BRACKETS | _forbidden()[0] else None
    name = str(node.get("function_name", "")).casefold()
    return f"the function {name}" if name in _forbidden()[0] else None


@cache
def _forbidden() -> tuple[frozenset[str], frozenset[str]]:
    """The functions that a definition may not call, and DuckDB's own tables that have a bare name."""
    with duckdb.connect() as connection:
        functions = connection.execute(
            "SELECT lower(function_name) FROM duckdb_functions()"
            " WHERE function_type IN ('scalar', 'aggregate', 'macro')"
            " AND (schema_name <> 'main' OR coalesce(stability, 'CONSISTENT') <> 'CONSISTENT')"
        ).fetchall()
        views = connection.execute("SELECT lower(view_name) FROM duckdb_views() WHERE internal").fetchall()
    return frozenset(name for (name,) in functions) | _OF_THE_PROCESS, frozenset(name for (name,) in views)
