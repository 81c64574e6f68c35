"""Reasons of an answer: ground rules ranked by what leaving each out does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Int64

from r2n.explanation.neighbourhood import HIDDEN, Changes, Scene, Subject
from r2n.explanation.records import Belief, Member, Reason
from r2n.logic.formula import And, Atom, Formula, Or, Variable
from r2n.logic.theory import Rule
from r2n.network.factor_graph import known_truths


def ground_text(rule: Rule, names: Sequence[str]) -> str:
    """`neighborOf(italy, france) & locatedIn(italy, europe) -> locatedIn(france, europe)`, by its atoms' names."""
    if rule.formula is None:
        return f"[{', '.join(dict.fromkeys(names))}]"  # a reciprocal has the name of what it says
    return str(_named(rule.formula, dict(zip(rule.atoms, names, strict=True))))


def _named(formula: Formula, names: Mapping[Atom, str]) -> Formula:
    """The formula with a name in the place of each atom."""
    if isinstance(formula, Atom):
        return _Named(names[formula], (Variable("x"),))
    if isinstance(formula, And | Or):
        return type(formula)(tuple(_named(part, names) for part in formula.parts))
    return type(formula)(*(_named(part, names) for part in formula.operands()))


class _Named(Atom):
    """An atom that is printed by its name."""

    def __str__(self) -> str:
        return self.predicate


Identity = tuple[str, tuple[int, ...]]
"""Of a ground rule: its rule's name, and the codes of its atoms."""

MOST_MEMBERS = 8  # of a ground rule that are told of; those of a larger one have no reasons below them
MOST_BELOW = 3  # reasons of an atom that is itself a reason


@dataclass(frozen=True, eq=False)
class Moved:
    """A ground rule of a scene, and its effect on an atom: its rule, and the rows and codes of its atoms.

    `numbers` has it once; or once for each copy, where atoms and their reciprocals have neighbourhoods of their own.
    """

    numbers: tuple[int, ...]
    rule: Rule
    rows: Int64[np.ndarray, " positions"]
    codes: Int64[np.ndarray, " positions"]
    effect: float = 0.0

    @property
    def identity(self) -> Identity:
        """Tells it from all other ground rules, in whatever scene."""
        return self.rule.name, tuple(self.codes.tolist())


def moved(scene: Scene, asked: int) -> list[list[Moved]]:
    """For each of the first `asked` atoms, all ground rules it stands in, with what leaving each out does to it."""
    found = [located(scene, scene.ground_rules_of(place)) for place in range(asked)]
    every = [part for parts in found for part in parts]
    of = np.repeat(np.arange(asked), list(map(len, found)))
    logits = scene.changed(leaving_out(every))[np.arange(len(every)), of]
    effects = iter((scene.logits[of] - logits).tolist())
    return [[replace(part, effect=next(effects)) for part in parts] for parts in found]


def leaving_out(each: Sequence[Moved]) -> Changes:
    """Changes that leave out one ground rule each."""
    pairs = [[k, number] for k, part in enumerate(each) for number in part.numbers]
    return Changes.leaving_out(np.array(pairs, np.int64).reshape(-1, 2), len(each))


def located(scene: Scene, numbers: Int64[np.ndarray, " _"]) -> list[Moved]:
    """Ground rules of a scene, each once."""
    found: dict[Identity, Moved] = {}
    for number in numbers.tolist():
        rule, rows = scene.located(number)
        part = Moved(scene.copies(number), scene.graph.rules[rule], rows, scene.graph.atoms.numpy()[rows])
        found.setdefault(part.identity, part)
    return list(found.values())


def ranked(found: Sequence[Moved], top: int | None = None) -> list[Moved]:
    """Ground rules that speak for an atom, the strongest first, then those that do not, the strongest first.

    At most `top` of them: the strongest for the atom have at least half of the places, those that are stronger than
    the remaining ones, for or against it, have the others.
    """
    every = sorted(found, key=lambda part: (part.effect <= 0, -abs(part.effect), part.identity))
    if top is None or len(every) <= top:
        return every
    own = min(-(-top // 2), sum(part.effect > 0 for part in every))
    others = sorted(range(own, len(every)), key=lambda place: -abs(every[place].effect))[: top - own]
    return [every[place] for place in (*range(own), *sorted(others))]


@dataclass
class Tree:
    """Reasons and, for atoms of which nothing is known, their reasons in turn; each atom is told once."""

    subject: Subject
    top: int | None
    below: dict[int, list[Moved]] = field(default_factory=dict)
    effects: dict[tuple[int, int], float] = field(default_factory=dict)
    homes: dict[int, tuple[int, Identity]] = field(default_factory=dict)

    def grow(self, code: int, scene: Scene, depth: int) -> list[Moved]:
        """Find the reasons of an atom, the first of a scene, and of those below it to a depth; returns all of its own.

        What is listed of them is told by `reasons`.
        """
        every = moved(scene, 1)[0]
        self.below[code] = ranked(every, self.top) if depth else []
        self._read(code, scene)
        above: dict[int, set[Identity]] = {code: set()}
        front = [code]
        for _ in range(1, depth):
            above = self._next(front, above)
            front = list(above)
            if not front:
                break
            self._grow_below(front, above)
        return every

    def _next(self, front: Sequence[int], above: dict[int, set[Identity]]) -> dict[int, set[Identity]]:
        """The unknown atoms of the reasons of a level that are not told yet, each with the ground rules above it."""
        found: dict[int, set[Identity]] = {}
        for code in front:
            for part in (part for part in self.below[code] if len(part.codes) <= MOST_MEMBERS):
                codes = self.subject.plain(part.codes)
                unknown = known_truths(self.subject.base, codes, self.subject.knowledge.evidence) < 0
                for other in codes[unknown].tolist():
                    if other not in self.below and other not in found:
                        found[other] = above[code] | {part.identity}
                        self.homes[other] = code, part.identity
        return found

    def _grow_below(self, codes: Sequence[int], above: dict[int, set[Identity]]) -> None:
        scene = Scene.around(self.subject.members, np.array(codes, np.int64))
        most = MOST_BELOW if self.top is None else min(self.top, MOST_BELOW)
        for code, every in zip(codes, moved(scene, len(codes)), strict=True):
            own = [part for part in every if part.identity not in above[code]]
            self.below[code] = ranked(own, most)

    def _read(self, code: int, scene: Scene) -> None:
        """What each atom of the listed ground rules does, by what is read of it, to the explained atom."""
        listed = np.concatenate([np.zeros(0, np.int64), *(part.codes for part in self.below[code])])
        rows = np.flatnonzero(np.isin(scene.graph.atoms.numpy(), listed))  # all copies of an atom
        atoms, change = np.unique(self.subject.plain(scene.graph.atoms.numpy()[rows]), return_inverse=True)
        states = np.full(len(rows), HIDDEN, np.int64)
        changes = Changes(len(atoms), np.zeros((0, 2), np.int64), np.stack([change, rows], axis=1), states)
        effects = scene.logits[0] - scene.changed(changes)[:, 0]
        self.effects = {(code, atom): effect for atom, effect in zip(atoms.tolist(), effects.tolist(), strict=True)}

    def reasons(self, code: int) -> tuple[Reason, ...]:
        """The reasons of an atom, as they are told."""
        listed = [self.subject.plain(part.codes) for parts in self.below.values() for part in parts]
        codes = np.unique(np.concatenate([np.zeros(0, np.int64), *listed])).tolist()
        beliefs = dict(zip(codes, self.subject.beliefs(np.array(codes, np.int64)), strict=True)) if codes else {}
        names = dict(zip(codes, self.subject.names(np.array(codes, np.int64)), strict=True)) if codes else {}
        return self._told(code, beliefs, names)

    def _told(self, code: int, beliefs: dict[int, Belief], names: dict[int, str]) -> tuple[Reason, ...]:
        found = []
        for part in self.below[code]:
            members = self._members(code, part)
            here = [other for other in members if self.homes.get(other) == (code, part.identity)]
            because = tuple(
                Member(
                    names[other],
                    beliefs[other],
                    self.effects.get((code, other)),
                    self._told(other, beliefs, names) if other in here else (),
                    is_told_above=other in self.below and other not in here,
                )
                for other in members
            )
            text = ground_text(part.rule, [names[other] for other in self.subject.plain(part.codes).tolist()])
            found.append(Reason(part.rule.name, text, part.effect, because))
        return tuple(found)

    def _members(self, code: int, part: Moved) -> list[int]:
        """The other atoms of a ground rule, in its order; of many, those with the largest effects."""
        others = [other for other in dict.fromkeys(self.subject.plain(part.codes).tolist()) if other != code]
        if len(others) <= MOST_MEMBERS:
            return others
        kept = sorted(others, key=lambda other: -abs(self.effects.get((code, other), 0.0)))[:MOST_MEMBERS]
        return [other for other in others if other in kept]
