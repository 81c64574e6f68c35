"""What is known: a conjunctive query over tables of atoms as one SELECT, for definitions and for rules alike."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from r2n.logic.formula import Constant, Term, Variable

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Expression
else:  # before sqlglot 30, Expression is the base of its expressions, and there is no Expr
    Expression = getattr(exp, "Expr", exp.Expression)


@dataclass(frozen=True, slots=True)
class AtomTable:
    """A table that holds an atom a row: its name, its columns (one a position) and the schema it is in."""

    name: str
    columns: tuple[str, ...]
    schema: str | None = None

    def expression(self, alias: str | None = None) -> exp.Table:
        """The table in a query, made without parsing: rules are many."""
        return exp.Table(
            this=exp.Identifier(this=self.name, quoted=True),
            db=exp.Identifier(this=self.schema, quoted=True) if self.schema else None,
            alias=exp.TableAlias(this=exp.Identifier(this=alias, quoted=False)) if alias else None,
        )


class ConjunctiveSelect:
    """The substitutions of variables under conditions that are added one by one; first come, first bound."""

    def __init__(self, constant: Callable[[str], Expression]) -> None:
        """Without conditions; `constant` writes a constant, given by name, as the tables hold it."""
        self.columns: dict[str, exp.Column] = {}
        self._constant = constant
        self._sources: list[exp.Table] = []
        self._conditions: list[Expression] = []
        self._left_joins: list[exp.Join] = []
        self._missing: list[Expression] = []

    def value(self, term: Term) -> Expression:
        """A term in the query; its variable is bound."""
        if isinstance(term, Constant):
            return self._constant(term.name)
        return self.columns[term.name].copy()

    def join(self, table: AtomTable, terms: Sequence[Term]) -> None:
        """Only substitutions that take the terms to a row of the table; this binds their variables."""
        alias = f"t{len(self._sources)}"
        self._sources.append(table.expression(alias))
        for name, term in zip(table.columns, terms, strict=True):
            column = exp.column(name, table=alias)
            if isinstance(term, Variable) and term.name not in self.columns:
                self.columns[term.name] = column
            else:
                self._conditions.append(exp.EQ(this=column, expression=self.value(term)))

    def forbid(self, table: AtomTable, terms: Sequence[Term]) -> None:
        """Only substitutions that take the terms to no row of the table."""
        alias = f"n{len(self._conditions)}"
        rows = exp.select(exp.Literal.number(1)).from_(table.expression(alias)).where(self._same(table, alias, terms))
        self._conditions.append(exp.not_(exp.Exists(this=rows)))

    def count_missing(self, table: AtomTable, terms: Sequence[Term]) -> None:
        """Count a substitution's terms as missing where they are no row of the table."""
        alias = f"k{len(self._left_joins)}"
        same = self._same(table, alias, terms)
        self._left_joins.append(exp.Join(this=table.expression(alias), on=same, side="LEFT"))
        missing = exp.Is(this=exp.column(table.columns[0], table=alias), expression=exp.Null())
        self._missing.append(exp.Cast(this=exp.Paren(this=missing), to=exp.DataType.build("int")))

    def differ(self, some: Sequence[Term], other: Sequence[Term]) -> None:
        """Only substitutions under which the terms are not all equal to the others."""
        pairs = [
            exp.EQ(this=self.value(left), expression=self.value(right)) for left, right in zip(some, other, strict=True)
        ]
        self._conditions.append(exp.not_(exp.paren(exp.and_(*pairs))))

    def _same(self, table: AtomTable, alias: str, terms: Sequence[Term]) -> Expression:
        pairs = zip(table.columns, terms, strict=True)
        return exp.and_(
            *(exp.EQ(this=exp.column(name, table=alias), expression=self.value(term)) for name, term in pairs)
        )

    def select(self, outputs: Sequence[Expression], missing: int = 0) -> exp.Select:
        """These outputs of every substitution with at most so many missing rows.

        Over tables of distinct rows no substitution comes twice: the variables determine the row of each table.
        """
        query = exp.select(*outputs)
        if self._sources:
            query = query.from_(self._sources[0], copy=False)
        crossed = [exp.Join(this=source, kind="CROSS") for source in self._sources[1:]]
        query.set("joins", [*crossed, *self._left_joins])
        for condition in self._conditions:
            query = query.where(condition, copy=False)
        if len(self._missing) > missing:
            total = self._missing[0]
            for each in self._missing[1:]:
                total = exp.Add(this=total, expression=each)
            query = query.where(exp.LTE(this=total, expression=exp.Literal.number(missing)), copy=False)
        return query
