"""What is known: facts as tables of a database in memory, for definitions to read; nothing outside can be read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from r2n.data.conjunctive import AtomTable
from r2n.data.definition_sql import ONLY_FACTS, order_read, other_read
from r2n.data.interruptible import interruptible
from r2n.data.stored_tables import fetch_texts
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

    def check_order(self) -> None:
        """Refuse SQL whose answer depends on the order of rows: it would not give the same facts each time."""
        found = order_read(self.sql)
        if found is not None:
            raise self.error(f"it depends on the order of the rows: {found[0]}", hint=found[1])


@runtime_checkable
class Database(Protocol):
    """What definitions need of a database: a table of each predicate's true atoms, and one of those denied."""

    arities: dict[str, int]

    def create(self, predicate: str, arity: int) -> None:
        """An empty table, and one for what is denied, where there are none yet."""
        ...

    def table(self, predicate: str, *, denied: bool = False) -> AtomTable:
        """A predicate's table."""
        ...

    def check(self, select: Select) -> None:
        """Refuse what is not one SELECT over facts."""
        ...

    def count(self, predicate: str) -> int:
        """The number of a predicate's true atoms."""
        ...

    def add(self, predicate: str, select: Select) -> None:
        """Add what a definition gives and the table does not hold yet."""
        ...


_NESTED = ("list", "array", "struct", "map", "union")
NOT_ONE_SELECT = ("it is not one SELECT", "a derived predicate is one SELECT, or a rule body -> head")


def refuse_twin(predicate: str, others: Iterable[str]) -> None:
    """SQL does not tell names apart that differ in case alone."""
    twin = next((name for name in others if name.casefold() == predicate.casefold()), None)
    if twin is not None:
        raise ConfigError(
            f"predicates '{twin}' and '{predicate}' differ in case alone, which SQL does not tell apart",
            hint="rename one of them, or state the derived predicate as facts",
        )


class FactDatabase:
    """The tables of all predicates; new rows are added behind the old ones."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, facts: Sequence[Facts]) -> None:
        """Load the facts, and close the database to all else."""
        self.connection = connection
        self.arities: dict[str, int] = {}
        connection.execute("CREATE SCHEMA denied")
        for predicate in dict.fromkeys(group.predicate for group in facts):
            self._load([group for group in facts if group.predicate == predicate])
        self._refuse_contradictions()
        connection.execute("SET temp_directory = ''")  # what recurs without end would fill the disk
        (used,) = connection.execute("SELECT sum(memory_usage_bytes) FROM duckdb_memory()").fetchone()  # pyright: ignore
        connection.execute(f"SET memory_limit = '{int(used) + MOST_BYTES} B'")
        for setting in _LOCKED:
            connection.execute(f"SET {setting}")

    def _load(self, groups: list[Facts]) -> None:
        """The facts of one predicate, all of one arity, each once."""
        predicate, arity = groups[0].predicate, len(groups[0].arguments)
        self.create(predicate, arity)
        names = [f"c{i}" for i in range(1, arity + 1)]
        for truth in (True, False):
            parts = [
                pa.table([column.filter(pa.array(group.truth == truth)) for column in group.arguments], names)
                for group in groups
            ]
            incoming = "_" * (1 + max(map(len, self.arities)))  # longer than the name of any predicate
            self.connection.register(incoming, pa.concat_tables(parts))
            table = self._sql(predicate, denied=not truth)
            self.connection.execute(f"INSERT INTO {table} SELECT DISTINCT * FROM {incoming}")
            self.connection.unregister(incoming)

    def create(self, predicate: str, arity: int) -> None:
        """An empty table, and one for what is denied, where there are none yet."""
        if predicate in self.arities:
            return
        refuse_twin(predicate, self.arities)
        self.arities[predicate] = arity
        columns = ", ".join(f"c{i} VARCHAR" for i in range(1, arity + 1))
        for denied in (False, True):
            self.connection.execute(f"CREATE TABLE {self._sql(predicate, denied=denied)} ({columns})")

    def _refuse_contradictions(self) -> None:
        for predicate in self.arities:
            both = [self._sql(predicate, denied=denied) for denied in (False, True)]
            row = self.connection.execute(f"SELECT * FROM {both[0]} INTERSECT SELECT * FROM {both[1]}").fetchone()
            if row is not None:
                raise DataError(
                    f"{predicate}({', '.join(row)}) is stated both true and false", hint="keep one of the two"
                )

    def table(self, predicate: str, *, denied: bool = False) -> AtomTable:
        """A predicate's table."""
        columns = tuple(f"c{i}" for i in range(1, self.arities[predicate] + 1))
        return AtomTable(predicate, columns, "denied" if denied else None)

    def _sql(self, predicate: str, *, denied: bool = False) -> str:
        return self.table(predicate, denied=denied).expression().sql("duckdb")

    def check(self, select: Select) -> None:
        """Refuse what is not one SELECT over facts."""
        try:
            statements = self.connection.extract_statements(select.text)
        except duckdb.Error as error:
            raise select.error(f"the database refuses it: {str(error).splitlines()[0]}") from error
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            what, hint = NOT_ONE_SELECT
            raise select.error(what, hint=hint)
        other = other_read(select.sql, self.arities)
        if other is not None:
            tables = ", ".join(f"{name}({_columns(arity)})" for name, arity in sorted(self.arities.items()))
            raise select.error(f"it reads {other}", hint=f"{ONLY_FACTS}; the tables are: {tables}")
        select.check_order()

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
            tables = ", ".join(f"{name}({_columns(arity)})" for name, arity in sorted(self.arities.items()))
            what = str(error).split("\n")[0]
            raise select.error(f"the database refuses it: {what}", hint=f"the tables are: {tables}") from error
        nested = next((pair for pair in enumerate(kinds, start=1) if pair[1].id in _NESTED), None)
        if nested is not None:
            hint = "select one value for each constant: unnest(...), list[1] or struct.field"
            raise select.error(f"column {nested[0]} holds {nested[1].id}s, no constants", hint=hint)
        self.create(predicate, len(columns))
        if len(columns) != self.arities[predicate]:
            raise select.error(
                f"it gives {len(columns)} columns, but {predicate} takes {self.arities[predicate]} constants"
            )
        for i, column in enumerate(columns, start=1):
            empty = column.null_count + (pc.sum(pc.equal(column, "")).as_py() or 0)
            if empty:
                raise select.error(f"column {i} has no value in {empty:,} of {len(column):,} rows")
        table = self._sql(predicate)
        names = [f"c{i}" for i in range(1, len(columns) + 1)]
        rows = self.connection.from_arrow(pa.table(list(columns), names)).except_(self.connection.sql(f"FROM {table}"))
        rows.order(", ".join(names)).insert_into(table)

    def rows_after(self, predicate: str, stated: int) -> tuple[pa.Array, ...]:
        """The columns of the rows that were added, in order."""
        table = self._sql(predicate)
        return fetch_texts(self.connection.sql(f"SELECT * FROM {table} ORDER BY rowid OFFSET {stated}"))


def _columns(arity: int) -> str:
    return ", ".join(f"c{i}" for i in range(1, arity + 1))
