"""Incremental forward pass: what changes in a graph if some atoms or rules change."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from r2n.grounding.ground_rules import codes_without, distinct_codes
from r2n.network.factor_graph import FactorGraph
from r2n.network.graph_sources import KHopSubgraphs

Pairs = Int64[np.ndarray, "_ 2"]
"""A change (by number), and a ground rule (by number) or a row."""
Keys = Int64[np.ndarray, " _"]
"""Such pairs as one number each, sorted: the change times how many others there are, plus the other."""


@dataclass(frozen=True, eq=False)
class Step:
    """What one layer computes anew: the atoms that are otherwise, first among the rows of its `graph`.

    `outputs` are these atoms, as keys of change and row. Row i of the graph reads what the layer before computed anew
    for its `altered[i]`-th output, or where that is -1, what it has in the graph as it is, at row `as_is[i]`. Each
    output receives `messages` in its changed graph. By difference, the graph holds only the messages that are
    otherwise; the rows behind the outputs are the same atoms, which receive these messages as they were.
    """

    graph: FactorGraph
    outputs: Keys
    as_is: Int64[Tensor, " atoms"]
    altered: Int64[Tensor, " atoms"]
    messages: Int64[Tensor, " outputs"]


@dataclass(frozen=True, eq=False)
class IncrementalForward:
    """A graph, the rows that are asked in it, and for how many layers."""

    graph: FactorGraph
    asked: Int64[np.ndarray, " asked"]
    layers: int

    @cached_property
    def around(self) -> KHopSubgraphs:
        """The ways between its atoms and ground rules."""
        return KHopSubgraphs(self.graph)

    @cached_property
    def steps_away(self) -> Int64[np.ndarray, " atoms"]:
        """How many steps each atom is away from the nearest that is asked; `layers` + 1 where it cannot be felt."""
        found = np.full(len(self.graph.atoms), self.layers + 1, np.int64)
        rows = distinct_codes([self.asked])
        found[rows] = 0
        for step in range(1, self.layers + 1):
            met = distinct_codes([self.around.incident_rules(rows)[1]])
            rows = distinct_codes([self.around.atoms_of(met)[1]])
            rows = rows[found[rows] > step]
            found[rows] = step
        return found

    @cached_property
    def _received(self) -> Int64[np.ndarray, " atoms"]:
        """How many messages each atom receives."""
        rows = [part.flatten().numpy() for part in self.graph.neighbours]
        return np.bincount(np.concatenate([np.zeros(0, np.int64), *rows]), minlength=len(self.graph.atoms))

    @cached_property
    def _nearest(self) -> Int64[np.ndarray, " ground_rules"]:
        """How many steps the nearest atom of each ground rule is away."""
        parts = [self.steps_away[part.numpy()].min(1) for part in self.graph.neighbours if part.shape[1]]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def steps(self, left_out: Pairs, altered: Pairs, *, by_difference: bool) -> Iterator[Step]:
        """What each layer computes anew for changes that leave out ground rules, and alter what is read of atoms."""
        atoms, ground_rules = max(1, len(self.graph.atoms)), max(1, len(self.graph))
        gone = distinct_codes([left_out[:, 0] * ground_rules + left_out[:, 1]])
        changed = distinct_codes([altered[:, 0] * atoms + altered[:, 1]])
        past = 1 + max(int(part[:, 0].max(initial=0)) for part in (left_out, altered))  # above all changes: as it was
        for layer in range(1, self.layers + 1):
            near = self.layers - layer
            carrying = self._within(codes_without(self._standing(changed), gone), near)
            lost = self._within(gone, near)
            felt = distinct_codes([changed, *(self._members(part)[1] for part in (carrying, lost))])
            outputs = felt[self.steps_away[felt % atoms] <= near]
            messages = self._messages(outputs, lost)
            if by_difference:
                telling = np.concatenate([carrying, np.union1d(carrying, lost) + past * ground_rules])
                yield self._step(outputs, changed, telling, messages, again=past * atoms)
            else:
                yield self._step(outputs, changed, codes_without(self._standing(outputs), gone), messages)
            changed = outputs

    def _within(self, ground_rules: Keys, near: int) -> Keys:
        """Those with an atom within so many steps of one that is asked."""
        return ground_rules[self._nearest[ground_rules % max(1, len(self.graph))] <= near]

    def _messages(self, outputs: Keys, lost: Keys) -> Int64[np.ndarray, " outputs"]:
        """How many messages each output receives."""
        places = _places(outputs, self._members(lost)[0])
        fewer = np.bincount(places[places >= 0], minlength=len(outputs))
        return self._received[outputs % max(1, len(self.graph.atoms))] - fewer

    def _standing(self, atoms: Keys) -> Keys:
        """The ground rules that atoms stand in, each in its own change."""
        changes, rows = np.divmod(atoms, max(1, len(self.graph.atoms)))
        places, numbers = self.around.incident_rules(rows)
        return distinct_codes([changes[places] * max(1, len(self.graph)) + numbers])

    def _members(self, ground_rules: Keys) -> tuple[np.ndarray, Keys]:
        """The atoms of ground rules, each in its own change: one for each position, and each once."""
        changes, numbers = np.divmod(ground_rules, max(1, len(self.graph)))
        places, rows = self.around.atoms_of(numbers)
        found = changes[places] * max(1, len(self.graph.atoms)) + rows
        return found, distinct_codes([found])

    def _step(
        self, outputs: Keys, changed: Keys, telling: Keys, messages: np.ndarray, *, again: int | None = None
    ) -> Step:
        """The graph of the ground rules that tell the outputs something; with `again`, also the outputs' later keys."""
        atoms = max(1, len(self.graph.atoms))
        first = outputs if again is None else np.concatenate([outputs, outputs + again])
        parts = self._by_rule(telling)
        met = codes_without(distinct_codes(parts), first)
        is_altered = np.isin(met, changed, assume_unique=True)
        shared = distinct_codes([met[~is_altered] % atoms])  # as it is in every change: there once for all
        own = np.concatenate([first, met[is_altered]])
        order = np.argsort(own)
        neighbours = tuple(torch.from_numpy(self._local(part, own, order, shared)) for part in parts)
        as_is = torch.from_numpy(np.concatenate([own % atoms, shared]))
        graph = FactorGraph(self.graph.atoms[as_is], neighbours, self.graph.rules, (None,) * len(neighbours), 0)
        altered = np.full(len(as_is), -1, np.int64)
        altered[: len(own)] = _places(changed, own)
        return Step(graph, outputs, as_is, torch.from_numpy(altered), torch.from_numpy(messages))

    def _by_rule(self, ground_rules: Keys) -> list[np.ndarray]:
        """The atoms of ground rules, as keys, rule by rule: (ground_rules, positions)."""
        changes, numbers = np.divmod(ground_rules, max(1, len(self.graph)))
        rules, first = self.around.rules_of(numbers), self.around.first
        found = []
        for j, rows in enumerate(self.graph.neighbours):
            which = np.flatnonzero(rules == j)
            keys = rows.numpy()[numbers[which] - first[j]] + changes[which, None] * max(1, len(self.graph.atoms))
            found.append(keys)
        return found

    def _local(self, keys: np.ndarray, own: Keys, order: np.ndarray, shared: np.ndarray) -> np.ndarray:
        """The row of each atom in the graph of a step: first those of their own, then the shared ones."""
        places = _places(own[order], keys)
        rows = np.searchsorted(shared, keys % max(1, len(self.graph.atoms)))
        return np.where(places >= 0, order[places] if len(order) else places, len(own) + rows)


def _places(among: Keys, wanted: np.ndarray) -> np.ndarray:
    """The place of each key among sorted ones, -1 where it is none of them."""
    if not len(among):
        return np.full(wanted.shape, -1, np.int64)
    places = np.minimum(np.searchsorted(among, wanted), len(among) - 1)
    return np.where(among[places] == wanted, places, -1)
