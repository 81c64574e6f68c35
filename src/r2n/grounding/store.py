"""Known facts in the form that grounding reads: arrays, and tables of an engine."""

import os
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from operator import itemgetter

import numpy as np
from sqlglot import exp

from r2n.data.conjunctive import ConjunctiveSelect, Expression
from r2n.data.herbrand import Codes
from r2n.data.knowledge_base import Evidence, KnowledgeBase
from r2n.errors import MemoryLimitError
from r2n.grounding.engines import DuckDBEngine, Engine
from r2n.grounding.joins import Kind, Match, Relation, RuleQuery, Tables
from r2n.grounding.substitutions import Substitutions, check_budget
from r2n.logic.formula import Atom, Constant, Term, Variable
from r2n.logic.language import Domain, Language, Predicate
from r2n.logic.theory import Rule, Theory


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most bytes that work may hold at a time; None: nobody has set any."""

    most: int | None = None

    def fitting(self, each: int, at_most: int) -> int:
        """How many pieces of `each` bytes fit, one at least and `at_most` at most."""
        return at_most if self.most is None else min(at_most, max(1, self.most // each))

    def check(self, needed: int, *, what: str, ways_out: Sequence[str]) -> None:
        """Refuse what needs more bytes; `what` is the subject of a sentence."""
        if self.most is not None and needed > self.most:
            raise MemoryLimitError(
                f"{what} needs about {shown_size(needed)}, more than the {shown_size(self.most)} that it may take",
                hint="; or ".join([*ways_out, "allow more with --memory SIZE"]),
            )


UNLIMITED = Ceiling()


def shown_size(size: int) -> str:
    """`95 GB`, `18.4 GB`, `512 MB`."""
    number, unit = (size / 1e9, "GB") if size >= 1e9 else (size / 1e6, "MB")
    return f"{number:,.0f} {unit}" if number >= 100 else f"{number:.3g} {unit}"


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
        if position is None:  # each row once for every atom
            self._check(self.size * len(relation))
            found = np.tile(np.arange(len(relation)), self.size)
            self.keep(np.repeat(np.arange(self.size), len(relation)))
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

    def _check(self, rows: int) -> None:
        if rows > self.most_rows:
            raise TooManyRowsError


SURELY_TOO_MANY = 100  # times the budget: then the estimate alone refuses, without counting
BYTES_OF_BINDING = 16  # of a variable in a row of a join: its column, and what the join makes of it
BYTES_OF_NUMBER = 16  # of a variable or an atom in a ground rule: as it is found, and once more in order
WAYS_OUT = (
    "ground less: narrow the domains of variables (x: DOMAIN), close a predicate of a body, or take another strategy"
    " (known-body, backward)",
)


@dataclass(frozen=True, eq=False)
class Answer:
    """The substitutions that a query seeks, in no order, each once, and how many were expected."""

    substitutions: Substitutions
    estimate: int


class Store(Tables):
    """The tables of a knowledge base, as arrays and in an engine, each made when it is first needed.

    Queries are answered in memory where their intermediate results fit, else by the engine; by an engine that takes
    all, always. Answers that would not fit under the `ceiling` are refused before they are made.
    """

    def __init__(self, knowledge: KnowledgeBase, engine: Engine | None = None, ceiling: Ceiling = UNLIMITED) -> None:
        """Tables of `knowledge`, for large queries in `engine`, by default an embedded DuckDB."""
        self.knowledge, self.language, self.base = knowledge, knowledge.language, knowledge.base
        self.engine, self.ceiling = engine or DuckDBEngine(ceiling.most), ceiling
        self._known: dict[str, Relation] = {}
        self._made: dict[str, Relation] = {}
        self._loaded: dict[tuple[int, str], Relation] = {}  # by process: a fork opens a database of its own
        self._cut_from: tuple[Store, Codes] | None = None

    def relation(self, kind: Kind, predicate: str) -> Relation:
        """The predicate's atoms of this kind, among facts, denied atoms and candidates."""
        name, made = self._name(kind, predicate), self._made if kind is Kind.CANDIDATE else self._known
        if name not in made:
            made[name] = self._make(name, kind, self.language.predicate(predicate))
        return made[name]

    def _make(self, name: str, kind: Kind, predicate: Predicate) -> Relation:
        if kind is not Kind.CANDIDATE and self._cut_from is not None:
            whole, left_out = self._cut_from
            return whole.relation(kind, predicate.name).without(left_out)
        if kind is Kind.CANDIDATE:
            codes = self.knowledge.candidates[predicate.name]
        else:
            codes = self.knowledge.known_codes(predicate, kind is Kind.FACT)
        return self._relation(name, predicate, codes, self.base.decode(codes)[1])

    def without(self, codes: Codes) -> "Store":
        """The store of the same knowledge base where nothing is stated of these atoms; its tables are cut from these.

        Atoms of a closed world would then be false.
        """
        view, evidence = copy(self), self.knowledge.evidence
        kept = ~np.isin(evidence.atoms, codes)
        view.knowledge = replace(self.knowledge, evidence=Evidence(evidence.atoms[kept], evidence.truth[kept]))
        view._known, view._cut_from = {}, (self, codes)
        return view

    def with_rules(self, rules: tuple[Rule, ...]) -> "Store":
        """The store of the same knowledge base with these rules in place of its own; its tables are the same."""
        view = copy(self)
        view.knowledge = replace(self.knowledge, theory=replace(self.knowledge.theory, rules=rules))
        return view

    def _name(self, kind: Kind, predicate: str) -> str:
        return f"{kind.value}_{self.language.predicate_index(predicate)}"

    def _relation(self, name: str, predicate: Predicate, codes: Codes, arguments: np.ndarray) -> Relation:
        encode = partial(self.base.encode_columns, predicate)
        rows = arguments[:, : predicate.arity]
        return Relation(name, predicate.domains, codes, rows, len(self.language.constants), encode)

    def asked(self, codes: Codes) -> dict[str, Relation]:
        """Distinct atoms, of any predicates, as relations of what is asked: one for each predicate among them."""
        index, arguments = self.base.decode(codes)
        found: dict[str, Relation] = {}
        for i in np.unique(index):
            predicate, own = self.language.predicates[i], index == i
            name = self._name(Kind.ASKED, predicate.name)
            found[predicate.name] = self._relation(name, predicate, codes[own], arguments[own])
        return found

    def domain(self, domain: Domain) -> Relation:
        """The constants of a domain."""
        name = f"domain_{self.language.domains.index(domain)}"
        if name not in self._made:
            members, constants = self.language.members(domain), len(self.language.constants)
            self._made[name] = Relation(name, (domain,), members, members[:, None], constants, itemgetter(0))
        return self._made[name]

    @property
    def theory(self) -> Theory:
        """The theory of the knowledge base."""
        return self.knowledge.theory

    @property
    def candidates(self) -> Mapping[str, Codes]:
        """The candidates of the knowledge base."""
        return self.knowledge.candidates

    def substitutions(self, query: RuleQuery, max_groundings: int) -> Answer:
        """The answer to a query; refused where its rule would have more than `max_groundings` ground rules.

        Variables of the rule that the query does not seek run over their domains, for every substitution found.
        """
        sought = zip(query.rule.variables, self.domains(query.rule), strict=True)
        box = prod(len(domain) for name, domain in sought if name not in query.variables)
        if self.engine.takes_all:
            return self._from_engine(query, box, max_groundings)
        try:
            each = BYTES_OF_BINDING * (len(query.variables) + 2)
            found = joined(query, self.language, self.ceiling.fitting(each, MOST_ROWS))
        except TooManyRowsError:
            return self._from_engine(query, box, max_groundings)
        self._check(query.rule, len(found) * box, max_groundings, exact=True)
        return Answer(found, len(found))

    def _check(self, rule: Rule, estimate: int, max_groundings: int, *, exact: bool) -> None:
        """Refuse a rule with too many ground rules: by number, or by the memory that they need."""
        check_budget(rule, estimate, max_groundings, exact=exact)
        what = f"rule '{rule.name}' with {'' if exact else 'about '}{estimate:,} ground rules"
        self.ceiling.check(estimate * _bytes_of_ground_rule(rule), what=what, ways_out=WAYS_OUT)

    def _from_engine(self, query: RuleQuery, box: int, max_groundings: int) -> Answer:
        """The answer by a database; an estimate that knows all conditions may refuse before the work."""
        select = self._compiled(query)
        count = select.select([exp.alias_(exp.Count(this=exp.Star()), "n")], query.width)
        estimate, fitting = query.estimate(), self.ceiling.fitting(_bytes_of_ground_rule(query.rule), max_groundings)
        if not query.counted and estimate * box > SURELY_TOO_MANY * fitting:
            self._check(query.rule, estimate * box, max_groundings, exact=False)
        elif not query.counted and estimate * box > fitting:
            self._check(query.rule, self._count(count) * box, max_groundings, exact=True)
        outputs = _outputs(select, query)
        one = exp.alias_(exp.Literal.number(1), "one")
        most = fitting // max(1, box) + 1
        answer = self.engine.run(select.select(outputs or [one], query.width).limit(most, copy=False))
        rows = np.stack(list(answer.values())).astype(np.int64, copy=False)
        if rows.shape[1] * box > fitting:
            self._check(query.rule, self._count(count) * box, max_groundings, exact=True)
        return Answer(rows[: len(outputs)].T if outputs else np.zeros((rows.shape[1], 0), np.int64), estimate)

    def explain(self, query: RuleQuery) -> str:
        """How the engine would answer a query, in its own words."""
        select = self._compiled(query)
        one = exp.alias_(exp.Literal.number(1), "one")
        return self.engine.explain(select.select(_outputs(select, query) or [one], query.width))

    def _compiled(self, query: RuleQuery) -> ConjunctiveSelect:
        """A query in SQL, with its tables in the engine."""
        for relation, _ in (*query.joined, *query.ranging, *query.absent, *query.counted):
            self._load(relation)
        return query.compiled(self._constant)

    def _count(self, query: exp.Select) -> int:
        return int(self.engine.run(query)["n"][0])

    def _constant(self, name: str) -> Expression:
        return exp.Literal.number(self.language.constant_id(name))

    def _load(self, relation: Relation) -> None:
        """Hold the relation in the engine; what is asked takes the place of what was asked before."""
        place = os.getpid(), relation.name
        if self._loaded.get(place) is not relation:
            columns = dict(zip(relation.table.columns, relation.rows.T, strict=True))
            self.engine.load(relation.name, {name: np.ascontiguousarray(column) for name, column in columns.items()})
            self._loaded[place] = relation


def _outputs(select: ConjunctiveSelect, query: RuleQuery) -> list[Expression]:
    return [exp.alias_(select.columns[name].copy(), f"v{i}") for i, name in enumerate(query.variables)]


def _bytes_of_ground_rule(rule: Rule) -> int:
    return BYTES_OF_NUMBER * (len(rule.variables) + len(rule.atoms))
