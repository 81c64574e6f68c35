"""Rules -> ground rules: every substitution over the typed domains, by index arithmetic, with no join.

Only guards and closed body atoms need a query: it yields the substitutions of the variables they bind, and
the other variables run over their domains as axes of the result.
"""

from dataclasses import dataclass
from math import prod
from time import perf_counter

import numpy as np

from r2n.grounding.compile_sql import CANDIDATE, TRUE, RuleQuery, Store
from r2n.grounding.ground_rules import (
    MAX_GROUNDINGS,
    Grounding,
    GroundRules,
    Progress,
    check_budget,
    encode_substitutions,
    no_progress,
    sorted_substitutions,
)
from r2n.grounding.join import TooManyRowsError, over_candidates
from r2n.knowledge.herbrand import Codes, HerbrandBase
from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.logic.formula import Constant, Variable
from r2n.logic.theory import Literal, Rule


@dataclass(frozen=True)
class FullGrounder:
    """Every substitution whose guards hold and whose closed body atoms are not contradicted."""

    max_groundings: int = MAX_GROUNDINGS

    def ground(
        self, knowledge: KnowledgeBase, queries: Codes | None = None, progress: Progress = no_progress
    ) -> Grounding:
        """The grounding; the queries make no difference."""
        store = Store(knowledge)
        rules = knowledge.theory.rules
        ground_rules: list[GroundRules] = []
        for done, rule in enumerate(rules):
            progress(done, len(rules))
            ground_rules.append(self.ground_rule(store, rule))
        return Grounding(tuple(ground_rules))

    def ground_rule(self, store: Store, rule: Rule) -> GroundRules:
        """The ground rules of one rule."""
        start = perf_counter()
        if any(atom.predicate in store.knowledge.candidates for atom in rule.atoms):
            return self._over_candidates(store, rule)
        knowledge = store.knowledge
        domains = dict(zip(rule.variables, knowledge.theory.variable_domains(rule), strict=True))
        query = closed_query(store, rule)
        free = [name for name in rule.variables if name not in query.columns]
        axes = {name: knowledge.language.members(domains[name]) for name in free}
        box = prod(len(members) for members in axes.values())
        bound = query.count() if query.is_bound else 1
        check_budget(rule, bound * box, self.max_groundings, exact=True)
        rows = _bound_rows(query, bound)
        atoms = _outer(knowledge.base, rule, rows, axes, bound)
        if list(query.columns) != list(rule.variables[: len(query.columns)]):
            atoms = _reordered(rule, rows, axes, bound, knowledge)
        shape = None if query.is_bound else tuple(map(len, axes.values()))
        return GroundRules(rule, atoms, bound * box, perf_counter() - start, shape)

    def _over_candidates(self, store: Store, rule: Rule) -> GroundRules:
        """The ground rules over candidates: by joins in memory, or in the database where these are too large."""
        start = perf_counter()
        knowledge = store.knowledge
        try:
            found = over_candidates(store.relations, rule)
        except TooManyRowsError:
            query = candidate_query(store, rule)
            count = query.count()
            check_budget(rule, count, self.max_groundings, exact=True)
            found = query.substitutions(rule.variables, width=0, limit=count)
        check_budget(rule, len(found), self.max_groundings, exact=True)
        ordered = sorted_substitutions(found, len(knowledge.language.constants))
        atoms = encode_substitutions(knowledge.base, rule, ordered)
        return GroundRules(rule, atoms, len(found), perf_counter() - start)


def candidate_query(store: Store, rule: Rule) -> RuleQuery:
    """As `over_candidates`, as a query."""
    query = RuleQuery(store, rule)
    for atom in rule.atoms:
        if atom.predicate in store.knowledge.candidates:
            query.join(CANDIDATE, atom)
    literals = contradictable(store, rule)
    for literal in literals:
        if literal.positive:
            query.join(TRUE, rule.atoms[literal.position])
    query.bind_free(rule.variables)
    query.guard()
    for literal in literals:
        if not literal.positive:
            query.forbid(TRUE, rule.atoms[literal.position])
    return query


def contradictable(store: Store, rule: Rule) -> list[Literal]:
    """The body literals over closed predicates: a ground rule that contradicts one always holds."""
    return [literal for literal in rule.body if store.knowledge.theory.is_closed(rule, literal.position)]


def closed_query(store: Store, rule: Rule) -> RuleQuery:
    """The variables that guards and closed body literals bind, under these conditions."""
    query = RuleQuery(store, rule)
    literals = contradictable(store, rule)
    for literal in literals:
        if literal.positive:
            query.join(TRUE, rule.atoms[literal.position])
    terms = [term for guard in rule.guards for term in (guard.left, guard.right)]
    terms += [term for literal in literals for term in rule.atoms[literal.position].terms]
    bound = {term.name for term in terms if isinstance(term, Variable)}
    query.bind_free(name for name in rule.variables if name in bound)
    query.guard()
    for literal in literals:
        if not literal.positive:
            query.forbid(TRUE, rule.atoms[literal.position])
    query.columns = {name: query.columns[name] for name in rule.variables if name in query.columns}
    return query


def _bound_rows(query: RuleQuery, count: int) -> dict[str, np.ndarray]:
    """The substitutions of the query's variables, sorted, variable by variable."""
    if not query.columns:
        return {}
    found = query.substitutions(query.columns, width=0, limit=count)
    ordered = sorted_substitutions(found, len(query.store.language.constants))
    return dict(zip(query.columns, ordered.T, strict=True))


def _outer(
    base: HerbrandBase, rule: Rule, rows: dict[str, np.ndarray], axes: dict[str, np.ndarray], bound: int
) -> np.ndarray:
    """Codes for every row and every point of the box that the axes span: each atom is one broadcast addition."""
    shape = (bound, *map(len, axes.values()))
    atoms = np.empty((len(rule.atoms), *shape), np.int64)
    names = list(axes)

    def along_axis(name: str) -> np.ndarray:
        if name in rows:
            return rows[name].reshape(-1, *[1] * len(names))
        return axes[name].reshape([-1 if i == names.index(name) + 1 else 1 for i in range(len(shape))])

    for i, atom in enumerate(rule.atoms):
        columns = [
            np.asarray(base.language.constant_id(term.name)) if isinstance(term, Constant) else along_axis(term.name)
            for term in atom.terms
        ]
        atoms[i] = base.encode_columns(base.language.predicate(atom.predicate), columns)
    return atoms.reshape(len(rule.atoms), -1).T


def _reordered(
    rule: Rule, rows: dict[str, np.ndarray], axes: dict[str, np.ndarray], bound: int, knowledge: KnowledgeBase
) -> np.ndarray:
    """The same ground rules in the order of the rule's own variables."""
    flat = [grid.ravel() for grid in np.meshgrid(np.arange(bound), *axes.values(), indexing="ij")]
    columns = {name: column[flat[0]] for name, column in rows.items()}
    columns |= dict(zip(axes, flat[1:], strict=True))
    substitutions = np.stack([columns[name] for name in rule.variables]).T
    ordered = sorted_substitutions(substitutions, len(knowledge.language.constants))
    return encode_substitutions(knowledge.base, rule, ordered)
