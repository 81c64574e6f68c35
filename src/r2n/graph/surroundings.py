"""Ground rules -> tensors: the part of a large graph around a few atoms, at the cost of the part and not of the graph.

A reasoning layer takes an atom's news one step on, from the ground rules it stands in to all their atoms. So L layers
make of an atom what the ground rules within L steps make of it, and no other can be felt.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Int64

from r2n.graph.factor_graph import FactorGraph
from r2n.grounding.ground_rules import codes_without, distinct_codes
from r2n.grounding.links import Links, ranges
from r2n.knowledge.herbrand import Codes

Numbers = Int64[np.ndarray, " _"]
"""Of ground rules, rule after rule."""
Entries = Int64[np.ndarray, " _"]
"""Of positions of ground rules, ground rule after ground rule."""


@dataclass(frozen=True, eq=False)
class Surroundings:
    """A graph that answers all its atoms, with all that is needed to walk from its atoms to ground rules and back."""

    graph: FactorGraph

    def around(self, codes: Codes, *, steps: int | None = None, without: Codes | None = None) -> FactorGraph:
        """A graph that answers just these atoms (sorted, distinct), by the ground rules within so many steps of them.

        No steps: all that can be felt. Ground rules that have an atom of `without` in their body are left out. An atom
        that the graph does not hold is in no ground rule.
        """
        numbers = self._numbers(self._rows(codes), steps, self._resting_on(without))
        ends = np.searchsorted(numbers, self.first)
        neighbours = [
            rows[torch.from_numpy(numbers[ends[j] : ends[j + 1]] - self.first[j])]
            for j, rows in enumerate(self.graph.neighbours)
        ]
        return self._renumbered(codes, neighbours)

    def _renumbered(self, codes: Codes, neighbours: list[torch.Tensor]) -> FactorGraph:
        """The graph of these ground rules: the atoms asked for, and behind them those that they need."""
        rows = distinct_codes([part.numpy() for part in neighbours])
        held = self.graph.atoms.numpy()[rows]
        place = np.searchsorted(codes, held)
        is_asked = place < len(codes)
        is_asked[is_asked] = codes[place[is_asked]] == held[is_asked]
        new_row = torch.from_numpy(np.where(is_asked, place, len(codes) + np.cumsum(~is_asked) - 1))
        held_rows = torch.from_numpy(rows)
        graph, pairs = self.graph, zip(self.graph.shapes, self.graph.neighbours, neighbours, strict=True)
        return FactorGraph(
            torch.from_numpy(np.concatenate([codes, held[~is_asked]])),
            tuple(new_row[torch.searchsorted(held_rows, part)] for part in neighbours),
            graph.rules,
            tuple(shape if len(part) == len(whole) else None for shape, whole, part in pairs),
            len(codes),
        )

    def _numbers(self, rows: Int64[np.ndarray, " _"], steps: int | None, left_out: Numbers) -> Numbers:
        """The ground rules within so many steps of the rows, sorted."""
        felt, found, done = rows, np.zeros(0, np.int64), 0
        while len(rows) and (steps is None or done < steps):
            met = codes_without(distinct_codes([self._of(self._standing.follow(rows)[1])]), left_out)
            new = codes_without(met, found)
            found = np.concatenate([found, new])
            rows = codes_without(distinct_codes([self._atoms_of(new)]), felt)
            felt = np.concatenate([felt, rows])
            done += 1
        return np.sort(found)

    def _resting_on(self, codes: Codes | None) -> Numbers:
        """The ground rules with one of these atoms in their body."""
        if codes is None:
            return np.zeros(0, np.int64)
        _, numbers, rules, positions = self.standing_at(self._rows(codes))
        return distinct_codes([numbers[self._in_body[rules, positions]]])

    def standing(self, rows: Int64[np.ndarray, " _"]) -> tuple[Int64[np.ndarray, " _"], Numbers]:
        """For every ground rule (and position) that atoms stand in: the atom's place in `rows`, and its number."""
        places, entries = self._standing.follow(rows)
        return places, self._of(entries)

    def standing_at(self, rows: Int64[np.ndarray, " _"]) -> tuple[Int64[np.ndarray, " _"], Numbers, Entries, Entries]:
        """The same, with the rule (by number) and the position."""
        places, entries = self._standing.follow(rows)
        rules = self._rules_of(entries)
        return places, self._of(entries), rules, (entries - self._start[rules]) % self._positions[rules]

    def atoms_of(self, numbers: Numbers) -> tuple[Int64[np.ndarray, " _"], Int64[np.ndarray, " _"]]:
        """For every atom of ground rules: the place of the ground rule among `numbers`, and the atom's row."""
        positions = self._positions[self.rules_of(numbers)]
        return np.repeat(np.arange(len(numbers)), positions), self._atoms_of(numbers)

    def rules_of(self, numbers: Numbers) -> Int64[np.ndarray, " _"]:
        """The rule (by number) of each ground rule."""
        return np.searchsorted(self.first, numbers, side="right") - 1

    def _rows(self, codes: Codes) -> Int64[np.ndarray, " _"]:
        """The rows of those atoms that the graph holds."""
        wanted = torch.from_numpy(np.asarray(codes, np.int64))
        return self.graph.rows(wanted[self.graph.contains(wanted)]).numpy()

    def _of(self, entries: Entries) -> Numbers:
        """The ground rule of each entry."""
        rules = self._rules_of(entries)
        return self.first[rules] + (entries - self._start[rules]) // self._positions[rules]

    def _rules_of(self, entries: Entries) -> Int64[np.ndarray, " _"]:
        return np.searchsorted(self._start, entries, side="right") - 1

    def _atoms_of(self, numbers: Numbers) -> Int64[np.ndarray, " _"]:
        """The rows of all atoms of ground rules."""
        rules = self.rules_of(numbers)
        positions = self._positions[rules]
        return self._flat[ranges(self._start[rules] + (numbers - self.first[rules]) * positions, positions)]

    @cached_property
    def _positions(self) -> Int64[np.ndarray, " rules"]:
        return np.array([part.shape[1] for part in self.graph.neighbours], np.int64)

    @cached_property
    def first(self) -> Numbers:
        """The number of each rule's first ground rule, and of all."""
        return np.cumsum([0, *map(len, self.graph.neighbours)])

    @cached_property
    def _start(self) -> Entries:
        """The number of each rule's first entry, and of all."""
        return np.cumsum([0, *(part.numel() for part in self.graph.neighbours)])

    @cached_property
    def _flat(self) -> Int64[np.ndarray, " entries"]:
        """The row of each entry's atom."""
        return torch.cat([torch.zeros(0, dtype=torch.int64), *(p.flatten() for p in self.graph.neighbours)]).numpy()

    @cached_property
    def _standing(self) -> Links:
        """From each atom to its entries."""
        return Links.build(self._flat, np.arange(len(self._flat)), len(self.graph.atoms))

    @cached_property
    def _in_body(self) -> np.ndarray:
        """Whether each position of each rule is one of its body; (rules, most positions)."""
        found = np.zeros((len(self.graph.rules), max(self._positions, default=0)), bool)
        for j, rule in enumerate(self.graph.rules):
            found[j, [literal.position for literal in rule.body]] = True
        return found
