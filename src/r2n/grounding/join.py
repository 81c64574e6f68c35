"""Rules -> ground rules: the substitutions of a query by joins of arrays in memory.

A mined theory has many rules with small answers, where a database spends its time on planning. Here each relation is
indexed once per column, by counting, and each join is a handful of array operations.
"""

import numpy as np

from r2n.grounding.relations import Relation
from r2n.grounding.rule_query import Match, RuleQuery
from r2n.grounding.substitutions import Substitutions
from r2n.logic.formula import Atom, Constant, Term, Variable
from r2n.logic.language import Language

MOST_ROWS = 20_000_000  # of an intermediate result; beyond, a database that can leave memory does better


class TooManyRowsError(Exception):
    """A join would not fit in memory."""


def joined(query: RuleQuery, language: Language, most_rows: int = MOST_ROWS) -> Substitutions:
    """The substitutions that a query seeks, in no order, each once; TooManyRowsError where they do not fit."""
    found = _Bindings(language, most_rows)
    found.join_all(query.joined)
    for relation, atom in query.ranging:
        found.join(relation, atom)
    for guard in query.rule.guards:
        found.keep(found.value(guard.left) != found.value(guard.right))
    for relation, atom in query.absent:
        found.keep(~found.holds(relation, atom))
    for some, other in query.apart:
        found.keep(~found.same(some, other))
    if len(query.counted) > query.width:
        missing = [~found.holds(relation, atom) for relation, atom in query.counted]
        found.keep(np.sum(missing, axis=0) <= query.width)
    columns = [found.columns[name] for name in query.variables]
    return np.stack(columns).T if columns else np.zeros((found.size, 0), np.int64)


class _Bindings:
    """Bindings of variables to constants, joined with one relation after the other."""

    def __init__(self, language: Language, most_rows: int) -> None:
        self.language, self.size, self.most_rows = language, 1, most_rows
        self.columns: dict[str, np.ndarray] = {}

    def value(self, term: Term) -> np.ndarray:
        """The constant ids of a bound term, row by row."""
        if isinstance(term, Constant):
            return np.full(self.size, self.language.constant_id(term.name))
        return self.columns[term.name]

    def keep(self, which: np.ndarray) -> None:
        """Only these rows (places, with repetition, or a mask)."""
        self.size = int(np.count_nonzero(which)) if which.dtype == bool else len(which)
        if which.dtype != bool or self.size < len(which):
            self.columns = {name: column[which] for name, column in self.columns.items()}

    def is_bound(self, term: Term) -> bool:
        return isinstance(term, Constant) or term.name in self.columns

    def holds(self, relation: Relation, atom: Atom) -> np.ndarray:
        """Whether the atom, with all its variables bound, is one of the relation's, row by row."""
        return relation.holds([self.value(term) for term in atom.terms])

    def same(self, some: Atom, other: Atom) -> np.ndarray:
        """Whether two atoms of one predicate, with all their variables bound, are the same, row by row."""
        pairs = zip(some.terms, other.terms, strict=True)
        return np.logical_and.reduce([self.value(left) == self.value(right) for left, right in pairs])

    def join_all(self, matches: tuple[Match, ...]) -> None:
        """Join the atom that leaves the fewest rows, again and again."""
        left = list(matches)
        while left:
            best = 0 if len(left) == 1 else int(np.argmin([self._matches(*match) for match in left]))
            self.join(*left.pop(best))

    def _key(self, relation: Relation, atom: Atom) -> int | None:
        """The bound position of an atom that leaves the fewest matches on average."""
        bound = [i for i, term in enumerate(atom.terms) if self.is_bound(term)]
        return bound[0] if len(bound) == 1 else max(bound, key=relation.distinct, default=None)

    def _matches(self, relation: Relation, atom: Atom) -> int:
        """How many rows a join with the atom makes, before the conditions on its other positions."""
        if all(map(self.is_bound, atom.terms)):
            return self.size
        position = self._key(relation, atom)
        if position is None:
            return self.size * len(relation)
        _, starts = relation.index(position)
        key = self.value(atom.terms[position])
        return int((starts[key + 1] - starts[key]).sum())

    def join(self, relation: Relation, atom: Atom) -> None:
        """Keep and multiply the rows by the atoms of the relation that match."""
        if all(map(self.is_bound, atom.terms)):
            self.keep(self.holds(relation, atom))
            return
        position = self._key(relation, atom)
        if position is None:
            found = self._times(len(relation))
        else:
            order, starts = relation.index(position)
            key = self.value(atom.terms[position])
            first, counts = starts[key], starts[key + 1] - starts[key]
            self._check(int(counts.sum()))
            before = np.cumsum(counts) - counts
            found = order[np.arange(counts.sum()) + np.repeat(first - before, counts)]
            self.keep(np.repeat(np.arange(self.size), counts))
        self._bind(atom, relation.rows[found], position)

    def _bind(self, atom: Atom, rows: np.ndarray, joined: int | None) -> None:
        """Bind the atom's free variables to its rows, and keep the rows that agree with what is bound."""
        agrees: list[np.ndarray] = []
        for i, term in enumerate(atom.terms):
            if i == joined:
                continue
            if self.is_bound(term):
                agrees.append(self.value(term) == rows[:, i])
            elif isinstance(term, Variable):
                self.columns[term.name] = rows[:, i]
        if agrees:
            self.keep(np.logical_and.reduce(agrees))

    def _times(self, count: int) -> np.ndarray:
        """Repeat each row `count` times; the number of each repetition."""
        self._check(self.size * count)
        numbers = np.tile(np.arange(count), self.size)
        self.keep(np.repeat(np.arange(self.size), count))
        return numbers

    def _check(self, rows: int) -> None:
        if rows > self.most_rows:
            raise TooManyRowsError
