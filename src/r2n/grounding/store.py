"""Rules -> ground rules: the tables of a knowledge base, made once, and who answers queries over them."""

import os
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from operator import itemgetter

import numpy as np
from sqlglot import exp

from r2n.grounding import join
from r2n.grounding.ceiling import UNLIMITED, Ceiling
from r2n.grounding.engines import DuckDBEngine, Engine
from r2n.grounding.relations import Kind, Relation
from r2n.grounding.rule_query import RuleQuery
from r2n.grounding.substitutions import Substitutions, check_budget
from r2n.grounding.tables import Tables
from r2n.knowledge.conjunctive import ConjunctiveSelect, Expression
from r2n.knowledge.herbrand import Codes
from r2n.knowledge.knowledge_base import Evidence, KnowledgeBase
from r2n.logic.language import Domain, Predicate
from r2n.logic.theory import Rule, Theory

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
            found = join.joined(query, self.language, self.ceiling.fitting(each, join.MOST_ROWS))
        except join.TooManyRowsError:
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
