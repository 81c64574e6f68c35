"""Rules -> ground rules: known bodies, and rules over candidate atoms, by joins of arrays in memory.

A mined theory has many rules with small answers, where a database spends its time on planning. Here each table is
indexed once per column, by counting, and each join is a handful of array operations.
"""

from dataclasses import dataclass, field

import numpy as np

from r2n.grounding.ground_rules import Substitutions
from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.logic.formula import Atom, Constant, Term, Variable
from r2n.logic.theory import Literal, Rule

MOST_ROWS = 20_000_000  # of an intermediate result; beyond, a database that can leave memory does better


class TooManyRowsError(Exception):
    """A join would not fit in memory."""


@dataclass(frozen=True, eq=False)
class Relation:
    """Some atoms of a predicate: their codes, ascending, and their arguments (constant ids below `constants`)."""

    codes: np.ndarray
    rows: np.ndarray
    constants: int
    _indexes: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    def index(self, position: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows in the order of the constants at a position, and where each constant's rows start in it."""
        if position not in self._indexes:
            column = self.rows[:, position]
            starts = np.zeros(self.constants + 1, np.int64)
            np.cumsum(np.bincount(column, minlength=self.constants), out=starts[1:])
            is_sorted = position == 0 and bool((column[1:] >= column[:-1]).all())
            order = np.arange(len(column)) if is_sorted else np.argsort(column, kind="stable")
            self._indexes[position] = order, starts
        return self._indexes[position]


@dataclass
class Relations:
    """All relations of a knowledge base, made when first needed."""

    knowledge: KnowledgeBase
    _made: dict[tuple[str, bool | None], Relation] = field(default_factory=dict)

    def of(self, predicate: str, *, truth: bool) -> Relation:
        """The atoms of a predicate known to be true, or false."""
        return self._relation(predicate, truth)

    def candidates(self, predicate: str) -> Relation:
        """The candidate atoms of a predicate that has them."""
        return self._relation(predicate, None)

    def _relation(self, predicate: str, truth: bool | None) -> Relation:
        key = predicate, truth
        if key not in self._made:
            knowledge = self.knowledge
            declared = knowledge.language.predicate(predicate)
            known = knowledge.candidates[predicate] if truth is None else knowledge.known_codes(declared, truth)
            rows = knowledge.base.decode(known)[1][:, : declared.arity]
            self._made[key] = Relation(known, rows, len(knowledge.language.constants))
        return self._made[key]


def known_bodies(relations: Relations, rule: Rule) -> Substitutions:
    """The substitutions of a rule under which every body literal is known, in no order, each once."""
    theory = relations.knowledge.theory
    denied = [x for x in rule.body if not x.positive and theory.is_closed(rule, x.position)]
    joined = [
        (rule.atoms[literal.position], relations.of(rule.atoms[literal.position].predicate, truth=literal.positive))
        for literal in rule.body
        if literal not in denied
    ]
    return _substitutions(relations, rule, joined, denied)


def over_candidates(relations: Relations, rule: Rule) -> Substitutions:
    """The substitutions of a rule that take its atoms to candidates, where their predicates have any.

    Closed body literals are not contradicted. In no order, each once.
    """
    knowledge = relations.knowledge
    joined = [
        (atom, relations.candidates(atom.predicate)) for atom in rule.atoms if atom.predicate in knowledge.candidates
    ]
    closed = [literal for literal in rule.body if knowledge.theory.is_closed(rule, literal.position)]
    facts = [rule.atoms[literal.position] for literal in closed if literal.positive]
    joined += [(atom, relations.of(atom.predicate, truth=True)) for atom in facts]
    return _substitutions(relations, rule, joined, [literal for literal in closed if not literal.positive])


def _substitutions(
    relations: Relations, rule: Rule, joined: list[tuple[Atom, Relation]], denied: list[Literal]
) -> Substitutions:
    """The substitutions that take atoms into their relations, meet the guards, and make no denied literal a fact."""
    body = _Body(relations, rule)
    body.join_all(joined)
    body.bind_free()
    for guard in rule.guards:
        body.keep(body.value(guard.left) != body.value(guard.right))
    for literal in denied:
        atom = rule.atoms[literal.position]
        body.keep(~body.is_in(atom, relations.of(atom.predicate, truth=True)))
    return np.stack([body.columns[name] for name in rule.variables]).T if rule.variables else body.without_columns()


class _Body:
    """Bindings of a rule's variables, joined with one relation after the other."""

    def __init__(self, relations: Relations, rule: Rule) -> None:
        self.relations, self.rule, self.size = relations, rule, 1
        self.columns: dict[str, np.ndarray] = {}
        self.language, self.base = relations.knowledge.language, relations.knowledge.base

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

    def is_in(self, atom: Atom, relation: Relation) -> np.ndarray:
        """Whether the atom, with all its variables bound, is one of the relation's, row by row."""
        predicate = self.language.predicate(atom.predicate)
        codes = self.base.encode_columns(predicate, [self.value(term) for term in atom.terms])
        return np.isin(codes, relation.codes)

    def join_all(self, joined: list[tuple[Atom, Relation]]) -> None:
        """Join the atom that leaves the fewest rows, again and again."""
        left = list(joined)
        while left:
            best = 0 if len(left) == 1 else int(np.argmin([self._matches(*pair) for pair in left]))
            self._join(*left.pop(best))

    def _key(self, atom: Atom, relation: Relation) -> int | None:
        """The bound position of an atom that leaves the fewest matches on average."""
        bound = [i for i, term in enumerate(atom.terms) if self.is_bound(term)]
        return max(bound, key=lambda i: np.count_nonzero(np.diff(relation.index(i)[1])), default=None)

    def _matches(self, atom: Atom, relation: Relation) -> int:
        """How many rows a join with the atom makes, before the conditions on its other positions."""
        if all(map(self.is_bound, atom.terms)):
            return self.size
        position = self._key(atom, relation)
        if position is None:
            return self.size * len(relation.rows)
        _, starts = relation.index(position)
        key = self.value(atom.terms[position])
        return int((starts[key + 1] - starts[key]).sum())

    def _join(self, atom: Atom, relation: Relation) -> None:
        if all(map(self.is_bound, atom.terms)):
            self.keep(self.is_in(atom, relation))
            return
        position = self._key(atom, relation)
        if position is None:
            found = self._times(len(relation.rows))
        else:
            order, starts = relation.index(position)
            key = self.value(atom.terms[position])
            first, counts = starts[key], starts[key + 1] - starts[key]
            _check(int(counts.sum()))
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

    def bind_free(self) -> None:
        """Let variables that nothing has bound run over their domains, and hold the others to theirs."""
        domains = self.relations.knowledge.theory.variable_domains(self.rule)
        for name, domain in zip(self.rule.variables, domains, strict=True):
            if name in self.columns:
                self.keep(self.base.place(domain, self.columns[name]) >= 0)
                continue
            members = self.language.members(domain)
            self.columns[name] = members[self._times(len(members))]

    def _times(self, count: int) -> np.ndarray:
        """Repeat each row `count` times; the number of each repetition."""
        _check(self.size * count)
        numbers = np.tile(np.arange(count), self.size)
        self.keep(np.repeat(np.arange(self.size), count))
        return numbers

    def without_columns(self) -> Substitutions:
        """The substitutions of a rule without variables."""
        return np.zeros((self.size, 0), np.int64)


def _check(rows: int) -> None:
    if rows > MOST_ROWS:
        raise TooManyRowsError
