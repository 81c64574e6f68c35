"""Counterfactuals: what would be answered without facts or rules, and the fewest facts that flip an answer."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float64

from r2n.data.herbrand import Codes, RowIndex, closed_atoms
from r2n.data.knowledge_base import counterparts
from r2n.explanation.neighbourhood import NO_PAIRS, Changes, ExplainedModel, Neighbourhood, WhatIf, mean_logits
from r2n.explanation.records import Counterfactual, Kind
from r2n.grounding.ground_rules import Adjacency
from r2n.network.factor_graph import FALSE, UNKNOWN
from r2n.network.incremental import Pairs


@dataclass(frozen=True, eq=False)
class FactChanges:
    """The facts of a neighbourhood, and the ground rules that go with each of them."""

    model: ExplainedModel
    near: Neighbourhood

    @cached_property
    def _rests_on(self) -> tuple[np.ndarray, np.ndarray]:
        """For each position of each rule, whether a ground rule goes with a true atom there; and with a false one."""
        theory, source = self.model.knowledge.theory, self.model.members[0].source
        rules = self.near.graph.rules
        shape = len(rules), max((len(rule.atoms) for rule in rules), default=0)
        with_true, with_false = np.zeros(shape, bool), np.zeros(shape, bool)
        for j, rule in enumerate(rules):
            for literal in rule.body:
                is_closed = theory.is_closed(rule, literal.position)
                is_asked = rule.atoms[literal.position].predicate in source.known_in_bodies
                with_true[j, literal.position] |= literal.positive and (is_closed or is_asked)
                with_false[j, literal.position] |= not literal.positive and is_asked and not is_closed
        return with_true, with_false

    def only_remove(self, facts: Codes, *, false: bool = False) -> Bool[np.ndarray, " facts"]:
        """Whether facts only remove ground rules when they are not known, or known to be `false`."""
        knowledge, member = self.model.knowledge, self.model.members[0]
        adding = set(knowledge.candidates)  # the predicates whose facts may also add ground rules
        is_full = member.source.full_graph is not None and member.model.counted is None
        for rule in knowledge.theory.rules if is_full else ():
            for literal in (literal for literal in rule.body if not literal.positive):
                predicate = rule.atoms[literal.position].predicate
                is_closed = knowledge.theory.is_closed(rule, literal.position)
                adding |= {predicate} if is_closed or (false and predicate in member.source.known_in_bodies) else set()
        removes = np.array([is_full and part.name not in adding for part in knowledge.language.predicates], bool)
        return removes[self.model.base.decode(facts)[0]]

    @property
    def are_distinguished(self) -> bool:
        """Whether a fact that is not known can differ from one that is known to be false."""
        model, source = self.model.members[0].model, self.model.members[0].source
        return model.evidence_input != "off" or source.full_graph is None or bool(source.known_in_bodies)

    def asserted(self, most: int) -> Codes:
        """The asserted facts within reach of the queried atoms, ascending; the nearest `most` of them."""
        atoms, steps = self.near.graph.atoms.numpy(), self.near.forward.steps_away
        rows = np.flatnonzero(np.isin(atoms, self.model.knowledge.evidence.atoms) & (steps <= self.near.layers))
        rows = rows[np.argsort(steps[rows], kind="stable")]
        _, first = np.unique(self.model.plain(atoms[rows]), return_index=True)
        found = self.model.plain(atoms[rows[np.sort(first)]])
        if self.model.members[0].model.evidence_input == "off":
            found = found[np.unique(self._gone(found)[0])]
        return np.sort(found[:most])

    def _rows(self, facts: Codes) -> tuple[np.ndarray, np.ndarray]:
        """The rows of facts, and of their reciprocals, in the graph: the fact's index, and the row."""
        codes = np.concatenate([facts, counterparts(self.model.base, facts)])
        atoms = self.near.graph.atoms.numpy()
        order = np.argsort(atoms, kind="stable")
        which, found = RowIndex.from_rows(atoms[order]).entries(codes)
        return which % max(1, len(facts)), order[found]

    def _gone(self, facts: Codes) -> tuple[np.ndarray, np.ndarray]:
        """The ground rules that go with facts: the fact's index, and the ground rule by number."""
        of, rows = self._rows(facts)
        index, numbers, rules, positions = self.near.forward.around.incident_positions(rows)
        evidence = self.model.knowledge.evidence
        truth = evidence.truth[np.searchsorted(evidence.atoms, facts)][of[index]]
        goes = np.where(truth, self._rests_on[0][rules, positions], self._rests_on[1][rules, positions])
        return of[index][goes], numbers[goes]

    def changes(self, facts: Codes, members: Pairs, count: int, *, false: bool = False) -> Changes:
        """Changes in which facts are not known (or are `false`); `members` pairs changes with facts (by index)."""
        of, rows = self._rows(facts)
        own, numbers = Adjacency.build(*self._gone(facts), len(facts)).follow(members[:, 1])
        left_out = np.stack([members[own, 0], numbers], axis=1)
        if self.model.members[0].model.evidence_input == "off":
            return Changes(count, left_out)
        own, read = Adjacency.build(of, rows, len(facts)).follow(members[:, 1])
        state = np.where(closed_atoms(self.model.base, facts) | false, FALSE, UNKNOWN).astype(np.int64)
        altered = np.stack([members[own, 0], read], axis=1)
        return Changes(count, left_out, altered, state[members[own, 1]])


MOST_REGROUNDED = 8  # facts, or rules, for which everything is grounded again
MOST_FACTS = 200  # the nearest of a neighbourhood
MOST_TRIED = 16  # facts among which a set that flips the answer is sought
SAME = 1e-9  # logits that differ by less are equal

Logits = Float64[np.ndarray, "changes queried"]


@dataclass(frozen=True, eq=False)
class Flip:
    """When the answer `codes[0]` flips: below `half` (a logit), or by a rival of the others (None: never)."""

    codes: Codes
    by: Literal["half", "first"] | None
    half: float = 0.0

    def margins(self, logits: Logits) -> Float64[np.ndarray, " changes"]:
        """The distance of each answer from flipping; negative if it has flipped."""
        if self.by is None:
            return np.ones(len(logits))
        return logits[:, 0] - (self.half if self.by == "half" else logits[:, 1:].max(1))

    def flips(self, logits: Logits) -> Bool[np.ndarray, " changes"]:
        """Whether each answer flips."""
        return self.margins(logits) < 0


@dataclass(frozen=True, eq=False)
class Counterfactuals:
    """The answers for an atom and its rivals after changes.

    `shown` are the facts in the reasons, `rules` the rules (by name) within reach. If one of them cannot be taken out
    of the graph as it is, everything is grounded again, for a few of them. `logits` are those of the flip's atoms.
    """

    model: ExplainedModel
    near: Neighbourhood
    flip: Flip
    shown: Codes
    rules: tuple[str, ...]
    logits: Float64[np.ndarray, " queried"]

    @cached_property
    def _facts(self) -> FactChanges:
        return FactChanges(self.model, self.near)

    def of_facts(self) -> tuple[Counterfactual, ...]:
        """The answers if each fact within reach were not known, or known to be false."""
        found = self._records("not known", self.model.names(self._unknown[0]), self._unknown[1])
        if not self._facts.are_distinguished:
            return found
        facts, logits = self._single(false=True)
        before = self._unknown[1][np.searchsorted(self._unknown[0], facts)]
        differs = np.abs(logits - before).max(1, initial=0.0) > SAME
        return (*found, *self._records("known to be false", self.model.names(facts[differs]), logits[differs]))

    def _records(self, kind: Kind, names: Sequence[str], logits: Iterable[np.ndarray]) -> tuple[Counterfactual, ...]:
        return tuple(self._record(kind, (name,), row) for name, row in zip(names, logits, strict=True))

    @cached_property
    def _unknown(self) -> tuple[Codes, Logits]:
        """Facts (ascending) within reach, and the logits if each is not known."""
        return self._single(false=False)

    def _single(self, *, false: bool) -> tuple[Codes, Logits]:
        """Facts (ascending) that can be changed, and the logits then: by leaving them out, or by grounding again."""
        asserted, evidence = self._facts.asserted(MOST_FACTS), self.model.knowledge.evidence
        facts = np.union1d(asserted, self.shown)
        if false:
            facts = self._unknown[0]
            is_true = evidence.truth[np.searchsorted(evidence.atoms, facts)]
            facts = facts[is_true & ~closed_atoms(self.model.base, facts)]
        easy = self._facts.only_remove(facts, false=false)
        found = facts[easy & np.isin(facts, asserted)]
        regrounded = facts[~easy & np.isin(facts, self.shown)][:MOST_REGROUNDED]
        pairs = np.stack([np.arange(len(found))] * 2, axis=1)
        logits = self.near.changed(self._facts.changes(found, pairs, len(found), false=false))
        others = [self._regrounded(np.array([fact]), false=false) for fact in regrounded.tolist()]
        facts = np.concatenate([found, regrounded])
        order = np.argsort(facts)
        return facts[order], np.concatenate([logits, *others])[order]

    def _regrounded(self, facts: Codes, *, false: bool = False) -> Logits:
        """The logits if everything is grounded again without facts."""
        gone = WhatIf(unknown=facts, false=facts if false else facts[:0])
        return mean_logits(self.model.networks_if(gone), self.flip.codes)[None]

    def of_rules(self) -> tuple[Counterfactual, ...]:
        """The answers without each rule within reach."""
        first, graph = self.model.members[0], self.near.graph
        if first.source.full_graph is None or first.model.counted is not None:
            names = self.rules[:MOST_REGROUNDED]
            logits = [mean_logits(self.model.networks_if(WhatIf(without_rule=n)), self.flip.codes) for n in names]
            return self._records("without rule", names, logits)
        rules = [j for j, part in enumerate(graph.neighbours) if len(part)]
        pairs = [np.stack([np.full(len(n), k), n], axis=1) for k, n in enumerate(map(self.near.numbers, rules))]
        logits = self.near.changed(Changes(len(rules), np.concatenate([NO_PAIRS, *pairs])))
        return self._records("without rule", [graph.rules[j].name for j in rules], logits)

    def largest(self, top: int | None) -> tuple[tuple[Counterfactual, ...], Counterfactual | None]:
        """The `top` facts and `top` rules that change the logit most, and the set of facts that flips the answer."""
        kinds = self.of_facts(), self.of_rules()
        ordered = [sorted(part, key=lambda item: -abs(item.logit - self.logits[0])) for part in kinds]
        return tuple(item for part in ordered for item in part[:top]), self.minimal_flip_set()

    def _record(self, kind: Kind, what: tuple[str, ...], logits: np.ndarray) -> Counterfactual:
        probability = float(self.model.probability(logits[:1])[0])
        return Counterfactual(kind, what, float(logits[0]), probability, bool(self.flip.flips(logits[None])[0]))

    def minimal_flip_set(self) -> Counterfactual | None:
        """The facts whose absence flips the answer, found one after the other; None if none were found."""
        if self.flip.by is None:
            return None
        facts, logits = self._unknown
        margins = self.flip.margins(logits)
        order = np.argsort(margins, kind="stable")[:MOST_TRIED]
        order = order[margins[order] < self.flip.margins(self.logits[None])[0] - SAME]
        if not len(order):
            return None
        if self._facts.only_remove(facts[order]).all():
            found = self._greedy(facts[order])
        else:  # one fact more each time, those first that do most alone
            most = facts[order[:MOST_REGROUNDED]]
            sets = ((most[:size].tolist(), self._regrounded(most[:size])) for size in range(1, len(most) + 1))
            found = next(((part, rows[0]) for part, rows in sets if self.flip.flips(rows)[0]), None)
        if found is None:
            return None
        chosen, row = found
        return self._record("not known", tuple(self.model.names(np.array(chosen, np.int64))), row)

    def _without(self, facts: Codes, sets: list[list[int]]) -> Logits:
        """The logits without each set of facts, given by their indices."""
        pairs = np.array([[k, index] for k, part in enumerate(sets) for index in part], np.int64).reshape(-1, 2)
        return self.near.changed(self._facts.changes(facts, pairs, len(sets)))

    def _greedy(self, facts: Codes) -> tuple[list[int], np.ndarray] | None:
        """One fact more each time, those first that do most alone; then what is not needed is left out again."""
        found = self._shortest(facts, list(range(len(facts))))
        if found is None or len(found[0]) == 1:
            return found
        chosen = list(range(len(found[0])))
        margins = self.flip.margins(self._without(facts, [chosen[:i] + chosen[i + 1 :] for i in chosen]))
        spare = [i for i in np.argsort(margins, kind="stable").tolist() if margins[i] < 0]
        sets = [[i for i in chosen if i not in spare[:n]] for n in range(1, len(spare) + 1)]
        flipping = [*self.flip.flips(self._without(facts, sets)).tolist(), False]
        kept = [chosen, *sets][flipping.index(False)]
        return found if kept == chosen else self._shortest(facts, kept)

    def _shortest(self, facts: Codes, chosen: list[int]) -> tuple[list[int], np.ndarray] | None:
        """The shortest prefix of some facts (by index) that flips the answer, and the logits without it."""
        logits = self._without(facts, [chosen[: size + 1] for size in range(len(chosen))])
        flipping = np.flatnonzero(self.flip.flips(logits))
        return (facts[chosen[: flipping[0] + 1]].tolist(), logits[flipping[0]]) if len(flipping) else None
