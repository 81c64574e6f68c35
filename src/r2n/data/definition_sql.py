"""What the SQL of a definition reads besides facts, and whether the order of rows decides what it gives.

DuckDB's own reading of the text is looked at, the same that it would run. Allowed are the tables of facts, what the SQL
names itself, and functions of what is in them. Settings, catalogs, clocks, chance and other SQL in a text are not: a
definition may be a stranger's, and must give the same facts each time.
"""

import json
from collections.abc import Callable, Collection, Iterator
from functools import cache, lru_cache
from typing import Any

import duckdb

ONLY_FACTS = "a definition reads facts alone: no file, setting, clock or chance"
_TABLE_FUNCTIONS = {"range", "generate_series", "unnest"}
_SCHEMAS = {"", "main", "denied"}
# of those that DuckDB holds for the same each time
_OF_THE_PROCESS = {
    *("current_setting", "getvariable", "version", "current_localtime", "current_localtimestamp"),
    *("current_user", "current_role", "session_user", "user", "current_catalog", "get_block_size", "ago"),
    *("json_serialize_plan", "json_serialize_sql", "json_deserialize_sql"),
}
_WITHOUT_BRACKETS = {"current_time", "current_timestamp", "localtime", "localtimestamp"}

# functions that take what comes first, put values behind each other in the order of rows, or count rows
_IN_ORDER = {
    *("first", "last", "any_value", "arbitrary", "list", "array_agg", "string_agg", "group_concat", "listagg"),
    *("arg_max", "arg_max_null", "arg_max_nulls_last", "argmax", "max_by"),
    *("arg_min", "arg_min_null", "arg_min_nulls_last", "argmin", "min_by"),
    *("first_value", "last_value", "nth_value", "lag", "lead", "fill", "row_number", "ntile"),
    *("mode", "approx_quantile", "reservoir_quantile", "approx_top_k"),
}
_CUTS = {"LIMIT_MODIFIER": "LIMIT", "LIMIT_PERCENT_MODIFIER": "LIMIT", "DISTINCT_MODIFIER": "DISTINCT ON"}

Node = dict[str, Any]


def other_read(sql: str, tables: Collection[str]) -> str | None:
    """What one SELECT reads that is neither a table of facts nor a function of what is in them; None: nothing."""
    known = {name.casefold() for name in tables}
    return _first(sql, lambda node: _other_table(node, known) or _other_function(node))


def order_read(sql: str) -> tuple[str, str] | None:
    """What makes the answer of one SELECT depend on the order of rows, and what to write instead; None: nothing."""
    found = _first(sql, _in_order)
    return found if isinstance(found, tuple) else None


def _in_order(node: Node) -> tuple[str, str] | None:
    modifiers = {part["type"]: part for part in node.get("modifiers", ())}
    if "distinct_on_targets" not in modifiers.get("DISTINCT_MODIFIER", {}):
        modifiers.pop("DISTINCT_MODIFIER", None)
    cut = next((word for kind, word in _CUTS.items() if kind in modifiers), None)
    orders = modifiers.get("ORDER_MODIFIER", {}).get("orders", ())
    if cut is not None and not any(order["expression"].get("class") == "STAR" for order in orders):
        return cut, f"order the rows by all that is selected: ORDER BY ALL{' before LIMIT' * (cut == 'LIMIT')}"
    if node.get("ref_type") == "POSITIONAL":
        return "POSITIONAL JOIN", "join the tables by the constants in them"
    if [str(part).casefold() for part in node.get("column_names", ())][-1:] == ["rowid"]:
        return "rowid", "take the constants"
    name = str(node.get("function_name", "")).casefold()
    if name in _IN_ORDER or any("ROWS" in str(node.get(key)) for key in ("start", "end")):
        return name, "take what is the same in any order: min(x), max(x), count(x), or rank() OVER (ORDER BY x)"
    return None


def _first(sql: str, look: Callable[[Node], Any]) -> Any:
    try:
        tree = json.loads(_parsed(sql))
    except RecursionError:
        return "what is nested too deep to be looked into"
    if tree.get("error"):
        return "what cannot be looked into"
    return next((found for node in _nodes(tree) if (found := look(node))), None)


@lru_cache(maxsize=8)
def _parsed(sql: str) -> str:
    """DuckDB's reading of the text, as JSON."""
    with duckdb.connect() as connection:
        question = "SELECT json_serialize_sql(?, skip_null := true, skip_empty := true)"
        (text,) = connection.execute(question, [sql]).fetchone()  # pyright: ignore
    return text


def _nodes(tree: Any) -> Iterator[Node]:
    """All objects of a JSON document."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
        waiting += node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()


def _other_table(node: dict[str, Any], tables: Collection[str]) -> str | None:
    if node.get("type") == "SHOW_REF":
        return "the catalog"
    if node.get("type") == "TABLE_FUNCTION":
        called = str(node.get("function", {}).get("function_name", "")).casefold()
        return None if called in _TABLE_FUNCTIONS else f"the function {called}"
    if node.get("type") != "BASE_TABLE":
        return None
    catalog, schema, name = (node.get(f"{key}_name", "") for key in ("catalog", "schema", "table"))
    is_one = catalog in ("", "memory") and schema.casefold() in _SCHEMAS and name.casefold() in tables
    if is_one or not (catalog or schema or name.casefold() in _views()):  # what is nowhere the database refuses itself
        return None
    return f"the table {'.'.join(filter(None, (catalog, schema, name)))}"


def _other_function(node: dict[str, Any]) -> str | None:
    if isinstance(node.get("sample"), dict):
        return "a sample"
    if node.get("class") == "COLUMN_REF":
        names = [str(part).casefold() for part in node.get("column_names", ())]
        is_refused = len(names) == 1 and (names[0] in _WITHOUT_BRACKETS or names[0] in _refused())
        return names[0] if is_refused else None
    name = str(node.get("function_name", "")).casefold()
    return f"the function {name}" if name in _refused() else None


@cache
def functions() -> dict[str, bool]:
    """Every function that DuckDB has, and whether a definition may call it in an expression."""
    with duckdb.connect() as connection:
        found = connection.execute(
            "SELECT lower(function_name), bool_and(schema_name = 'main' AND coalesce(stability, 'CONSISTENT') ="
            " 'CONSISTENT') FROM duckdb_functions() WHERE function_type IN ('scalar', 'aggregate', 'macro') GROUP BY 1"
        ).fetchall()
    return {name: is_allowed and name not in _OF_THE_PROCESS for name, is_allowed in found}


@cache
def _refused() -> frozenset[str]:
    """Those that a definition may not call."""
    return frozenset({name for name, is_allowed in functions().items() if not is_allowed} | _OF_THE_PROCESS)


@cache
def _views() -> frozenset[str]:
    """Tables of its own that DuckDB finds by a bare name."""
    with duckdb.connect() as connection:
        found = connection.execute("SELECT lower(view_name) FROM duckdb_views() WHERE internal").fetchall()
    return frozenset(name for (name,) in found)
