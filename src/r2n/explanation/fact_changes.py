"""A trained network, explained: what becomes of a graph, and of what is read in it, when facts are not known.

Under full and known-body grounding most facts only take ground rules away when they go. Then the changed graph is a
part of the graph as it is, and nothing has to be grounded again.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool

from r2n.explanation.scene import Changes, Scene
from r2n.explanation.subject import Subject
from r2n.graph.known_states import FALSE, UNKNOWN
from r2n.graph.spread import Pairs
from r2n.grounding.links import Links
from r2n.knowledge.closed_world import closed_atoms
from r2n.knowledge.herbrand import Codes
from r2n.knowledge.reciprocal import counterparts

Marks = Bool[np.ndarray, " predicates"]


@dataclass(frozen=True, eq=False)
class FactChanges:
    """The facts of a scene, and what goes with each of them."""

    subject: Subject
    scene: Scene

    @cached_property
    def _resting(self) -> tuple[np.ndarray, np.ndarray]:
        """For each position of each rule, whether a ground rule goes with a true atom there; and with a false one."""
        theory, source = self.subject.knowledge.theory, self.subject.members[0].source
        rules = self.scene.graph.rules
        shape = len(rules), max((len(rule.atoms) for rule in rules), default=0)
        with_true, with_false = np.zeros(shape, bool), np.zeros(shape, bool)
        for j, rule in enumerate(rules):
            for literal in rule.body:
                is_closed = theory.is_closed(rule, literal.position)
                is_asked = rule.atoms[literal.position].predicate in source.known_in_bodies
                with_true[j, literal.position] |= literal.positive and (is_closed or is_asked)
                with_false[j, literal.position] |= not literal.positive and is_asked and not is_closed
        return with_true, with_false

    @cached_property
    def _only_takes_away(self) -> tuple[Marks, Marks]:
        """For each predicate, whether a fact that is not known only takes away; and one that is known to be false."""
        knowledge, member = self.subject.knowledge, self.subject.members[0]
        index = {predicate.name: i for i, predicate in enumerate(knowledge.language.predicates)}
        is_whole = member.source.whole is not None and member.model.counted is None
        unknown, false = (np.full(len(index), is_whole) for _ in range(2))
        for name in knowledge.candidates:
            unknown[index[name]] = false[index[name]] = False
        for rule in knowledge.theory.rules if is_whole else ():
            for literal in rule.body:
                predicate = rule.atoms[literal.position].predicate
                if literal.positive:
                    continue
                if knowledge.theory.is_closed(rule, literal.position):
                    unknown[index[predicate]] = False
                    false[index[predicate]] = False
                elif predicate in member.source.known_in_bodies:
                    false[index[predicate]] = False
        return unknown, false

    def only_take_away(self, facts: Codes, *, false: bool = False) -> Bool[np.ndarray, " facts"]:
        """Whether facts only take ground rules away when they are not known, or known to be `false`."""
        return self._only_takes_away[int(false)][self.subject.base.decode(facts)[0]]

    @property
    def are_told_apart(self) -> bool:
        """Whether it makes any difference if a fact is not known or known to be false."""
        first = self.subject.members[0]
        return first.model.evidence_input != "off" or first.source.whole is None or bool(first.source.known_in_bodies)

    def stated(self, most: int) -> Codes:
        """The stated facts of the scene that the asked atoms may feel, ascending, of many the nearest."""
        atoms, steps = self.scene.graph.atoms.numpy(), self.scene.steps_away
        rows = np.flatnonzero(np.isin(atoms, self.subject.knowledge.evidence.atoms) & (steps <= self.scene.layers))
        rows = rows[np.argsort(steps[rows], kind="stable")]
        _, first = np.unique(self.subject.plain(atoms[rows]), return_index=True)
        found = self.subject.plain(atoms[rows[np.sort(first)]])
        if self.subject.members[0].model.evidence_input == "off":
            found = found[np.unique(self._gone(found)[0])]
        return np.sort(found[:most])

    def _rows(self, facts: Codes) -> tuple[np.ndarray, np.ndarray]:
        """The rows of facts, and of their reciprocals, in the scene: the place of the fact, and the row."""
        mirrored = counterparts(self.subject.base, facts)
        codes, places = np.concatenate([facts, mirrored]), np.tile(np.arange(len(facts)), 2)
        atoms = self.scene.graph.atoms.numpy()
        order = np.argsort(atoms, kind="stable")
        start, end = (np.searchsorted(atoms[order], codes, side=side) for side in ("left", "right"))
        which = np.repeat(np.arange(len(codes)), end - start)
        offset = np.arange(len(which)) - np.repeat(np.cumsum(end - start) - (end - start), end - start)
        return places[which], order[start[which] + offset]

    def _gone(self, facts: Codes) -> tuple[np.ndarray, np.ndarray]:
        """The ground rules that go with facts: the place of the fact, and the ground rule by number."""
        of, rows = self._rows(facts)
        places, numbers, rules, positions = self.scene.standing_at(rows)
        truth = self._truth(facts)[of[places]]
        goes = np.where(truth, self._resting[0][rules, positions], self._resting[1][rules, positions])
        return of[places][goes], numbers[goes]

    def _truth(self, facts: Codes) -> Bool[np.ndarray, " facts"]:
        evidence = self.subject.knowledge.evidence
        return evidence.truth[np.searchsorted(evidence.atoms, facts)]

    def changes(self, facts: Codes, members: Pairs, count: int, *, false: bool = False) -> Changes:
        """Changes in which facts are not known (or known to be `false`): `members` pairs changes with facts' places."""
        of, rows = self._rows(facts)
        own, numbers = Links.build(*self._gone(facts), len(facts)).follow(members[:, 1])
        left_out = np.stack([members[own, 0], numbers], axis=1)
        if self.subject.members[0].model.evidence_input == "off":
            return Changes.leaving_out(left_out, count)
        own, read = Links.build(of, rows, len(facts)).follow(members[:, 1])
        state = np.where(closed_atoms(self.subject.base, facts) | false, FALSE, UNKNOWN).astype(np.int64)
        altered = np.stack([members[own, 0], read], axis=1)
        return Changes(count, left_out, altered, state[members[own, 1]])
