"""Rules as conjunctive queries: relations, the query of a rule, as SQL or joins of arrays, and its substitutions."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from operator import itemgetter

import numpy as np
from jaxtyping import Bool, Int64

from r2n.data.herbrand import Codes, HerbrandBase, ranges
from r2n.data.knowledge_base import KnowledgeBase
from r2n.errors import GroundingError
from r2n.logic.formula import Atom, Constant, Term, Variable
from r2n.logic.language import Domain, Language
from r2n.logic.theory import Literal, Rule, Theory

MAX_GROUNDINGS = 20_000_000

Substitutions = Int64[np.ndarray, "_ variables"]


class Kind(Enum):
    """What the atoms of a relation are: known true, known false, queries, or such that ground rules may hold."""

    FACT = "fact"
    DENIED = "denied"
    ASKED = "asked"
    CANDIDATE = "candidate"


@dataclass(frozen=True, slots=True)
class AtomTable:
    """A table that holds an atom a row: its name and its columns, one a position."""

    name: str
    columns: tuple[str, ...]


class ConjunctiveSelect:
    """The substitutions of variables under conditions that are added one by one, as SQL; first come, first bound.

    DuckDB and Spark read it alike: all names in it are those of grounding's own tables.
    """

    def __init__(self, constant: Callable[[str], int]) -> None:
        """Without conditions; `constant` gives the id of a constant by its name."""
        self.columns: dict[str, str] = {}
        self._constant = constant
        self._sources, self._conditions, self._left_joins, self._missing = ([] for _ in range(4))

    def value(self, term: Term) -> str:
        """A term in the query; its variable is bound."""
        return str(self._constant(term.name)) if isinstance(term, Constant) else self.columns[term.name]

    def join(self, table: AtomTable, terms: Sequence[Term]) -> None:
        """Only substitutions that take the terms to a row of the table; this binds their variables."""
        alias = f"t{len(self._sources)}"
        self._sources.append(f"{table.name} AS {alias}")
        for name, term in zip(table.columns, terms, strict=True):
            if isinstance(term, Variable) and term.name not in self.columns:
                self.columns[term.name] = f"{alias}.{name}"
            else:
                self._conditions.append(f"{alias}.{name} = {self.value(term)}")

    def forbid(self, table: AtomTable, terms: Sequence[Term]) -> None:
        """Only substitutions that take the terms to no row of the table."""
        alias = f"n{len(self._conditions)}"
        rows = f"SELECT 1 FROM {table.name} AS {alias} WHERE {self._same(table, alias, terms)}"
        self._conditions.append(f"NOT EXISTS ({rows})")

    def count_missing(self, table: AtomTable, terms: Sequence[Term]) -> None:
        """Count a substitution's terms as missing where they are no row of the table."""
        alias = f"k{len(self._left_joins)}"
        self._left_joins.append(f" LEFT JOIN {table.name} AS {alias} ON {self._same(table, alias, terms)}")
        self._missing.append(f"CAST({alias}.{table.columns[0]} IS NULL AS INT)")

    def differ(self, some: Sequence[Term], other: Sequence[Term]) -> None:
        """Only substitutions under which the terms are not all equal to the others."""
        pairs = zip(map(self.value, some), map(self.value, other), strict=True)
        self._conditions.append(f"NOT ({' AND '.join(map(' = '.join, pairs))})")

    def _same(self, table: AtomTable, alias: str, terms: Sequence[Term]) -> str:
        pairs = zip(table.columns, map(self.value, terms), strict=True)
        return " AND ".join(f"{alias}.{name} = {value}" for name, value in pairs)

    def select(self, outputs: Sequence[str], missing: int = 0) -> str:
        """These outputs of every substitution with at most so many missing rows.

        Over tables of distinct rows no substitution comes twice: the variables determine the row of each table.
        """
        conditions, query = [*self._conditions], f"SELECT {', '.join(outputs)}"
        if len(self._missing) > missing:
            conditions.append(f"{' + '.join(self._missing)} <= {missing}")
        if self._sources:
            query += f" FROM {' CROSS JOIN '.join(self._sources)}{''.join(self._left_joins)}"
        return f"{query} WHERE {' AND '.join(conditions)}" if conditions else query


@dataclass(frozen=True, eq=False)
class Relation:
    """Distinct atoms: their codes, and their arguments (ids below `constants`), a column per position.

    `domains` are those of the positions; `encode` turns columns of arguments into codes. The constants of a domain are
    a relation with one position, where a code is the constant's id: the default. `cut_from` is a larger relation, and
    a mask of the atoms of it that are kept. If an engine alone holds the atoms, `counts` has their number, and the
    number of distinct constants at each position.
    """

    name: str
    domains: tuple[Domain, ...]
    constants: int
    codes: Codes = field(default_factory=lambda: np.zeros(0, np.int64))
    rows: Int64[np.ndarray, "atoms positions"] = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    encode: Callable[[list[np.ndarray]], np.ndarray] = itemgetter(0)
    counts: tuple[int, ...] | None = None
    cut_from: "tuple[Relation, Bool[np.ndarray, ' _']] | None" = None
    _indexes: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows) if self.counts is None else self.counts[0]

    @property
    def table(self) -> AtomTable:
        """The relation as a table of an engine."""
        return AtomTable(self.name, tuple(f"a{i}" for i in range(len(self.domains))))

    def index(self, position: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows sorted by the constant at a position, and where the rows of each constant start."""
        if position in self._indexes:
            return self._indexes[position]
        if self.cut_from is not None:  # nothing is sorted again: the kept rows are renumbered
            larger, kept = self.cut_from
            order, starts = larger.index(position)
            stays = kept[order]
            before = np.concatenate([[0], np.cumsum(stays)])
            order, starts = (np.cumsum(kept) - 1)[order[stays]], before[starts]
        else:
            column = self.rows[:, position]
            starts = np.zeros(self.constants + 1, np.int64)
            np.cumsum(np.bincount(column, minlength=self.constants), out=starts[1:])
            is_sorted = position == 0 and bool((column[1:] >= column[:-1]).all())
            order = np.arange(len(column)) if is_sorted else np.argsort(column, kind="stable")
        found = self._indexes[position] = order, starts
        return found

    def distinct(self, position: int) -> int:
        """The number of distinct constants at a position."""
        if self.counts is not None:
            return self.counts[1 + position]
        return int(np.count_nonzero(np.diff(self.index(position)[1])))

    def holds(self, columns: list[np.ndarray]) -> Bool[np.ndarray, " atoms"]:
        """Whether the relation has each atom, given by its arguments position by position."""
        return np.isin(self.encode(columns), self.codes)

    def without(self, codes: Codes) -> "Relation":
        """The relation without these atoms; the same object if it has none of them."""
        kept = ~np.isin(self.codes, codes)
        if kept.all():
            return self
        return replace(self, codes=self.codes[kept], rows=self.rows[kept], cut_from=(self, kept), _indexes={})


Match = tuple[Relation, Atom]
"""An atom of a rule, and the relation that it is looked up in."""


@dataclass(frozen=True, eq=False)
class RuleQuery:
    """The substitutions of a rule's `variables` over their `domains` that meet the rule's guards and these conditions.

    Every `joined` atom is in its relation, no `absent` atom is, at most `width` of the `counted` atoms are not, and
    the atoms of each pair in `apart` differ. Every variable of a condition is among the `variables`.
    """

    rule: Rule
    variables: tuple[str, ...]
    domains: tuple[Relation, ...]
    joined: tuple[Match, ...] = ()
    absent: tuple[Match, ...] = ()
    counted: tuple[Match, ...] = ()
    width: int = 0
    apart: tuple[tuple[Atom, Atom], ...] = ()

    @cached_property
    def ranging(self) -> tuple[Match, ...]:
        """The variables that no joined atom binds within just their domain, as atoms of their domains' relations."""
        bound = {
            (term.name, domain.name)
            for relation, atom in self.joined
            for term, domain in zip(atom.terms, relation.domains, strict=True)
            if isinstance(term, Variable)
        }
        return tuple(
            (domain, Atom(domain.name, (Variable(name),)))
            for name, domain in zip(self.variables, self.domains, strict=True)
            if (name, domain.domains[0].name) not in bound
        )

    @property
    def is_free(self) -> bool:
        """Whether there is no condition and no variable."""
        return not (self.variables or self.joined or self.absent)

    def estimate(self) -> int:
        """The expected number of substitutions if nothing is counted, from sizes and numbers of distinct values."""
        size, bound = 1.0, set[str]()
        for relation, atom in (*self.joined, *self.ranging):
            size *= len(relation)
            for i, term in enumerate(atom.terms):
                if isinstance(term, Variable) and term.name not in bound:
                    bound.add(term.name)
                else:
                    size /= max(1, relation.distinct(i))
        return round(min(size, 1e18))

    def compiled(self, constant: Callable[[str], int]) -> ConjunctiveSelect:
        """The conditions as SQL over the relations' tables; `constant` gives the id of a constant by its name."""
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

    theory: Theory
    candidates: Collection[str] = ()  # the predicates of which ground rules hold candidates alone
    asks_closed = False  # whether closed atoms are asked, so that ground rules of these alone are kept

    @abstractmethod
    def relation(self, kind: Kind, predicate: str) -> Relation:
        """The predicate's facts, denied atoms or candidates."""

    @abstractmethod
    def domain(self, domain: Domain) -> Relation:
        """The constants of a domain."""

    def is_left_out(self, rule: Rule) -> bool:
        """Whether all atoms of the rule are closed: their truth is known, so that nothing asked depends on them."""
        return not self.asks_closed and all(self.theory.is_closed(rule, i) for i in range(len(rule.atoms)))

    def domains(self, rule: Rule) -> tuple[Relation, ...]:
        """The domain of each of the rule's variables."""
        return tuple(map(self.domain, self.theory.variable_domains(rule)))

    def known_by(self, rule: Rule, literal: Literal) -> tuple[Match, bool]:
        """What makes a body literal known: its atom is (True) in facts or denied atoms, or is not (False) in facts."""
        atom = rule.atoms[literal.position]
        closed = not literal.positive and self.theory.is_closed(rule, literal.position)
        kind = Kind.FACT if literal.positive or closed else Kind.DENIED
        return (self.relation(kind, atom.predicate), atom), not closed


class TooManyRowsError(Exception):
    """A join would not fit in memory."""


def joined(query: RuleQuery, language: Language, most_rows: int) -> Substitutions:
    """The substitutions of a query, unsorted and distinct; TooManyRowsError if a join has more than `most_rows`."""
    found, left = _Bindings(language, most_rows), list(query.joined)
    while left:  # the atom that leaves the fewest rows, again and again
        best = 0 if len(left) == 1 else int(np.argmin([found.joined_rows(*match) for match in left]))
        found.join(*left.pop(best))
    for relation, atom in query.ranging:
        found.join(relation, atom)
    for guard in query.rule.guards:
        found.keep(found.value(guard.left) != found.value(guard.right))
    for relation, atom in query.absent:
        found.keep(~found.holds(relation, atom))
    for some, other in query.apart:
        differ = [found.value(a) != found.value(b) for a, b in zip(some.terms, other.terms, strict=True)]
        found.keep(np.logical_or.reduce(differ))
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
        """Only these rows (row numbers, with repetition, or a mask)."""
        self.size = int(np.count_nonzero(which)) if which.dtype == bool else len(which)
        if which.dtype != bool or self.size < len(which):
            self.columns = {name: column[which] for name, column in self.columns.items()}

    def is_bound(self, term: Term) -> bool:
        return isinstance(term, Constant) or term.name in self.columns

    def holds(self, relation: Relation, atom: Atom) -> np.ndarray:
        """Whether the atom, with all its variables bound, is in the relation, row by row."""
        return relation.holds([self.value(term) for term in atom.terms])

    def _key(self, relation: Relation, atom: Atom) -> int | None:
        """The bound position of an atom that leaves the fewest matches on average."""
        bound = [i for i, term in enumerate(atom.terms) if self.is_bound(term)]
        return bound[0] if len(bound) == 1 else max(bound, key=relation.distinct, default=None)

    def joined_rows(self, relation: Relation, atom: Atom) -> int:
        """The number of rows of a join with the atom, before the conditions on its other positions."""
        if all(map(self.is_bound, atom.terms)):
            return self.size
        position = self._key(relation, atom)
        if position is None:
            return self.size * len(relation)
        _, starts = relation.index(position)
        key = self.value(atom.terms[position])
        return int((starts[key + 1] - starts[key]).sum())

    def join(self, relation: Relation, atom: Atom) -> None:
        """Join the rows with the atoms of the relation that match, and bind the atom's free variables."""
        if all(map(self.is_bound, atom.terms)):
            self.keep(self.holds(relation, atom))
            return
        position = self._key(relation, atom)
        if position is None:  # each row once for every atom
            order, first, counts = None, np.zeros(self.size, np.int64), np.full(self.size, len(relation))
        else:
            order, starts = relation.index(position)
            key = self.value(atom.terms[position])
            first, counts = starts[key], starts[key + 1] - starts[key]
        if int(counts.sum()) > self.most_rows:
            raise TooManyRowsError
        owner, found = ranges(first, counts)
        self.keep(owner)
        rows, agrees = relation.rows[found if order is None else order[found]], list[np.ndarray]()
        for i, term in enumerate(atom.terms):
            if i != position and self.is_bound(term):
                agrees.append(self.value(term) == rows[:, i])
            elif i != position and isinstance(term, Variable):
                self.columns[term.name] = rows[:, i]
        if agrees:
            self.keep(np.logical_and.reduce(agrees))


def encode_substitutions(base: HerbrandBase, rule: Rule, substitutions: Substitutions) -> Int64[np.ndarray, "_ _"]:
    """The codes of the rule's atoms under substitutions: constant ids, a column for each of the rule's variables."""
    columns = dict(zip(rule.variables, substitutions.T, strict=True))
    atoms = np.empty((len(rule.atoms), len(substitutions)), np.int64)
    for i, atom in enumerate(rule.atoms):
        atoms[i] = encode_atom(base, atom, columns)
    return atoms.T


def encode_atom(base: HerbrandBase, atom: Atom, columns: dict[str, np.ndarray]) -> np.ndarray:
    """The codes of an atom whose variables have these arrays of constant ids, which are broadcast."""
    arguments = [
        np.asarray(base.language.constant_id(term.name)) if isinstance(term, Constant) else columns[term.name]
        for term in atom.terms
    ]
    return base.encode_columns(base.language.predicate(atom.predicate), arguments)


def are_candidates(knowledge: KnowledgeBase, rule: Rule, atoms: np.ndarray) -> Bool[np.ndarray, " ground_rules"]:
    """Whether all atoms of a ground rule are candidates, as far as their predicates have any."""
    kept = np.ones(len(atoms), bool)
    for i, atom in enumerate(rule.atoms):
        if atom.predicate in knowledge.candidates:
            kept &= np.isin(atoms[:, i], knowledge.candidates[atom.predicate])
    return kept


def sorted_substitutions(substitutions: Substitutions, constants: int, *, distinct: bool = False) -> Substitutions:
    """Substitutions over ids below `constants` in ascending order, variable by variable; `distinct`: each once."""
    if constants ** substitutions.shape[1] < 2**63:  # one number per substitution is faster to sort
        key = _keys(substitutions, constants)
        if bool((key[1:] > key[:-1]).all()):
            return substitutions
        order = np.unique(key, return_index=True)[1] if distinct else np.argsort(key)
        return substitutions.T[:, order].T
    ordered = substitutions.T[:, np.lexsort(substitutions.T[::-1])].T
    return ordered[_is_new(ordered)] if distinct else ordered


def rows_among(some: Substitutions, among: Substitutions, constants: int) -> Int64[np.ndarray, " _"]:
    """The row of each of some substitutions in sorted, distinct ones that include them all."""
    if constants ** some.shape[1] < 2**63:
        return np.searchsorted(_keys(among, constants), _keys(some, constants))
    both = np.concatenate([among, some])
    order = np.lexsort(both.T[::-1])
    rows = np.empty(len(both), np.int64)
    rows[order] = np.cumsum(_is_new(both[order])) - 1
    return rows[len(among) :]


def _keys(substitutions: Substitutions, constants: int) -> Int64[np.ndarray, " _"]:
    """One number per substitution, in their order."""
    keys = np.zeros(len(substitutions), np.int64)
    for column in substitutions.T:
        keys = keys * constants + column
    return keys


def _is_new(ordered: Substitutions) -> Bool[np.ndarray, " _"]:
    """Whether each row differs from the one before."""
    return np.concatenate([np.ones(len(ordered[:1]), bool), (np.diff(ordered, axis=0) != 0).any(axis=1)])


def check_budget(rule: Rule, estimate: int, limit: int, *, exact: bool) -> None:
    """Raise the error for a rule that would have more than `limit` ground rules, before any are made."""
    if estimate > limit:
        raise budget_error(rule, estimate, limit, exact=exact)


def budget_error(rule: Rule, estimate: int, limit: int, *, exact: bool) -> GroundingError:
    """The error for a rule that would have more than `limit` ground rules."""
    about = "" if exact else "about "
    return GroundingError(
        f"rule '{rule.name}' has {about}{estimate:,} groundings, more than max_groundings = {limit:,}",
        hint="narrow the domains of its variables (x: DOMAIN), close a predicate of its body, or take another"
        " strategy (known-body, backward); or raise max_groundings",
    )
