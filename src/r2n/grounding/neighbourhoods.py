"""Rules -> ground rules: for each of many queries the ground rules that backward chaining finds around it alone.

Queries that are ground together help each other: an atom is explored deeper where it is a query itself, and proves
more. Here all are searched for at once, and then each follows its own steps through what was found, as pairs of a query
and an atom, or of a query and a ground rule. A pair is one number, so that all queries take a step together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Int64

from r2n.grounding.ground_rules import Grounding, GroundRules, codes_without, distinct_codes
from r2n.grounding.links import Links
from r2n.grounding.proofs import proved
from r2n.grounding.search import Searched
from r2n.grounding.store import Store
from r2n.grounding.substitutions import check_budget, places_of
from r2n.knowledge.herbrand import Codes
from r2n.progress import Progress, no_progress

Pairs = Int64[np.ndarray, " _"]
"""Pairs of a query and something else, each as the one's index times the number of the others, plus the other's."""


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    """The ground rules around each of many queries, each ground rule once.

    `members[j]` pairs queries (their index) with ground rules of rule j (their row in `grounding`), sorted by query,
    then by row.
    """

    grounding: Grounding
    members: tuple[Int64[np.ndarray, "_ 2"], ...]


@runtime_checkable
class NeighbourhoodGrounder(Protocol):
    """A strategy that starts from what is asked: each query has ground rules of its own."""

    def neighbourhoods(self, store: Store, queries: Codes, progress: Progress = no_progress) -> Neighbourhoods:
        """For each of the queries (sorted, distinct) the ground rules that it has alone."""
        ...

    def rules_met(self, store: Store, queries: Codes) -> Bool[np.ndarray, " rules"]:
        """False where a rule makes no difference to what the queries have."""
        ...

    def may_reach(self, store: Store, queries: Codes) -> Bool[np.ndarray, " queries"]:
        """False where a query has no ground rule, True where it may have one; cheaper than to find them."""
        ...


@dataclass(frozen=True, eq=False)
class Paths:
    """What a search has found, as paths: from an atom to ground rules it is asked by, to their unknown body atoms.

    Atoms are numbered in the order of their codes, ground rules rule after rule, those of rule j from `offsets[j]`.
    """

    found: Sequence[Searched]
    codes: Codes
    queries: Int64[np.ndarray, " _"]  # numbers of the queries' atoms
    offsets: Int64[np.ndarray, " _"]
    unknown: Int64[np.ndarray, " _"]  # of each ground rule, how many body literals
    heads: Int64[np.ndarray, "_ 2"]  # atoms, and ground rules that asking them leads to; distinct
    bodies: Links

    @classmethod
    def through(cls, found: Sequence[Searched], queries: Codes, constants: int) -> "Paths":
        """The paths from the queries through what a search for them has found, over ids below `constants`."""
        codes = distinct_codes([queries, *(part.atoms for part in found)])
        offsets = np.cumsum([0, *(len(part.atoms) for part in found)])
        heads, bodies = [np.zeros((2, 0), np.int64)], [np.zeros((2, 0), np.int64)]
        for part, offset in zip(found, offsets[:-1], strict=True):
            for head, substitutions in part.admitted:
                rows = places_of(substitutions, part.substitutions, constants)
                heads.append(np.stack([part.atoms[rows, head], rows + offset]))
            for atoms in part.unknown_bodies:
                rows = np.flatnonzero(atoms >= 0)
                bodies.append(np.stack([rows + offset, atoms[rows]]))
        ground_rules, met = np.concatenate(bodies, axis=1)
        asked, led_to = np.concatenate(heads, axis=1)
        size = max(1, int(offsets[-1]))
        once = distinct_codes([np.searchsorted(codes, asked) * size + led_to])  # several positions may be one atom
        return cls(
            found,
            codes,
            np.searchsorted(codes, queries),
            offsets,
            np.concatenate([np.zeros(0, np.int64), *(part.unknown for part in found)]),
            np.stack(np.divmod(once, size)).T,
            Links.build(ground_rules, np.searchsorted(codes, met), int(offsets[-1])),
        )

    @property
    def _sizes(self) -> tuple[int, int]:
        """How many atoms and ground rules there are, at least one of each: pairs are divided by these."""
        return max(1, len(self.codes)), max(1, int(self.offsets[-1]))

    def followed(self, widths: Sequence[int], max_groundings: int) -> Pairs:
        """Pairs of a query and a ground rule that its own search finds, ascending; one width a step."""
        atoms, ground_rules = self._sizes
        asking = asked = np.arange(len(self.queries)) * atoms + self.queries
        found, counts = np.zeros(0, np.int64), np.zeros(len(self.found))
        for step, width in enumerate(widths):
            if step and not len(asking):
                break
            queries, at = np.divmod(asking, atoms)
            admitted = self.heads[self.unknown[self.heads[:, 1]] <= width]
            counts = counts + self._pairs_to_come(admitted, at)
            self._check_budget(counts, max_groundings)
            place, led_to = Links.build(admitted[:, 0], admitted[:, 1], atoms).follow(at)
            new = distinct_codes([queries[place] * ground_rules + led_to])
            found = distinct_codes([found, new])
            queries, through = np.divmod(new, ground_rules)
            place, met = self.bodies.follow(through)
            asking = codes_without(distinct_codes([queries[place] * atoms + met]), asked)
            asked = np.concatenate([asked, asking])
        return found

    def _pairs_to_come(self, admitted: np.ndarray, at: np.ndarray) -> np.ndarray:
        """How many pairs of each rule a step from these atoms makes, counted before they are made."""
        times = np.bincount(at, minlength=len(self.codes))[admitted[:, 0]]
        return np.bincount(self._rules(admitted[:, 1]), times, minlength=len(self.found))

    def _rules(self, ground_rules: np.ndarray) -> np.ndarray:
        """The index of each ground rule's rule."""
        return np.searchsorted(self.offsets, ground_rules, side="right") - 1

    def _check_budget(self, counts: np.ndarray, max_groundings: int) -> None:
        if counts.size:
            most = int(counts.argmax())
            check_budget(self.found[most].rule, int(counts[most]), max_groundings, exact=False)

    def neighbourhoods(self, pairs: Pairs, rounds: int | None) -> Neighbourhoods:
        """These pairs of a query and a ground rule; of each query only what its own prove in so many rounds."""
        queries, ground_rules = np.divmod(pairs, self._sizes[1])
        rules = self._rules(ground_rules)
        order = np.argsort(rules, kind="stable")
        ends = np.cumsum(np.bincount(rules, minlength=len(self.found)))
        split = [order[end - count : end] for end, count in zip(ends, np.diff(ends, prepend=0), strict=True)]
        members = [
            (queries[own], ground_rules[own] - offset) for own, offset in zip(split, self.offsets[:-1], strict=True)
        ]
        if rounds is not None:
            kept = self._proved(members, rounds)
            members = [(own[keep], rows[keep]) for (own, rows), keep in zip(members, kept, strict=True)]
        return self._gathered(members)

    def _proved(self, members: list[tuple[np.ndarray, np.ndarray]], rounds: int) -> list[np.ndarray]:
        """Which pairs stay: to each query an atom is its own, so that no query proves what another asks."""
        own = [
            queries[:, None] * self._sizes[0] + np.searchsorted(self.codes, part.atoms)[rows]
            for part, (queries, rows) in zip(self.found, members, strict=True)
        ]
        distinct = distinct_codes(own)
        known = [part.known[rows] for part, (_, rows) in zip(self.found, members, strict=True)]
        return proved([part.rule for part in self.found], [np.searchsorted(distinct, o) for o in own], known, rounds)

    def _gathered(self, members: list[tuple[np.ndarray, np.ndarray]]) -> Neighbourhoods:
        """The ground rules that some query keeps, each once, and who keeps them."""
        ground_rules, pairs = [], []
        for part, (queries, rows) in zip(self.found, members, strict=True):
            used = distinct_codes([rows])
            ground_rules.append(GroundRules(part.rule, part.atoms[used], part.estimate, part.seconds))
            pairs.append(np.stack([queries, np.searchsorted(used, rows)]).T)
        return Neighbourhoods(Grounding(tuple(ground_rules)), tuple(pairs))
