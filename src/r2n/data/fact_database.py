"""Facts as tables of a database in memory, for definitions to read; nothing outside can be read."""

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from r2n.data.conjunctive import AtomTable
from r2n.data.definition_sql import ONLY_FACTS, order_read, other_read
from r2n.data.interruptible import interruptible
from r2n.data.records import fetch_texts
from r2n.data.tables import Facts
from r2n.errors import ConfigError, DataError, Location

MOST_SECONDS = 60.0  # of one SELECT
MOST_BYTES = 2**32  # that one SELECT may need, besides the tables
ENDLESS = "if it recurs without end, bound it; if it is only large, store its rows as a table and read that"
_LOCKED = ("enable_external_access = false", "python_enable_replacements = false", "lock_configuration = true")


@dataclass(frozen=True, slots=True)
class Select:
    """A definition as SQL; `is_recursive` where it reads what it defines."""

    sql: str
    text: str
    where: str
    is_recursive: bool
    may_be_endless: bool = False

    def error(self, what: str, hint: str | None = None) -> ConfigError:
        """An error about this definition, with its first line."""
        excerpt = self.text.strip().split("\n")[0]
        return ConfigError(what, where=Location(self.where, excerpt=excerpt), hint=hint)


_NESTED = ("list", "array", "struct", "map", "union")


class FactDatabase:
    """The tables of all predicates; new rows are added behind the old ones."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, facts: Sequence[Facts]) -> None:
        """Load the facts, and close the database to all else."""
        self.connection = connection
        self.arities: dict[str, int] = {}
        connection.execute("CREATE SCHEMA denied")
        for predicate in dict.fromkeys(group.predicate for group in facts):
            groups = [group for group in facts if group.predicate == predicate]
            arity = len(groups[0].arguments)
            self.create(predicate, arity)
            true, false = (self._sql(predicate, denied=denied) for denied in (False, True))
            for truth, table in ((True, true), (False, false)):
                incoming = "_" * (1 + max(map(len, self.arities)))  # longer than the name of any predicate
                parts = [
                    pa.table(
                        [column.filter(pa.array(group.truth == truth)) for column in group.arguments], _names(arity)
                    )
                    for group in groups
                ]
                connection.register(incoming, pa.concat_tables(parts))
                connection.execute(f"INSERT INTO {table} SELECT DISTINCT * FROM {incoming}")
                connection.unregister(incoming)
            row = connection.execute(f"SELECT * FROM {true} INTERSECT SELECT * FROM {false}").fetchone()
            if row is not None:
                what = f"{predicate}({', '.join(row)}) is stated both true and false"
                raise DataError(what, hint="keep one of the two")
        connection.execute("SET temp_directory = ''")  # what recurs without end would fill the disk
        (used,) = connection.execute("SELECT sum(memory_usage_bytes) FROM duckdb_memory()").fetchone()  # pyright: ignore
        connection.execute(f"SET memory_limit = '{int(used) + MOST_BYTES} B'")
        for setting in _LOCKED:
            connection.execute(f"SET {setting}")

    def create(self, predicate: str, arity: int) -> None:
        """An empty table, and one for what is denied, where there are none yet."""
        if predicate in self.arities:
            return
        twin = next((name for name in self.arities if name.casefold() == predicate.casefold()), None)
        if twin is not None:
            what = f"predicates '{twin}' and '{predicate}' differ in case alone, which SQL does not tell apart"
            raise ConfigError(what, hint="rename one of them, or state the derived predicate as facts")
        self.arities[predicate] = arity
        columns = ", ".join(f"{name} VARCHAR" for name in _names(arity))
        for denied in (False, True):
            self.connection.execute(f"CREATE TABLE {self._sql(predicate, denied=denied)} ({columns})")

    def table(self, predicate: str, *, denied: bool = False) -> AtomTable:
        """A predicate's table."""
        return AtomTable(predicate, tuple(_names(self.arities[predicate])), "denied" if denied else None)

    def _sql(self, predicate: str, *, denied: bool = False) -> str:
        return self.table(predicate, denied=denied).expression().sql("duckdb")

    def check(self, select: Select) -> None:
        """Refuse what is not one SELECT over facts."""
        try:
            statements = self.connection.extract_statements(select.text)
        except duckdb.Error as error:
            raise select.error(f"the database refuses it: {str(error).splitlines()[0]}") from error
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise select.error("it is not one SELECT", hint="a derived predicate is one SELECT, or a rule body -> head")
        other = other_read(select.sql, self.arities)
        if other is not None:
            raise select.error(f"it reads {other}", hint=f"{ONLY_FACTS}; {self._listed()}")
        order = order_read(select.sql)
        if order is not None:  # it would not give the same facts each time
            raise select.error(f"it depends on the order of the rows: {order[0]}", hint=order[1])

    def _listed(self) -> str:
        tables = (f"{name}({', '.join(_names(arity))})" for name, arity in sorted(self.arities.items()))
        return f"the tables are: {', '.join(tables)}"

    def count(self, predicate: str) -> int:
        """The number of a predicate's true atoms."""
        if predicate not in self.arities:
            return 0
        (count,) = self.connection.execute(f"SELECT count(*) FROM {self._sql(predicate)}").fetchone()  # pyright: ignore
        return int(count)

    def add(self, predicate: str, select: Select) -> None:
        """Add what a definition gives and the table does not hold yet."""
        seconds = MOST_SECONDS if select.may_be_endless else None
        try:
            with interruptible(self.connection, seconds):
                kinds = self.connection.sql(select.sql).types
                found = self.connection.sql(f"SELECT DISTINCT COLUMNS(*)::VARCHAR FROM ({select.sql}\n) ORDER BY ALL")
                columns = fetch_texts(found)
        except duckdb.InterruptException as error:
            raise select.error(f"it has not ended after {seconds:g} seconds", hint=ENDLESS) from error
        except duckdb.OutOfMemoryException as error:
            raise select.error(f"it needs more than {MOST_BYTES / 2**30:.1f} GiB of memory", hint=ENDLESS) from error
        except duckdb.Error as error:
            raise select.error(f"the database refuses it: {str(error).splitlines()[0]}", hint=self._listed()) from error
        nested = next((pair for pair in enumerate(kinds, start=1) if pair[1].id in _NESTED), None)
        if nested is not None:
            hint = "select one value for each constant: unnest(...), list[1] or struct.field"
            raise select.error(f"column {nested[0]} holds {nested[1].id}s, no constants", hint=hint)
        self.create(predicate, len(columns))
        if len(columns) != self.arities[predicate]:
            arity = self.arities[predicate]
            raise select.error(f"it gives {len(columns)} columns, but {predicate} takes {arity} constants")
        for i, column in enumerate(columns, start=1):
            empty = column.null_count + (pc.sum(pc.equal(column, "")).as_py() or 0)
            if empty:
                raise select.error(f"column {i} has no value in {empty:,} of {len(column):,} rows")
        table = self._sql(predicate)
        names = _names(len(columns))
        rows = self.connection.from_arrow(pa.table(list(columns), names)).except_(self.connection.sql(f"FROM {table}"))
        rows.order(", ".join(names)).insert_into(table)

    def rows_after(self, predicate: str, stated: int) -> tuple[pa.Array, ...]:
        """The columns of the rows that were added, in order."""
        table = self._sql(predicate)
        return fetch_texts(self.connection.sql(f"SELECT * FROM {table} ORDER BY rowid OFFSET {stated}"))


def _names(arity: int) -> list[str]:
    return [f"c{i}" for i in range(1, arity + 1)]
