"""Rules -> ground rules: a rule as a conjunctive query, built as a sqlglot expression.

Tables: `true_P` and `false_P` hold the arguments (a0, a1, ...) of predicate number P's known atoms, `domain_D`
the constants (c) of domain number D, `asked_P` and `candidate_P` the arguments of P's queries and candidates. All are
constant ids.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from sqlglot import exp

from r2n.grounding.engines import DuckDBEngine, Engine
from r2n.grounding.ground_rules import Substitutions
from r2n.grounding.join import Relations
from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.logic.formula import Atom, Constant, Term, Variable
from r2n.logic.language import Domain
from r2n.logic.theory import Rule

TRUE, FALSE, ASKED, CANDIDATE = "true", "false", "asked", "candidate"


class Store:
    """The tables of a knowledge base in an engine, loaded when first needed, and their statistics.

    `relations` are the same tables as arrays in memory.
    """

    def __init__(self, knowledge: KnowledgeBase, engine: Engine | None = None) -> None:
        """Tables of `knowledge` in `engine`, by default an embedded DuckDB."""
        self.knowledge, self.language = knowledge, knowledge.language
        self.engine, self.relations = engine or DuckDBEngine(), Relations(knowledge)
        self._rows: dict[str, np.ndarray] = {}
        self._distinct: dict[tuple[str, int], int] = {}

    def atoms_table(self, kind: str, predicate: str) -> str:
        """The table of the predicate's known (or asked) atoms."""
        index = self.language.predicate_index(predicate)
        name = f"{kind}_{index}"
        if name not in self._rows:
            declared = self.language.predicates[index]
            if kind == CANDIDATE:
                codes = self.knowledge.candidates[predicate]
            else:
                codes = self.knowledge.known_codes(declared, kind == TRUE)
            self.load(name, self.knowledge.base.decode(codes)[1][:, : declared.arity])
        return name

    def domain_table(self, domain: Domain) -> str:
        """The table of the domain's constants."""
        name = f"domain_{self.language.domains.index(domain)}"
        if name not in self._rows:
            members = self.language.members(domain)
            self._rows[name] = members[:, None]
            self.engine.load(name, {"c": members})
        return name

    def ask(self, predicate: str, arguments: np.ndarray) -> None:
        """Hold these arguments as the queries of the predicate."""
        self.load(f"{ASKED}_{self.language.predicate_index(predicate)}", arguments)

    def load(self, name: str, rows: np.ndarray) -> None:
        """Hold rows (atoms, positions) as a table, in place of an earlier one."""
        self._rows[name] = rows
        self._distinct = {key: count for key, count in self._distinct.items() if key[0] != name}
        self.engine.load(name, {f"a{i}": np.ascontiguousarray(rows[:, i]) for i in range(rows.shape[1])})

    def count(self, table: str) -> int:
        """The number of rows of a table."""
        return len(self._rows[table])

    def distinct(self, table: str, column: int) -> int:
        """The number of distinct values of a table's column."""
        key = (table, column)
        if key not in self._distinct:
            self._distinct[key] = len(np.unique(self._rows[table][:, column]))
        return self._distinct[key]


@dataclass
class RuleQuery:
    """The substitutions of a rule under conditions that are added one by one; first come, first bound."""

    store: Store
    rule: Rule
    columns: dict[str, exp.Column] = field(default_factory=dict)
    _sources: list[exp.Expr] = field(default_factory=list)
    _conditions: list[exp.Expr] = field(default_factory=list)
    _left_joins: list[exp.Join] = field(default_factory=list)
    _unknown: list[exp.Expr] = field(default_factory=list)
    _fits: dict[str, bool] = field(default_factory=dict)
    _size: float = 1.0

    def __post_init__(self) -> None:
        """Find the variables' domains."""
        domains = self.store.knowledge.theory.variable_domains(self.rule)
        self.domains = dict(zip(self.rule.variables, domains, strict=True))

    def _source(self, table: str) -> str:
        alias = f"t{len(self._sources)}"
        self._sources.append(_table(table, alias))
        return alias

    def join(self, kind: str, atom: Atom) -> str:
        """Only substitutions that take the atom to a row of its `kind` of table; returns the table's alias."""
        table = self.store.atoms_table(kind, atom.predicate)
        alias = self._source(table)
        self._size *= self.store.count(table)
        positions = self.store.language.predicate(atom.predicate).domains
        for i, (term, domain) in enumerate(zip(atom.terms, positions, strict=True)):
            column = exp.column(f"a{i}", table=alias)
            distinct = max(1, self.store.distinct(table, i))
            if isinstance(term, Variable) and term.name not in self.columns:
                self.columns[term.name] = column
                self._fits[term.name] = domain == self.domains[term.name]
            else:
                self._conditions.append(exp.EQ(this=column, expression=self.value(term)))
                self._size /= distinct
                if isinstance(term, Variable):
                    self._fits[term.name] |= domain == self.domains[term.name]
        return alias

    def value(self, term: Term) -> exp.Expr:
        """A term's constant id in the query."""
        if isinstance(term, Constant):
            return exp.Literal.number(self.store.language.constant_id(term.name))
        return self.columns[term.name].copy()

    def bind_free(self, variables: Iterable[str]) -> None:
        """Let the variables that no table has bound run over their domains, and hold the others to theirs."""
        for name in variables:
            domain = self.domains[name]
            table = self.store.domain_table(domain)
            if name not in self.columns:
                self.columns[name] = exp.column("c", table=self._source(table))
                self._size *= self.store.count(table)
            elif not self._fits[name]:
                alias = self._source(table)
                same = exp.EQ(this=exp.column("c", table=alias), expression=self.columns[name].copy())
                self._conditions.append(same)
                self._size *= self.store.count(table) / max(1, len(self.store.language.constants))
            self._fits[name] = True

    def guard(self) -> None:
        """Only substitutions that meet the rule's guards."""
        for guard in self.rule.guards:
            self._conditions.append(exp.NEQ(this=self.value(guard.left), expression=self.value(guard.right)))

    def same_terms(self, atom: Atom, alias: str) -> exp.Expr:
        """The condition that the atom is the row of the table behind `alias`."""
        pairs = [
            exp.EQ(this=exp.column(f"a{i}", table=alias), expression=self.value(term))
            for i, term in enumerate(atom.terms)
        ]
        return exp.and_(*pairs)

    def refuse(self, atom: Atom, alias: str) -> None:
        """Only substitutions under which the atom is not the row of the table behind `alias`."""
        self._conditions.append(exp.not_(exp.paren(self.same_terms(atom, alias))))

    def forbid(self, kind: str, atom: Atom) -> None:
        """Only substitutions that take the atom to no row of its `kind` of table."""
        table = self.store.atoms_table(kind, atom.predicate)
        alias = f"n{len(self._conditions)}"
        rows = exp.select(exp.Literal.number(1)).from_(_table(table, alias))
        self._conditions.append(exp.not_(exp.Exists(this=rows.where(self.same_terms(atom, alias)))))

    def count_unknown(self, kind: str, atom: Atom) -> None:
        """Count a substitution's atom as unknown when it is no row of its `kind` of table."""
        table = self.store.atoms_table(kind, atom.predicate)
        alias = f"k{len(self._left_joins)}"
        self._left_joins.append(exp.Join(this=_table(table, alias), on=self.same_terms(atom, alias), side="LEFT"))
        missing = exp.Is(this=exp.column("a0", table=alias), expression=exp.Null())
        self._unknown.append(exp.Cast(this=exp.Paren(this=missing), to=exp.DataType.build("int")))

    def estimate(self) -> int:
        """About how many substitutions there are, from table sizes and distinct values alone."""
        return round(min(self._size, 1e18))

    @property
    def is_bound(self) -> bool:
        """Whether any condition has been added."""
        return bool(self._sources or self._conditions)

    def substitutions(self, variables: Iterable[str], *, width: int, limit: int) -> Substitutions:
        """Constant ids of the variables, at most `limit` rows, with at most `width` unknown atoms.

        No row comes twice: tables hold distinct rows, and the variables determine the row of each.
        """
        outputs = [exp.alias_(self.columns[name].copy(), f"v{i}") for i, name in enumerate(variables)]
        one = exp.alias_(exp.Literal.number(1), "one")
        answer = self.store.engine.run(self._select(outputs or [one], width).limit(limit, copy=False))
        rows = np.stack(list(answer.values())).astype(np.int64, copy=False)
        return rows[: len(outputs)].T if outputs else np.zeros((rows.shape[1], 0), np.int64)

    def count(self) -> int:
        """The number of substitutions."""
        return int(self.store.engine.run(self._select([exp.alias_(exp.Count(this=exp.Star()), "n")], 0))["n"][0])

    def _select(self, outputs: list[exp.Expr], width: int) -> exp.Select:
        query = exp.select(*outputs)
        if self._sources:
            query = query.from_(self._sources[0], copy=False)
        crossed = [exp.Join(this=source, kind="CROSS") for source in self._sources[1:]]
        query.set("joins", [*crossed, *self._left_joins])
        for condition in self._conditions:
            query = query.where(condition, copy=False)
        if len(self._unknown) > width:
            total = self._unknown[0]
            for unknown in self._unknown[1:]:
                total = exp.Add(this=total, expression=unknown)
            query = query.where(exp.LTE(this=total, expression=exp.Literal.number(width)), copy=False)
        return query


def _table(name: str, alias: str) -> exp.Table:
    """A table under an alias, made without parsing: rules are many."""
    return exp.Table(
        this=exp.Identifier(this=name, quoted=True),
        alias=exp.TableAlias(this=exp.Identifier(this=alias, quoted=False)),
    )
