"""What tables state -> predicates that are derived from it, by the same definitions, as queries of Spark."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from r2n.data.conjunctive import AtomTable
from r2n.data.definition_sql import ONLY_FACTS, functions, other_function
from r2n.data.derived import add_derived
from r2n.data.fact_database import NOT_ONE_SELECT, Select, refuse_twin
from r2n.data.problem import TRAIN
from r2n.errors import DataError, R2NError
from r2n.grounding.remote.stated import Stated, quoted
from r2n.grounding.spark_engine import SparkEngine, parquet_of

_DENIED = "denied"


class SparkDatabase:
    """The tables of all predicates as views of Spark; a definition reads these and nothing else."""

    def __init__(self, engine: SparkEngine, stated: Sequence[Stated], scratch: Path) -> None:
        """Of what is stated; what is derived is written under `scratch`."""
        self.engine, self.scratch = engine, scratch
        self.arities: dict[str, int] = {}
        self._parts: dict[str, list[str]] = {}
        self._denied: dict[str, list[str]] = {}
        self._counts: dict[str, int] = {}
        for part in stated:
            for name in part.predicates:
                self._take(part, name)

    def _take(self, part: Stated, name: str) -> None:
        if self.arities.get(name, part.arity) != part.arity:
            raise DataError(f"{name} is stated with {self.arities[name]} constants, and with {part.arity}")
        self.create(name, part.arity)
        columns = ", ".join(f"c{i} AS c{i + 1}" for i in range(part.arity))
        rows = f"SELECT {columns} FROM {part.view} WHERE predicate = {quoted(name)}"
        self._parts[name].append(f"{rows} AND truth")
        self._denied[name].append(f"{rows} AND NOT truth")

    def create(self, predicate: str, arity: int) -> None:
        """An empty table, and one for what is denied, where there are none yet."""
        if predicate not in self.arities:
            refuse_twin(predicate, self.arities)
            self.arities[predicate] = arity
            self._parts[predicate], self._denied[predicate] = [], []

    def table(self, predicate: str, *, denied: bool = False) -> AtomTable:
        """A predicate's table, as definitions call it."""
        columns = tuple(f"c{i}" for i in range(1, self.arities[predicate] + 1))
        return AtomTable(predicate, columns, _DENIED if denied else None)

    def check(self, select: Select) -> None:
        """Refuse what is not one SELECT, or calls what is no function of facts: Spark's reach the whole machine."""
        found = self._parsed(select).find_all(exp.Anonymous, exp.Rand, exp.Randn)
        called = {(node.name if isinstance(node, exp.Anonymous) else node.key).casefold() for node in found}
        other = next((f"the function {name}" for name in sorted(called) if not functions().get(name)), None)
        other = other or other_function(select.sql)
        if other is not None:
            raise select.error(f"it reads {other}", hint=ONLY_FACTS)
        select.check_order()

    def _parsed(self, select: Select) -> exp.Query:
        try:
            statements = sqlglot.parse(select.sql, dialect="duckdb")
        except SqlglotError as error:
            raise select.error(f"it cannot be read as SQL: {str(error).splitlines()[0]}") from error
        if len(statements) != 1 or not isinstance(statements[0], exp.Query):
            what, hint = NOT_ONE_SELECT
            raise select.error(what, hint=hint)
        return statements[0]

    def count(self, predicate: str) -> int:
        """The number of a predicate's true atoms, each once."""
        if predicate not in self.arities:
            return 0
        if predicate not in self._counts:
            found = self.engine.ask(f"SELECT count(*) AS n FROM ({self._rows(predicate)})")
            self._counts[predicate] = int(found["n"][0])
        return self._counts[predicate]

    def _rows(self, predicate: str, *, denied: bool = False) -> str:
        parts = (self._denied if denied else self._parts)[predicate]
        return " UNION ".join(parts or [self._nothing(predicate)])

    def _nothing(self, predicate: str) -> str:
        nothing = ", ".join(f"CAST(NULL AS STRING) AS c{i}" for i in range(1, self.arities[predicate] + 1))
        return f"SELECT {nothing} WHERE false"

    def add(self, predicate: str, select: Select) -> None:
        """Add what a definition gives and the table does not hold yet."""
        query = self._over_views(select)
        try:
            self.engine.view("given", query.sql("spark"))
            columns = self.engine.columns("given")
        except R2NError as error:
            tables = ", ".join(f"{name}({', '.join(self.table(name).columns)})" for name in sorted(self.arities))
            raise select.error(error.what, hint=f"the tables are: {tables}") from error
        self.create(predicate, len(columns))
        if len(columns) != self.arities[predicate]:
            takes = self.arities[predicate]
            raise select.error(f"it gives {len(columns)} columns, but {predicate} takes {takes} constants")
        names = [f"c{i}" for i in range(1, len(columns) + 1)]
        cells = [f"CAST(given.`{column}` AS STRING) AS {name}" for column, name in zip(columns, names, strict=True)]
        folder = self.scratch / f"derived_{len(list(self.scratch.glob('derived_*')))}"
        self.engine.write(f"SELECT {', '.join(cells)} FROM given EXCEPT ({self._rows(predicate)})", folder)
        written = parquet_of(folder)
        empty = " OR ".join(f"{name} IS NULL" for name in names)
        found = self.engine.ask(f"SELECT count(*) AS n, count_if({empty}) AS empty FROM {written}")
        if found["empty"][0]:
            raise select.error(f"a column has no value in {int(found['empty'][0]):,} rows")
        if found["n"][0]:
            self._parts[predicate].append(f"SELECT {', '.join(names)} FROM {written}")
            self._counts.pop(predicate, None)

    def _over_views(self, select: Select) -> exp.Query:
        """The definition with the tables of predicates as views of Spark; any other table is refused."""
        query = self._parsed(select)
        local = {cte.alias for cte in query.find_all(exp.CTE)}
        by_case = {name.casefold(): name for name in self.arities}
        for number, table in enumerate(list(query.find_all(exp.Table))):
            if table.name in local and not table.db:
                continue
            name = by_case.get(table.name.casefold())
            if (
                name is None
                or table.catalog
                or table.db not in ("", _DENIED)
                or not isinstance(table.this, exp.Identifier)
            ):
                known = ", ".join(sorted(self.arities))
                raise select.error(f"there is no table {table.sql('duckdb')!r}", hint=f"there are: {known}")
            view = f"derived_from_{number}"
            self.engine.view(view, self._rows(name, denied=table.db == _DENIED))
            table.set("db", None)
            if not table.alias:
                table.set("alias", exp.TableAlias(this=table.this.copy()))
            table.set("this", exp.to_identifier(view))
        return query

    def derived(self, predicate: str, before: int) -> str:
        """The rows that were added behind the first so many parts, as SQL."""
        return " UNION ALL ".join(self._parts[predicate][before:] or [self._nothing(predicate)])

    def parts(self, predicate: str) -> int:
        """Of how many parts a table is."""
        return len(self._parts.get(predicate, ()))


def derive_stated(
    engine: SparkEngine,
    definitions: Mapping[str, str | Sequence[str]],
    stated: Sequence[Stated],
    scratch: Path,
    source: str,
) -> tuple[Stated, ...]:
    """What definitions add to facts and background, predicate by predicate; a later one may use those before."""
    database = SparkDatabase(engine, stated, scratch)
    found: list[Stated] = []
    for name, given in definitions.items():
        before, where = database.parts(name), f"{source} [derived] {name}"
        add_derived(database, name, (given,) if isinstance(given, str) else tuple(given), where)
        arity, view = database.arities[name], f"stated_derived_{len(found)}"
        columns = ", ".join(f"c{i + 1} AS c{i}" for i in range(arity))
        rows = database.derived(name, before)
        engine.view(view, f"SELECT {quoted(name)} AS predicate, true AS truth, {columns} FROM ({rows})")
        found.append(Stated(view, TRAIN, where, arity, (name,)))
    return tuple(found)
