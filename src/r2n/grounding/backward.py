"""Rules -> ground rules: around the queries, by backward chaining BC_{w,d} of width w and depth d."""

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from r2n.errors import GroundingError
from r2n.grounding.compile_sql import ASKED, FALSE, TRUE, RuleQuery, Store
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
from r2n.grounding.proofs import keep_proved
from r2n.knowledge.herbrand import Codes
from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.logic.formula import Variable
from r2n.logic.theory import Literal, Rule


@dataclass(frozen=True)
class BackwardGrounder:
    """Backward chaining from the queries: at most `width` unknown body atoms a ground rule, `depth` steps.

    In the last step `last_width` unknown body atoms are allowed. `prune` keeps only ground rules whose unknown
    body atoms are proved by others within `depth` rounds; without it every ground rule met is kept.
    """

    width: int = 1
    depth: int = 2
    last_width: int = 0
    prune: bool = True
    max_groundings: int = MAX_GROUNDINGS

    def __post_init__(self) -> None:
        """Refuse options that mean nothing."""
        if self.width < 0 or self.last_width < 0 or self.depth < 1:
            raise GroundingError(
                f"backward grounding of width {self.width}, last width {self.last_width} and depth {self.depth}",
                hint="widths are 0 or more, the depth is 1 or more",
            )

    def ground(
        self, knowledge: KnowledgeBase, queries: Codes | None = None, progress: Progress = no_progress
    ) -> Grounding:
        """The grounding around the queries."""
        if queries is None:
            raise GroundingError("backward grounding starts from queries, and there are none", hint="give queries")
        search = _Search(self, Store(knowledge))
        asking = np.unique(np.asarray(queries, np.int64))
        asked = asking
        rules = knowledge.theory.rules
        for step in range(self.depth):
            width = self.last_width if step == self.depth - 1 else self.width
            search.ask(asking)
            for done, rule in enumerate(rules):
                progress(step * len(rules) + done, self.depth * len(rules))
                search.step(done, rule, width)
            asking = np.setdiff1d(search.unknown_bodies(), asked)
            asked = np.union1d(asked, asking)
        return search.grounding()


class _Search:
    """What the steps have found so far, rule by rule."""

    def __init__(self, options: BackwardGrounder, store: Store) -> None:
        self.options, self.store, self.base = options, store, store.knowledge.base
        self.rules = store.knowledge.theory.rules
        self.found: list[Substitutions] = [np.zeros((0, len(rule.variables)), np.int64) for rule in self.rules]
        self.atoms: list[np.ndarray] = [np.zeros((0, len(rule.atoms)), np.int64) for rule in self.rules]
        self.estimates = [0] * len(self.rules)
        self.seconds = [0.0] * len(self.rules)
        self.asked_predicates: set[str] = set()
        self.provable = {rule.atoms[i].predicate for rule in self.rules for i in rule.head_positions}
        evidence = store.knowledge.evidence
        self.true_codes = evidence.atoms[evidence.truth]

    def ask(self, codes: Codes) -> None:
        """Make these atoms the queries of the next step."""
        index, arguments = self.base.decode(codes)
        self.asked_predicates = set()
        for i in np.unique(index):
            predicate = self.store.language.predicates[i]
            self.store.ask(predicate.name, arguments[index == i, : predicate.arity])
            self.asked_predicates.add(predicate.name)

    def step(self, number: int, rule: Rule, width: int) -> None:
        """Ground one rule around the present queries, from every head atom and every anchor."""
        start = perf_counter()
        parts = [self.found[number]]
        for head in rule.head_positions:
            if rule.atoms[head].predicate in self.asked_predicates:
                parts += [self._answers(number, rule, head, anchor, width) for anchor in _anchors(rule)]
        if len(parts) > 1:
            constants = len(self.store.language.constants)
            self.found[number] = sorted_substitutions(np.concatenate(parts), constants, distinct=True)
            self.atoms[number] = encode_substitutions(self.base, rule, self.found[number])
            self._keep_candidates(number, rule)
            check_budget(rule, len(self.atoms[number]), self.options.max_groundings, exact=True)
        self.seconds[number] += perf_counter() - start

    def _keep_candidates(self, number: int, rule: Rule) -> None:
        """Leave out ground rules with atoms that are no candidates, before anything is asked or proved by them."""
        if self.store.knowledge.candidates:
            kept = are_candidates(self.store.knowledge, rule, self.atoms[number])
            self.found[number], self.atoms[number] = self.found[number][kept], self.atoms[number][kept]

    def _answers(self, number: int, rule: Rule, head: int, anchor: int | None, width: int) -> Substitutions:
        query = self._query(rule, head, anchor, width)
        self.estimates[number] += query.estimate()
        limit = self.options.max_groundings
        found = query.substitutions(rule.variables, width=width, limit=limit + 1)
        check_budget(rule, len(found), limit, exact=False)
        return found

    def _query(self, rule: Rule, head: int, anchor: int | None, width: int) -> RuleQuery:
        query = RuleQuery(self.store, rule)
        asked = query.join(ASKED, rule.atoms[head])
        joined = anchor is not None and not _is_bound(rule, anchor, query)
        if anchor is not None and joined:
            query.join(TRUE, rule.atoms[anchor])
        query.bind_free(rule.variables)
        query.guard()
        for literal in rule.body:
            atom, is_anchor = rule.atoms[literal.position], literal.positive and literal.position == anchor
            if not (is_anchor and joined):
                self._weigh(query, literal, rule, width)
            if literal.positive and not is_anchor and atom.predicate == rule.atoms[head].predicate:
                query.refuse(atom, asked)
        return query

    def _weigh(self, query: RuleQuery, literal: Literal, rule: Rule, width: int) -> None:
        """Demand a body literal to be known, or count it towards the width where it may be unknown.

        With pruning and a width of one, an unknown literal that nothing proves would take the whole width and be
        pruned: it is demanded at once. In a wider ground rule it stands beside others, which are still asked.
        """
        atom = rule.atoms[literal.position]
        closed = self.store.knowledge.theory.is_closed(rule, literal.position)
        is_provable = literal.positive and atom.predicate in self.provable
        if not literal.positive and closed:
            query.forbid(TRUE, atom)
        elif closed or (self.options.prune and width <= 1 and not is_provable):
            query.join(TRUE if literal.positive else FALSE, atom)
        else:
            query.count_unknown(TRUE if literal.positive else FALSE, atom)

    def unknown_bodies(self) -> Codes:
        """Positive body atoms of the ground rules found that are no known facts."""
        codes = [np.zeros(0, np.int64)]
        for rule, atoms in zip(self.rules, self.atoms, strict=True):
            codes += [atoms[:, literal.position] for literal in rule.body if literal.positive]
        return np.setdiff1d(np.concatenate(codes), self.true_codes)

    def grounding(self) -> Grounding:
        """All that was found, pruned if so asked."""
        atoms = self.atoms
        if self.options.prune:
            atoms = keep_proved(self.store.knowledge, self.rules, atoms, self.options.depth)
        parts = zip(self.rules, atoms, self.estimates, self.seconds, strict=True)
        return Grounding(tuple(GroundRules(*part) for part in parts))


def _anchors(rule: Rule) -> list[int | None]:
    """The positive body positions; one empty anchor where there are none."""
    return [literal.position for literal in rule.body if literal.positive] or [None]


def _is_bound(rule: Rule, position: int, query: RuleQuery) -> bool:
    return all(term.name in query.columns for term in rule.atoms[position].terms if isinstance(term, Variable))
