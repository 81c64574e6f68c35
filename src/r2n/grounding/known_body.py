"""Known-body grounding: the ground rules whose body is known in the evidence (one round of forward chaining)."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from time import perf_counter

from r2n.data.herbrand import Codes
from r2n.grounding.full import FullGrounder
from r2n.grounding.ground_rules import Grounding, GroundRules, ground_each
from r2n.grounding.joins import (
    MAX_GROUNDINGS,
    RuleQuery,
    Substitutions,
    Tables,
    are_candidates,
    encode_substitutions,
    sorted_substitutions,
)
from r2n.grounding.store import Store
from r2n.logic.formula import Term, Variable
from r2n.logic.theory import Rule
from r2n.progress import Progress, no_progress

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
