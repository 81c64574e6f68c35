"""Incremental forward pass: what changes in a graph if some atoms or rules change."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from r2n.data.herbrand import index_among
from r2n.grounding.ground_rules import codes_without, distinct_codes
from r2n.network.factor_graph import FactorGraph
from r2n.network.graph_sources import KHopSubgraphs

Pairs = Int64[np.ndarray, "_ 2"]
"""A change (by number), and a ground rule (by number) or a row."""
Keys = Int64[np.ndarray, " _"]
"""Such pairs as one number each, sorted: the change times the number of ground rules or rows, plus the second."""


@dataclass(frozen=True, eq=False)
class Step:
    """What one layer recomputes: the atoms that change, first among the rows of its `graph`.

    `outputs` are these atoms, as keys of change and row. Row i of the graph reads the `altered[i]`-th output of the
    layer before, or if that is -1, the embedding in the unchanged graph at row `as_is[i]`. Each output receives
    `messages` in its changed graph. By difference, the graph holds only the messages that change; the rows behind the
    outputs are the same atoms, which receive these messages as they were.
    """

    graph: FactorGraph
    outputs: Keys
    as_is: Int64[Tensor, " atoms"]
    altered: Int64[Tensor, " atoms"]
    messages: Int64[Tensor, " outputs"]


@dataclass(frozen=True, eq=False)
class IncrementalForward:
    """A graph, the rows of the queries in it, and the number of layers."""

    graph: FactorGraph
    asked: Int64[np.ndarray, " asked"]
    layers: int

    @cached_property
    def around(self) -> KHopSubgraphs:
        """The index between its atoms and ground rules."""
        return KHopSubgraphs(self.graph)

    @cached_property
    def steps_away(self) -> Int64[np.ndarray, " atoms"]:
        """How many steps each atom is away from the nearest query; `layers` + 1 if it is out of reach."""
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
        """What each layer recomputes for changes that leave out ground rules, and alter the inputs of atoms."""
        atoms, ground_rules = max(1, len(self.graph.atoms)), max(1, len(self.graph))
        gone = distinct_codes([left_out[:, 0] * ground_rules + left_out[:, 1]])
        changed = distinct_codes([altered[:, 0] * atoms + altered[:, 1]])
        past = 1 + max(int(part[:, 0].max(initial=0)) for part in (left_out, altered))  # above all changes: as it was
        for layer in range(1, self.layers + 1):
            near = self.layers - layer
            carrying, lost = (
                part[self._nearest[part % ground_rules] <= near]
                for part in (codes_without(self._incident(changed), gone), gone)
            )
            of_lost = self._members(lost)
            reached = distinct_codes([changed, self._members(carrying), of_lost])
            outputs = reached[self.steps_away[reached % atoms] <= near]
            fewer = index_among(of_lost, outputs)
            messages = self._received[outputs % atoms] - np.bincount(fewer[fewer >= 0], minlength=len(outputs))
            if by_difference:
                sending = np.concatenate([carrying, np.union1d(carrying, lost) + past * ground_rules])
                yield self._step(outputs, changed, sending, messages, before=past * atoms)
            else:
                yield self._step(outputs, changed, codes_without(self._incident(outputs), gone), messages)
            changed = outputs

    def _incident(self, atoms: Keys) -> Keys:
        """The ground rules that atoms stand in, each in its own change."""
        changes, rows = np.divmod(atoms, max(1, len(self.graph.atoms)))
        index, numbers = self.around.incident_rules(rows)
        return distinct_codes([changes[index] * max(1, len(self.graph)) + numbers])

    def _members(self, ground_rules: Keys) -> np.ndarray:
        """The atoms of ground rules, each in its own change, one for each position."""
        changes, numbers = np.divmod(ground_rules, max(1, len(self.graph)))
        index, rows = self.around.atoms_of(numbers)
        return changes[index] * max(1, len(self.graph.atoms)) + rows

    def _step(
        self, outputs: Keys, changed: Keys, sending: Keys, messages: np.ndarray, *, before: int | None = None
    ) -> Step:
        """The graph of the ground rules that send to the outputs; with `before`, also to the outputs as they were."""
        atoms = max(1, len(self.graph.atoms))
        first = outputs if before is None else np.concatenate([outputs, outputs + before])
        changes, numbers = np.divmod(sending, max(1, len(self.graph)))
        rules, parts = self.around.rules_of(numbers), []
        for j, rows in enumerate(self.graph.neighbours):  # the atoms of each rule's ground rules, as keys
            which = np.flatnonzero(rules == j)
            parts.append(rows.numpy()[numbers[which] - self.around.first[j]] + changes[which, None] * atoms)
        met = codes_without(distinct_codes(parts), first)
        is_altered = np.isin(met, changed, assume_unique=True)
        shared = distinct_codes([met[~is_altered] % atoms])  # unchanged atoms: there once for all changes
        own = np.concatenate([first, met[is_altered]])
        order, neighbours = np.argsort(own), []
        for keys in parts:
            index, rows = index_among(keys, own[order]), np.searchsorted(shared, keys % atoms)
            rows = np.where(index >= 0, order[index] if len(order) else index, len(own) + rows)
            neighbours.append(torch.from_numpy(rows))
        as_is = torch.from_numpy(np.concatenate([own % atoms, shared]))
        graph = FactorGraph(self.graph.atoms[as_is], tuple(neighbours), self.graph.rules, (None,) * len(neighbours), 0)
        altered = np.full(len(as_is), -1, np.int64)
        altered[: len(own)] = index_among(own, changed)
        return Step(graph, outputs, as_is, torch.from_numpy(altered), torch.from_numpy(messages))
