"""Rules as conjunctive queries: relations, the query of a rule, and joins on arrays."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np
from jaxtyping import Bool, Int64

from r2n.data.conjunctive import AtomTable, ConjunctiveSelect, Expression
from r2n.data.herbrand import Codes
from r2n.logic.formula import Atom, Variable
from r2n.logic.language import Domain
from r2n.logic.theory import Literal, Rule, Theory


class Kind(Enum):
    """What the atoms of a relation are: known true, known false, asked, or such that ground rules may hold."""

    FACT = "fact"
    DENIED = "denied"
    ASKED = "asked"
    CANDIDATE = "candidate"


@dataclass(frozen=True, eq=False)
class Relation:
    """Distinct atoms: their codes, and their arguments (ids below `constants`), a column a position.

    `domains` are those of the positions; `encode` turns columns of arguments into codes. The constants of a domain are
    a relation too, of one position, where a code is the constant's id. `cut_from` is a relation with more atoms, and
    which of them are kept.
    """

    name: str
    domains: tuple[Domain, ...]
    codes: Codes
    rows: Int64[np.ndarray, "atoms positions"]
    constants: int
    encode: Callable[[list[np.ndarray]], np.ndarray]
    cut_from: "tuple[Relation, Bool[np.ndarray, ' _']] | None" = None
    _indexes: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    def __len__(self) -> int:
        """The number of atoms."""
        return len(self.rows)

    @property
    def table(self) -> AtomTable:
        """The relation as a table of an engine."""
        return AtomTable(self.name, tuple(f"a{i}" for i in range(len(self.domains))))

    def index(self, position: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows in the order of the constants at a position, and where each constant's rows start in it."""
        if position not in self._indexes and self.cut_from is not None:
            whole, kept = self.cut_from
            self._indexes[position] = _cut(*whole.index(position), kept)
        elif position not in self._indexes:
            column = self.rows[:, position]
            starts = np.zeros(self.constants + 1, np.int64)
            np.cumsum(np.bincount(column, minlength=self.constants), out=starts[1:])
            is_sorted = position == 0 and bool((column[1:] >= column[:-1]).all())
            order = np.arange(len(column)) if is_sorted else np.argsort(column, kind="stable")
            self._indexes[position] = order, starts
        return self._indexes[position]

    def distinct(self, position: int) -> int:
        """The number of distinct constants at a position."""
        return int(np.count_nonzero(np.diff(self.index(position)[1])))

    def holds(self, columns: list[np.ndarray]) -> Bool[np.ndarray, " atoms"]:
        """Whether each atom, given by its arguments position by position, is one of these."""
        return np.isin(self.encode(columns), self.codes)

    def without(self, codes: Codes) -> "Relation":
        """The relation without these atoms; itself where it holds none of them."""
        kept = ~np.isin(self.codes, codes)
        if kept.all():
            return self
        return replace(self, codes=self.codes[kept], rows=self.rows[kept], cut_from=(self, kept), _indexes={})


def _cut(order: np.ndarray, starts: np.ndarray, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An index where only some rows are kept, and numbered anew: nothing is sorted again."""
    stays = kept[order]
    before = np.concatenate([[0], np.cumsum(stays)])
    return (np.cumsum(kept) - 1)[order[stays]], before[starts]


Match = tuple[Relation, Atom]
"""An atom of a rule, and the relation that it is looked up in."""


@dataclass(frozen=True, eq=False)
class RuleQuery:
    """The substitutions of a rule's `variables` over their `domains` that meet the rule's guards and these conditions.

    Every `joined` atom is one of its relation, no `absent` atom is, at most `width` of the `counted` atoms are not,
    and the atoms of no pair in `apart` are the same. Every variable of a condition is among the `variables`.
    """

    rule: Rule
    variables: tuple[str, ...]
    domains: tuple[Relation, ...]
    joined: tuple[Match, ...] = ()
    absent: tuple[Match, ...] = ()
    counted: tuple[Match, ...] = ()
    width: int = 0
    apart: tuple[tuple[Atom, Atom], ...] = ()
    ranging: tuple[Match, ...] = field(init=False)
    """The variables that no joined atom binds, or holds to just their domain, as atoms of their domains' relations."""

    def __post_init__(self) -> None:
        """Find out which variables have to be looked up in their domains."""
        held = {
            (term.name, domain.name)
            for relation, atom in self.joined
            for term, domain in zip(atom.terms, relation.domains, strict=True)
            if isinstance(term, Variable)
        }
        ranging = tuple(
            (domain, Atom(domain.name, (Variable(name),)))
            for name, domain in zip(self.variables, self.domains, strict=True)
            if (name, domain.domains[0].name) not in held
        )
        object.__setattr__(self, "ranging", ranging)

    @property
    def is_free(self) -> bool:
        """Whether there is no condition at all, and nothing is sought."""
        return not (self.variables or self.joined or self.absent)

    def estimate(self) -> int:
        """About how many substitutions there are if nothing is counted, from sizes and distinct values alone."""
        size, bound = 1.0, set[str]()
        for relation, atom in (*self.joined, *self.ranging):
            size *= len(relation)
            for i, term in enumerate(atom.terms):
                if isinstance(term, Variable) and term.name not in bound:
                    bound.add(term.name)
                else:
                    size /= max(1, relation.distinct(i))
        return round(min(size, 1e18))

    def compiled(self, constant: Callable[[str], Expression]) -> ConjunctiveSelect:
        """The conditions as SQL over the relations' tables; `constant` writes a constant, given by name."""
        select = ConjunctiveSelect(constant)
        for relation, atom in (*self.joined, *self.ranging):
            select.join(relation.table, atom.terms)
        for relation, atom in self.absent:
            select.forbid(relation.table, atom.terms)
        for relation, atom in self.counted:
            select.count_missing(relation.table, atom.terms)
        for guard in self.rule.guards:
            select.differ((guard.left,), (guard.right,))
        for some, other in self.apart:
            select.differ(some.terms, other.terms)
        return select


class Tables(ABC):
    """A relation for each predicate and kind, and one for each domain."""

    @property
    @abstractmethod
    def theory(self) -> Theory:
        """The rules, and which predicates are closed."""

    @property
    @abstractmethod
    def candidates(self) -> Collection[str]:
        """The predicates of which ground rules hold candidates alone."""

    @abstractmethod
    def relation(self, kind: Kind, predicate: str) -> Relation:
        """The predicate's atoms of this kind, among facts, denied atoms and candidates."""

    @abstractmethod
    def domain(self, domain: Domain) -> Relation:
        """The constants of a domain."""

    def domains(self, rule: Rule) -> tuple[Relation, ...]:
        """The constants that each of the rule's variables runs over."""
        return tuple(map(self.domain, self.theory.variable_domains(rule)))

    def match(self, kind: Kind, atom: Atom) -> Match:
        """The atom, to be looked up among its predicate's atoms of this kind."""
        return self.relation(kind, atom.predicate), atom

    def known_by(self, rule: Rule, literal: Literal) -> tuple[Match, bool]:
        """What makes a body literal known: its atom is (True), or is not (False), in a relation.

        A positive literal is known by a fact, a negative one by a denied atom, or in a closed world by no fact.
        """
        atom = rule.atoms[literal.position]
        if literal.positive:
            return self.match(Kind.FACT, atom), True
        if self.theory.is_closed(rule, literal.position):
            return self.match(Kind.FACT, atom), False
        return self.match(Kind.DENIED, atom), True
