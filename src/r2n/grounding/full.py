"""Full grounding (every substitution over the typed domains) and known-body grounding (one round of forward chaining).

Full grounding is index arithmetic; only conditions need a query.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from r2n.data.herbrand import Codes
from r2n.grounding.ground_rules import Grounding, GroundRules, ground_each
from r2n.grounding.joins import (
    MAX_GROUNDINGS,
    Kind,
    RuleQuery,
    Substitutions,
    Tables,
    are_candidates,
    encode_atom,
    encode_substitutions,
    sorted_substitutions,
)
from r2n.grounding.store import Store
from r2n.logic.formula import Term, Variable
from r2n.logic.theory import Rule
from r2n.progress import Progress, no_progress


@dataclass(frozen=True)
class FullGrounder:
    """Every substitution whose guards hold and whose closed body atoms are not contradicted."""

    name = "full"
    reads_evidence = False  # every substitution is there, whatever is known
    starts_from_queries = False

    max_groundings: int = MAX_GROUNDINGS

    def ground(self, store: Store, queries: Codes | None = None, progress: Progress = no_progress) -> Grounding:
        """The grounding; it does not depend on the queries."""
        return ground_each(store, self.ground_rule, progress)

    def query(self, store: Tables, rule: Rule, *, every_variable: bool = False) -> RuleQuery:
        """The substitutions that guards, closed body literals and candidates allow, of the variables that they bind.

        A ground rule that contradicts a closed body literal always holds. `every_variable`: those of all variables.
        """
        theory, candidates = store.theory, store.candidates
        over_candidates = [
            (store.relation(Kind.CANDIDATE, atom.predicate), atom)
            for atom in rule.atoms
            if atom.predicate in candidates
        ]
        closed = [store.known_by(rule, literal) for literal in rule.body if theory.is_closed(rule, literal.position)]
        terms = [term for guard in rule.guards for term in (guard.left, guard.right)]
        terms += [term for _, atom in (*over_candidates, *(match for match, _ in closed)) for term in atom.terms]
        bound = {term.name for term in terms if isinstance(term, Variable)}
        domains = dict(zip(rule.variables, store.domains(rule), strict=True))
        sought = {name: domain for name, domain in domains.items() if every_variable or name in bound}
        return RuleQuery(
            rule,
            tuple(sought),
            tuple(sought.values()),
            joined=(*over_candidates, *(match for match, is_in in closed if is_in)),
            absent=tuple(match for match, is_in in closed if not is_in),
        )

    def ground_rule(self, store: Store, rule: Rule) -> GroundRules:
        """The ground rules of one rule."""
        start, base, constants = perf_counter(), store.base, len(store.language.constants)
        query = self.query(store, rule)
        found = store.substitutions(query, self.max_groundings)
        bound = dict(zip(query.variables, sorted_substitutions(found, constants).T, strict=True))
        pairs = zip(rule.variables, store.domains(rule), strict=True)
        axes = {name: domain.codes for name, domain in pairs if name not in bound}
        shape = tuple(map(len, axes.values()))
        if query.variables == rule.variables[: len(query.variables)]:  # each atom is one broadcast addition
            columns = {name: column.reshape(-1, *[1] * len(axes)) for name, column in bound.items()}
            for i, (name, values) in enumerate(axes.items()):
                columns[name] = values.reshape(-1, *[1] * (len(axes) - i - 1))
            grid = np.empty((len(rule.atoms), len(found), *shape), np.int64)
            for i, atom in enumerate(rule.atoms):
                grid[i] = encode_atom(base, atom, columns)
            atoms = grid.reshape(len(rule.atoms), -1).T
        else:  # the same ground rules, sorted by the rule's own variables
            row, *flat = (part.ravel() for part in np.meshgrid(np.arange(len(found)), *axes.values(), indexing="ij"))
            columns = {name: column[row] for name, column in bound.items()} | dict(zip(axes, flat, strict=True))
            substitutions = np.stack([columns[name] for name in rule.variables]).T
            atoms = encode_substitutions(base, rule, sorted_substitutions(substitutions, constants))
        return GroundRules(rule, atoms, perf_counter() - start, shape if query.is_free else None)


Answers = dict[Hashable, Substitutions]
"""The substitutions of bodies."""


@dataclass(frozen=True)
class KnownBodyGrounder:
    """Substitutions under which every body literal is known; a rule without body is grounded fully."""

    name = "known-body"
    reads_evidence = True  # a known body makes a ground rule
    starts_from_queries = False

    max_groundings: int = MAX_GROUNDINGS

    def ground(self, store: Store, queries: Codes | None = None, progress: Progress = no_progress) -> Grounding:
        """The grounding; it does not depend on the queries."""
        answers: Answers = {}  # mined rules often share a body: each is joined once
        return ground_each(store, lambda store, rule: self.ground_rule(store, rule, answers), progress)

    def query(self, store: Tables, rule: Rule, *, every_variable: bool = False) -> RuleQuery:
        """The query for the substitutions of a rule; without a body, of every variable only if that is wanted."""
        if not rule.body:
            return FullGrounder().query(store, rule, every_variable=every_variable)
        known = [store.known_by(rule, literal) for literal in rule.body]
        return RuleQuery(
            rule,
            rule.variables,
            store.domains(rule),
            joined=tuple(match for match, is_in in known if is_in),
            absent=tuple(match for match, is_in in known if not is_in),
        )

    def ground_rule(self, store: Store, rule: Rule, answers: Answers | None = None) -> GroundRules:
        """The ground rules of one rule; `answers` caches those of bodies for the rules that share them."""
        start, knowledge = perf_counter(), store.knowledge
        if not rule.body:
            return FullGrounder(self.max_groundings).ground_rule(store, rule)
        cached, body = {} if answers is None else answers, _body_up_to_names(store, rule)
        if body not in cached:
            found = store.substitutions(self.query(store, rule), self.max_groundings)
            cached[body] = sorted_substitutions(found, len(store.language.constants))
        atoms = encode_substitutions(knowledge.base, rule, cached[body])
        if knowledge.candidates:
            atoms = atoms[are_candidates(knowledge, rule, atoms)]
        return GroundRules(rule, atoms, perf_counter() - start)


def _body_up_to_names(store: Store, rule: Rule) -> Hashable:
    """All that a rule's substitutions depend on, its variables by number."""
    number = {name: i for i, name in enumerate(rule.variables)}

    def terms(given: Iterable[Term]) -> tuple[int | str, ...]:
        return tuple(number[term.name] if isinstance(term, Variable) else term.name for term in given)

    atoms = [(rule.atoms[literal.position], literal.positive) for literal in rule.body]
    body = tuple((atom.predicate, terms(atom.terms), positive) for atom, positive in atoms)
    guards = tuple(terms((guard.left, guard.right)) for guard in rule.guards)
    return body, guards, store.knowledge.theory.variable_domains(rule)
