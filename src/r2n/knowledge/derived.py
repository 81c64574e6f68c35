"""What is known: predicates that are not stated but derived from the facts, by SQL or by Horn rules.

Every predicate of the facts is a table of its name with the columns c1, c2, ... that holds its true atoms;
`denied.NAME` holds those stated to be false. A definition is a SELECT over these tables, or a rule `body -> head`.
The database is in memory, and nothing outside it can be read.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
from sqlglot import exp

from r2n.errors import ConfigError, DataError, Location, TheoryError, nearest
from r2n.knowledge.encoding import declaration, wrong_arity
from r2n.knowledge.records import OnError
from r2n.knowledge.stored_tables import fetch_texts
from r2n.knowledge.tables import Facts, Table
from r2n.logic.formula import Atom, Constant, Implies, Term, Variable
from r2n.logic.language import Predicate
from r2n.logic.parser import parse_theory
from r2n.logic.theory import Rule

Definitions = Mapping[str, str | Sequence[str]]
"""For each derived predicate a definition, or several that add up."""

_BEGINS_SQL = re.compile(r"\s*(select|with|from)\b", re.IGNORECASE)
_LOCKED = ("enable_external_access = false", "python_enable_replacements = false", "lock_configuration = true")


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

    A rule may use the predicate that it defines: it is applied until nothing new follows. A fact with a wrong number of
    constants raises, or (`on_error="skip"`) is not read; those of the background are told in the second part, while
    `facts` are checked again when they are encoded. `source` names the problem in errors.
    """
    if not definitions:
        return [], []
    wrong = _of_wrong_arity([*facts, *background], declared)
    if wrong and on_error == "raise":
        raise next(iter(wrong.values()))
    with closing(duckdb.connect()) as connection:
        database = _Database(connection, [group for group in (*facts, *background) if group not in wrong])
        found = [
            _derived(database, name, (given,) if isinstance(given, str) else tuple(given), source)
            for name, given in definitions.items()
        ]
    return found, [wrong[group] for group in background if group in wrong]


def _of_wrong_arity(facts: Sequence[Facts], declared: Sequence[Predicate]) -> dict[Facts, DataError]:
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


def _derived(database: "_Database", name: str, definitions: tuple[str, ...], source: str | None) -> Facts:
    where = f"{source} [derived] {name}" if source else f"[derived] {name}"
    if not definitions:
        raise ConfigError("there is no definition", where=Location(where), hint="give a SELECT or a rule")
    selects = [_select(database, name, text, where) for text in definitions]
    stated = database.count(name)
    while True:
        before = database.count(name)
        for select in selects:
            database.add(name, select)
        if database.count(name) == before or not any(select.is_recursive for select in selects):
            break
    columns = database.rows_after(name, stated)
    table = Table(pa.table(list(columns), [f"c{i}" for i in range(1, len(columns) + 1)]), name, called=where)
    count = len(columns[0])
    return Facts(name, columns, np.ones(count, bool), np.arange(count), table)


@dataclass(frozen=True, slots=True)
class _Select:
    """A definition as SQL; `is_recursive` where it reads what it defines."""

    sql: str
    text: str
    where: str
    is_recursive: bool

    def error(self, what: str, hint: str | None = None) -> ConfigError:
        excerpt = self.text.strip().split("\n")[0]
        return ConfigError(what, where=Location(self.where, excerpt=excerpt), hint=hint)


class _Database:
    """The tables of all predicates; new rows are added behind the old ones."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, facts: Sequence[Facts]) -> None:
        self.connection = connection
        self.arities: dict[str, int] = {}
        connection.execute("CREATE SCHEMA denied")
        for predicate in dict.fromkeys(group.predicate for group in facts):
            self._load([group for group in facts if group.predicate == predicate])
        self._refuse_contradictions()
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
            table = self.table(predicate, denied=not truth).sql("duckdb")
            self.connection.execute(f"INSERT INTO {table} SELECT DISTINCT * FROM {incoming}")
            self.connection.unregister(incoming)

    def create(self, predicate: str, arity: int) -> None:
        """An empty table, and one for what is denied, where there are none yet."""
        if predicate in self.arities:
            return
        twin = next((name for name in self.arities if name.casefold() == predicate.casefold()), None)
        if twin is not None:
            raise ConfigError(
                f"predicates '{twin}' and '{predicate}' differ in case alone, which SQL does not tell apart",
                hint="rename one of them, or state the derived predicate as facts",
            )
        self.arities[predicate] = arity
        columns = ", ".join(f"c{i} VARCHAR" for i in range(1, arity + 1))
        for denied in (False, True):
            self.connection.execute(f"CREATE TABLE {self.table(predicate, denied=denied).sql('duckdb')} ({columns})")

    def _refuse_contradictions(self) -> None:
        for predicate in self.arities:
            both = [self.table(predicate, denied=denied).sql("duckdb") for denied in (False, True)]
            row = self.connection.execute(f"SELECT * FROM {both[0]} INTERSECT SELECT * FROM {both[1]}").fetchone()
            if row is not None:
                raise DataError(
                    f"{predicate}({', '.join(row)}) is stated both true and false", hint="keep one of the two"
                )

    def table(self, predicate: str, *, denied: bool = False, alias: str | None = None) -> exp.Table:
        """A predicate's table in a query."""
        schema = exp.to_identifier("denied", quoted=True) if denied else None
        name = exp.Table(this=exp.to_identifier(predicate, quoted=True), db=schema)
        return name if alias is None else exp.alias_(name, alias, table=True)  # pyright: ignore[reportReturnType]

    def count(self, predicate: str) -> int:
        """The number of a predicate's true atoms."""
        if predicate not in self.arities:
            return 0
        (count,) = self.connection.execute(f"SELECT count(*) FROM {self.table(predicate).sql('duckdb')}").fetchone()  # pyright: ignore
        return int(count)

    def add(self, predicate: str, select: _Select) -> None:
        """Add what a definition gives and the table does not hold yet."""
        try:
            found = self.connection.sql(f"SELECT DISTINCT COLUMNS(*)::VARCHAR FROM ({select.sql}\n) ORDER BY ALL")
            columns = fetch_texts(found)
        except duckdb.Error as error:
            tables = ", ".join(f"{name}({_columns(arity)})" for name, arity in sorted(self.arities.items()))
            what = str(error).split("\n")[0]
            raise select.error(f"the database refuses it: {what}", hint=f"the tables are: {tables}") from error
        self.create(predicate, len(columns))
        if len(columns) != self.arities[predicate]:
            raise select.error(
                f"it gives {len(columns)} columns, but {predicate} takes {self.arities[predicate]} constants"
            )
        for i, column in enumerate(columns, start=1):
            if column.null_count:
                raise select.error(f"column {i} has no value in {column.null_count:,} of {len(column):,} rows")
        table = self.table(predicate).sql("duckdb")
        names = [f"c{i}" for i in range(1, len(columns) + 1)]
        rows = self.connection.from_arrow(pa.table(list(columns), names)).except_(self.connection.sql(f"FROM {table}"))
        rows.order(", ".join(names)).insert_into(table)

    def rows_after(self, predicate: str, stated: int) -> tuple[pa.Array, ...]:
        """The columns of the rows that were added, in order."""
        table = self.table(predicate).sql("duckdb")
        return fetch_texts(self.connection.sql(f"SELECT * FROM {table} ORDER BY rowid OFFSET {stated}"))


def _columns(arity: int) -> str:
    return ", ".join(f"c{i}" for i in range(1, arity + 1))


def _select(database: _Database, name: str, text: str, where: str) -> _Select:
    """A definition, SQL or rule, as SQL."""
    if not _is_sql(text):
        return _rule_select(database, name, text, where)
    select = _Select(text.strip().rstrip(";"), text, where, is_recursive=False)
    try:
        statements = database.connection.extract_statements(text)
    except duckdb.Error as error:
        raise select.error(f"the database refuses it: {str(error).splitlines()[0]}") from error
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise select.error("it is not one SELECT", hint="a derived predicate is one SELECT, or a rule body -> head")
    return select


def _is_sql(text: str) -> bool:
    """Whether a definition begins as SQL does, and is no rule whose first predicate is called so: From(x, y) -> ..."""
    begins_so = _BEGINS_SQL.match(text) is not None
    if not begins_so or "->" not in text:
        return begins_so
    try:
        parse_theory(f"rule derived:\n{text}")
    except TheoryError:
        return True
    return False


def _rule_select(database: _Database, name: str, text: str, where: str) -> _Select:
    rule = _parsed(text, where)
    select = _Select("", text, where, is_recursive=False)
    body = rule.body
    if not body or not isinstance(rule.formula, Implies) or not isinstance(rule.formula.head, Atom):
        raise select.error("it is neither a SELECT nor a rule", hint="write body & ... -> head with one head atom")
    head = rule.formula.head
    if head.predicate != name:
        raise select.error(f"its head is {head.predicate}, but it defines {name}", hint=f"conclude {name}(...)")
    if rule.types:
        raise select.error(f"{rule.types[0][0]}: {rule.types[0][1]} has no meaning here", hint="leave the domain out")
    positive = [rule.atoms[literal.position] for literal in body if literal.positive]
    denied = [rule.atoms[literal.position] for literal in body if not literal.positive]
    if any(atom.predicate == name for atom in denied):
        raise select.error(f"{name} is derived from its own denial", hint="take !" + name + " out of the body")
    database.create(name, len(head.terms))
    for atom in (*positive, *denied, head):
        _check_atom(database, atom, select)
    query = _conjunctive(database, rule, head, positive, denied, select)
    return _Select(query.sql("duckdb"), text, where, any(atom.predicate == name for atom in positive))


def _parsed(text: str, where: str) -> Rule:
    try:
        (rule,) = parse_theory(f"rule derived:\n{text}").rules
    except TheoryError as error:
        at = error.where
        place = Location(where, None, at.column if at else None, at.excerpt if at else None)
        raise ConfigError(f"it is no SELECT, and as a rule: {error.what}", where=place, hint=error.hint) from error
    except ValueError as error:
        raise ConfigError("a definition holds one rule", where=Location(where), hint="list them: [a, b]") from error
    return rule


def _check_atom(database: _Database, atom: Atom, select: _Select) -> None:
    if atom.predicate not in database.arities:
        known = ", ".join(sorted(database.arities))
        raise select.error(
            f"there are no facts of '{atom.predicate}'",
            hint=nearest(atom.predicate, database.arities) or f"there are: {known}",
        )
    arity = database.arities[atom.predicate]
    if len(atom.terms) != arity:
        raise select.error(f"{atom} has {len(atom.terms)} terms, but {atom.predicate} takes {arity}")


def _conjunctive(
    database: _Database, rule: Rule, head: Atom, positive: list[Atom], denied: list[Atom], select: _Select
) -> exp.Select:
    """The constants that the head takes where all of the body is known and nothing denied is a fact."""
    columns: dict[str, exp.Column] = {}
    conditions: list[exp.Expr] = []
    sources: list[exp.Expr] = []
    for number, atom in enumerate(positive):
        sources.append(database.table(atom.predicate, alias=f"t{number}"))
        for i, term in enumerate(atom.terms, start=1):
            column = exp.column(f"c{i}", table=f"t{number}")
            if isinstance(term, Variable) and term.name not in columns:
                columns[term.name] = column
            else:
                conditions.append(exp.EQ(this=column, expression=_value(term, columns, select)))
    for number, atom in enumerate(denied):
        terms = enumerate(atom.terms, start=1)
        same = [
            exp.EQ(this=exp.column(f"c{i}", table=f"n{number}"), expression=_value(t, columns, select))
            for i, t in terms
        ]
        rows = exp.select("1").from_(database.table(atom.predicate, alias=f"n{number}")).where(*same)
        conditions.append(exp.not_(exp.Exists(this=rows)))
    for guard in rule.guards:
        left, right = (_value(term, columns, select) for term in (guard.left, guard.right))
        conditions.append(exp.NEQ(this=left, expression=right))
    outputs = [exp.alias_(_value(term, columns, select), f"c{i}") for i, term in enumerate(head.terms, start=1)]
    query = exp.select(*outputs).where(*conditions) if conditions else exp.select(*outputs)
    for number, source in enumerate(sources):
        query = query.from_(source) if number == 0 else query.join(source, join_type="cross")
    return query


def _value(term: Term, columns: Mapping[str, exp.Column], select: _Select) -> exp.Expr:
    if isinstance(term, Constant):
        return exp.Literal.string(term.name)
    if term.name not in columns:
        raise select.error(
            f"the variable {term} stands in no undenied atom of the body", hint="a derived atom must follow from facts"
        )
    return columns[term.name].copy()
