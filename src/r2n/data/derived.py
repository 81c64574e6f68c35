"""Predicates that are not stated but derived from the facts, by SQL or by Horn rules.

Every predicate of the facts is a table of its name with the columns c1, c2, ... that holds its true atoms;
`denied.NAME` holds its false atoms. A definition is a SELECT over these tables, or a rule `body -> head`.
The database is in memory, and nothing outside it can be read.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace

import duckdb
import numpy as np
import pyarrow as pa
from sqlglot import exp

from r2n.data.conjunctive import ConjunctiveSelect
from r2n.data.encoding import declaration, wrong_arity
from r2n.data.fact_database import FactDatabase, Select
from r2n.data.records import OnError
from r2n.data.tables import Facts, Table
from r2n.errors import ConfigError, DataError, Location, TheoryError, nearest
from r2n.logic.formula import Atom, Implies, Variable
from r2n.logic.language import Predicate
from r2n.logic.parser import parse_theory
from r2n.logic.theory import Rule

Definitions = Mapping[str, str | Sequence[str]]
"""For each derived predicate a definition, or several that add up."""

_BEGINS_SQL = re.compile(r"\s*(select|with|from)\b", re.IGNORECASE)


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
    constants raises, or (`on_error="skip"`) is not read; the second part holds the errors of the background, while
    `facts` are checked again when they are encoded. `source` names the problem in errors.
    """
    if not definitions:
        return [], []
    wrong = _of_wrong_arity([*facts, *background], declared)
    if wrong and on_error == "raise":
        raise next(iter(wrong.values()))
    with closing(duckdb.connect()) as connection:
        database = FactDatabase(connection, [group for group in (*facts, *background) if group not in wrong])
        found = []
        for name, given in definitions.items():
            where = f"{source} [derived] {name}" if source else f"[derived] {name}"
            stated = database.count(name)
            add_derived(database, name, (given,) if isinstance(given, str) else tuple(given), where)
            columns = database.rows_after(name, stated)
            table = Table(pa.table(list(columns), [f"c{i}" for i in range(1, len(columns) + 1)]), name, called=where)
            count = len(columns[0])
            found.append(Facts(name, columns, np.ones(count, bool), np.arange(count), table))
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


def add_derived(database: FactDatabase, name: str, definitions: Sequence[str], where: str) -> None:
    """Add what the definitions of a predicate give; rules that use it are applied until nothing new follows."""
    if not definitions:
        raise ConfigError("there is no definition", where=Location(where), hint="give a SELECT or a rule")
    selects = [_select(database, name, text, where) for text in definitions]
    while True:
        before = database.count(name)
        for select in selects:
            database.add(name, select)
        if database.count(name) == before or not any(select.is_recursive for select in selects):
            break


def _select(database: FactDatabase, name: str, text: str, where: str) -> Select:
    """A definition, SQL or rule, as SQL; the first predicate of a rule may be a word of SQL: From(x, y) -> ..."""
    begins_as_sql, rules = _BEGINS_SQL.match(text) is not None, ()
    try:
        if not begins_as_sql or "->" in text:
            rules = parse_theory(f"rule derived:\n{text}").rules
    except TheoryError as error:
        if not begins_as_sql:
            at = error.where or Location()
            at = Location(where, None, at.column, at.excerpt)
            raise ConfigError(f"it is no SELECT, and as a rule: {error.what}", where=at, hint=error.hint) from error
    if begins_as_sql and not rules:
        select = Select(text.strip().rstrip(";"), text, where, is_recursive=False, may_be_endless=True)
        database.check(select)
        return select
    if len(rules) != 1:
        raise ConfigError("a definition holds one rule", where=Location(where), hint="list them: [a, b]")
    return _rule_select(database, name, rules[0], Select("", text, where, is_recursive=False))


def _rule_select(database: FactDatabase, name: str, rule: Rule, select: Select) -> Select:
    """The constants that the head takes where all of the body is known and no negated atom is a fact."""
    if not rule.body or not isinstance(rule.formula, Implies) or not isinstance(rule.formula.head, Atom):
        raise select.error("it is neither a SELECT nor a rule", hint="write body & ... -> head with one head atom")
    head = rule.formula.head
    if head.predicate != name:
        raise select.error(f"its head is {head.predicate}, but it defines {name}", hint=f"conclude {name}(...)")
    if rule.types:
        raise select.error(f"{rule.types[0][0]}: {rule.types[0][1]} has no meaning here", hint="leave the domain out")
    positive = [rule.atoms[literal.position] for literal in rule.body if literal.positive]
    negative = [rule.atoms[literal.position] for literal in rule.body if not literal.positive]
    if any(atom.predicate == name for atom in negative):
        raise select.error(f"{name} is derived from its own denial", hint="take !" + name + " out of the body")
    database.create(name, len(head.terms))
    _check_atoms(database, (*positive, *negative, head), select)
    guarded = [term for guard in rule.guards for term in (guard.left, guard.right)]
    bound = {term for atom in positive for term in atom.terms}
    for term in (*(term for atom in negative for term in atom.terms), *guarded, *head.terms):
        if isinstance(term, Variable) and term not in bound:
            what = f"the variable {term} stands in no undenied atom of the body"
            raise select.error(what, hint="a derived atom must follow from facts")
    query = ConjunctiveSelect(exp.Literal.string)
    for atom in positive:
        query.join(database.table(atom.predicate), atom.terms)
    for atom in negative:
        query.forbid(database.table(atom.predicate), atom.terms)
    for guard in rule.guards:
        query.differ((guard.left,), (guard.right,))
    found = query.select([exp.alias_(query.value(term), f"c{i}") for i, term in enumerate(head.terms, start=1)])
    return replace(select, sql=found.sql("duckdb"), is_recursive=any(atom.predicate == name for atom in positive))


def _check_atoms(database: FactDatabase, atoms: Sequence[Atom], select: Select) -> None:
    for atom in atoms:
        arity = database.arities.get(atom.predicate)
        if arity is None:
            near = nearest(atom.predicate, database.arities) or f"there are: {', '.join(sorted(database.arities))}"
            raise select.error(f"there are no facts of '{atom.predicate}'", hint=near)
        if len(atom.terms) != arity:
            raise select.error(f"{atom} has {len(atom.terms)} terms, but {atom.predicate} takes {arity}")
