"""Rules -> ground rules: those whose body is known in the evidence (one round of forward chaining)."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from time import perf_counter

from r2n.grounding.compile_sql import FALSE, TRUE, RuleQuery, Store
from r2n.grounding.full import FullGrounder
from r2n.grounding.ground_rules import (
    MAX_GROUNDINGS,
    Grounding,
    GroundRules,
    Progress,
    Substitutions,
    are_candidates,
    check_budget,
    encode_substitutions,
    no_progress,
    sorted_substitutions,
)
from r2n.grounding.join import TooManyRowsError, known_bodies
from r2n.knowledge.herbrand import Codes
from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.logic.formula import Term, Variable
from r2n.logic.theory import Rule

SURELY_TOO_MANY = 100  # times the budget: then the estimate alone refuses, without counting


@dataclass(frozen=True)
class KnownBodyGrounder:
    """Substitutions under which every body literal is known; a rule without body is grounded fully."""

    max_groundings: int = MAX_GROUNDINGS

    def ground(
        self, knowledge: KnowledgeBase, queries: Codes | None = None, progress: Progress = no_progress
    ) -> Grounding:
        """The grounding; the queries make no difference."""
        store = Store(knowledge)
        rules = knowledge.theory.rules
        answers: dict[Hashable, tuple[int, Substitutions]] = {}  # mined rules often share a body: each is asked once
        ground_rules: list[GroundRules] = []
        for done, rule in enumerate(rules):
            progress(done, len(rules))
            start = perf_counter()
            if not rule.body:
                ground_rules.append(FullGrounder(self.max_groundings).ground_rule(store, rule))
                continue
            body = _body_up_to_names(store, rule)
            if body not in answers:
                answers[body] = self._answer(store, rule)
            estimate, substitutions = answers[body]
            atoms = encode_substitutions(knowledge.base, rule, substitutions)
            if knowledge.candidates:
                atoms = atoms[are_candidates(knowledge, rule, atoms)]
            ground_rules.append(GroundRules(rule, atoms, estimate, perf_counter() - start))
        return Grounding(tuple(ground_rules))

    def _answer(self, store: Store, rule: Rule) -> tuple[int, Substitutions]:
        """The estimate and the substitutions of a rule that has a body."""
        constants = len(store.language.constants)
        try:
            found = known_bodies(store.relations, rule)
        except TooManyRowsError:
            estimate, found = self._query(store, rule)
            return estimate, sorted_substitutions(found, constants)
        check_budget(rule, len(found), self.max_groundings, exact=True)
        return len(found), sorted_substitutions(found, constants)

    def _query(self, store: Store, rule: Rule) -> tuple[int, Substitutions]:
        """The same by a database, for joins that memory may not hold."""
        query = known_body_query(store, rule)
        estimate = query.estimate()
        if estimate > SURELY_TOO_MANY * self.max_groundings:
            check_budget(rule, estimate, self.max_groundings, exact=False)
        elif estimate > self.max_groundings:
            check_budget(rule, query.count(), self.max_groundings, exact=True)
        found = query.substitutions(rule.variables, width=0, limit=self.max_groundings + 1)
        check_budget(rule, len(found), self.max_groundings, exact=False)
        return estimate, found


def _body_up_to_names(store: Store, rule: Rule) -> Hashable:
    """All that a rule's substitutions depend on, its variables by number."""
    number = {name: i for i, name in enumerate(rule.variables)}

    def terms(given: Iterable[Term]) -> tuple[int | str, ...]:
        return tuple(number[term.name] if isinstance(term, Variable) else term.name for term in given)

    body = tuple(
        (rule.atoms[literal.position].predicate, terms(rule.atoms[literal.position].terms), literal.positive)
        for literal in rule.body
    )
    guards = tuple(terms((guard.left, guard.right)) for guard in rule.guards)
    return body, guards, store.knowledge.theory.variable_domains(rule)


def known_body_query(store: Store, rule: Rule) -> RuleQuery:
    """The substitutions of a rule under which every body literal is known."""
    query = RuleQuery(store, rule)
    denied = []
    for literal in rule.body:
        atom = rule.atoms[literal.position]
        if literal.positive:
            query.join(TRUE, atom)
        elif store.knowledge.theory.is_closed(rule, literal.position):
            denied.append(atom)
        else:
            query.join(FALSE, atom)
    query.bind_free(rule.variables)
    query.guard()
    for atom in denied:
        query.forbid(TRUE, atom)
    return query
