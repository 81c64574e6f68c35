"""Rules -> ground rules: the steps of backward chaining, from what is asked to ground rules that conclude it."""

from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from r2n.grounding.ground_rules import codes_without, distinct_codes
from r2n.grounding.proofs import Known, known_literals
from r2n.grounding.relations import Relation
from r2n.grounding.rule_query import RuleQuery
from r2n.grounding.store import Store
from r2n.grounding.substitutions import (
    Substitutions,
    are_candidates,
    check_budget,
    encode_substitutions,
    sorted_substitutions,
)
from r2n.knowledge.herbrand import Codes
from r2n.logic.formula import Atom, Variable
from r2n.logic.theory import Rule
from r2n.progress import Progress


@dataclass(frozen=True)
class Searched:
    """What a search has found of one rule; `admitted`: the substitutions that a query at each head position led to."""

    rule: Rule
    substitutions: Substitutions
    atoms: np.ndarray
    known: Known
    admitted: tuple[tuple[int, Substitutions], ...] = ()
    estimate: int = 0
    seconds: float = 0.0

    @property
    def unknown(self) -> np.ndarray:
        """How many body literals of each ground rule are unknown."""
        return np.count_nonzero(~self.known, axis=1)

    @property
    def unknown_bodies(self) -> list[np.ndarray]:
        """For each positive body literal, the codes of its atom in ground rules, -1 where it is known."""
        return [
            np.where(self.known[:, i], -1, self.atoms[:, literal.position])
            for i, literal in enumerate(self.rule.body)
            if literal.positive
        ]


class Search:
    """Backward chaining over a store; `prune` says that what is not proved will be left out in the end."""

    def __init__(self, store: Store, max_groundings: int, *, prune: bool) -> None:
        """A search that has found nothing yet."""
        self.store, self.prune, self.max_groundings = store, prune, max_groundings
        rules = store.knowledge.theory.rules
        self.found = [self._nothing(rule) for rule in rules]
        self.provable = {rule.atoms[i].predicate for rule in rules for i in rule.head_positions}

    def _nothing(self, rule: Rule) -> Searched:
        nothing = np.zeros((0, len(rule.variables)), np.int64)
        atoms = np.zeros((0, len(rule.atoms)), np.int64)
        return Searched(rule, nothing, atoms, np.zeros((0, len(rule.body)), bool))

    def run(self, queries: Codes, widths: list[int], leading: int, progress: Progress) -> None:
        """Ask the queries (distinct), then step by step the unknown body atoms met; one width a step.

        Each atom is asked once. Only ground rules with at most `leading` unknown body literals lead on.
        """
        asking = asked = queries
        for step, width in enumerate(widths):
            if step and not len(asking):
                break  # nothing new was met: whatever the depth, there is nothing more to find
            relations = self.store.asked(asking)
            for number, part in enumerate(self.found):
                progress("ground", step * len(self.found) + number, len(widths) * len(self.found))
                self.found[number] = self._step(part, relations, width)
            asking = codes_without(self._met(leading), asked)
            asked = np.concatenate([asked, asking])

    def _met(self, leading: int) -> Codes:
        """The unknown positive body atoms of the ground rules that lead on."""
        codes = [np.full(1, -1)]
        for part in self.found:
            leads = part.unknown <= leading
            codes += [bodies[leads] for bodies in part.unknown_bodies]
        return distinct_codes(codes)[1:]

    def _step(self, part: Searched, asked: dict[str, Relation], width: int) -> Searched:
        """Ground one rule around what is asked, from every head atom and every anchor."""
        start, rule = perf_counter(), part.rule
        queries = self.queries(rule, asked, width)
        if not queries:
            return part
        answers = [(head, self.store.substitutions(query, self.max_groundings)) for head, query in queries]
        admitted = tuple((head, self._over_candidates(rule, answer.substitutions)) for head, answer in answers)
        everything = np.concatenate([part.substitutions, *(found for _, found in admitted)])
        found = sorted_substitutions(everything, len(self.store.language.constants), distinct=True)
        atoms = encode_substitutions(self.store.base, rule, found)
        check_budget(rule, len(atoms), self.max_groundings, exact=True)
        return replace(
            part,
            substitutions=found,
            atoms=atoms,
            known=known_literals(self.store, rule, atoms),
            admitted=(*part.admitted, *admitted),
            estimate=part.estimate + sum(answer.estimate for _, answer in answers),
            seconds=part.seconds + perf_counter() - start,
        )

    def queries(self, rule: Rule, asked: dict[str, Relation], width: int) -> list[tuple[int, RuleQuery]]:
        """What a rule is asked, for each head position that is asked for and each anchor."""
        return [
            (head, rule_query(self, rule, head, asked[rule.atoms[head].predicate], anchor, width))
            for head in rule.head_positions
            if rule.atoms[head].predicate in asked
            for anchor in _anchors(rule)
        ]

    def _over_candidates(self, rule: Rule, found: Substitutions) -> Substitutions:
        """Those whose atoms are candidates, before anything is asked or proved by the others."""
        knowledge = self.store.knowledge
        if not knowledge.candidates:
            return found
        return found[are_candidates(knowledge, rule, encode_substitutions(knowledge.base, rule, found))]


def rule_query(search: Search, rule: Rule, head: int, asked: Relation, anchor: int | None, width: int) -> RuleQuery:
    """The ground rules whose head atom is asked, whose anchor is bound by it or a fact, of at most `width` unknowns.

    No positive body atom but the anchor is the head atom. With pruning and a width of one, an unknown literal that
    nothing proves would take the whole width and be pruned: it is demanded at once. In a wider ground rule it stands
    beside others, which are still asked.
    """
    store, query = search.store, rule.atoms[head]
    joined, absent, counted, apart = [(asked, query)], [], [], []
    for literal in rule.body:
        atom, is_anchor = rule.atoms[literal.position], literal.positive and literal.position == anchor
        match, is_in = store.known_by(rule, literal)
        is_provable = literal.positive and atom.predicate in search.provable
        closed = store.knowledge.theory.is_closed(rule, literal.position)
        if not is_in:
            absent.append(match)
        elif closed or (is_anchor and not _is_bound(atom, query)) or (search.prune and width <= 1 and not is_provable):
            joined.append(match)
        else:
            counted.append(match)
        if literal.positive and not is_anchor and atom.predicate == query.predicate:
            apart.append((atom, query))
    return RuleQuery(
        rule, rule.variables, store.domains(rule), tuple(joined), tuple(absent), tuple(counted), width, tuple(apart)
    )


def _anchors(rule: Rule) -> list[int | None]:
    """The positive body positions; one empty anchor where there are none."""
    return [literal.position for literal in rule.body if literal.positive] or [None]


def _is_bound(atom: Atom, query: Atom) -> bool:
    return all(term in query.terms for term in atom.terms if isinstance(term, Variable))
