"""Ground rules -> tensors: how the atoms and the ground rules of a graph meet, laid out once for fast message passing.

Work that is the same for every ground rule that an atom stands in is done once per *atom and position*: each position
of a rule has a table of the distinct atoms that fill it. All tables of a rule are its slots.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from r2n.graph.factor_graph import FactorGraph
from r2n.graph.segments import by_segment, gather_sum, segment_sum
from r2n.graph.slots import CPU, Box, Indexed, Ways
from r2n.logic.formula import Variable
from r2n.logic.theory import Rule


@dataclass(frozen=True, eq=False)
class RuleIncidence:
    """One rule: `tables[i]`, the rows in the graph of the distinct atoms at position i, and the ways.

    `counts[i]` tells how many ground rules each atom of the table fills position i of.
    """

    tables: tuple[Int64[Tensor, " _"], ...]
    counts: tuple[Int64[Tensor, " _"], ...]
    ways: Ways
    ground_rules: int

    @property
    def sizes(self) -> list[int]:
        """The number of atoms in each table."""
        return [len(table) for table in self.tables]

    def to(self, device: torch.device) -> "RuleIncidence":
        """The same on another device."""
        return replace(
            self,
            tables=tuple(table.to(device) for table in self.tables),
            counts=tuple(count.to(device) for count in self.counts),
            ways=self.ways.to(device),
        )


@dataclass(frozen=True, eq=False)
class Incidence:
    """A graph, laid out for message passing.

    `rows` joins all tables of all rules; `order` and `offsets` sort them by atom, so that what arrives at the
    tables is summed to the atoms in one pass. `messages[a]` counts the messages that atom a receives, and
    `messages_by_rule[j][a]` those from rule j.
    """

    rules: tuple[RuleIncidence, ...]
    rows: Int64[Tensor, " n"]
    order: Int64[Tensor, " n"]
    offsets: Int64[Tensor, " atoms"]
    messages: Int64[Tensor, " atoms"]
    messages_by_rule: tuple[Int64[Tensor, " atoms"], ...]

    @classmethod
    def of(cls, graph: FactorGraph, *, dense: bool = True) -> "Incidence":
        """Lay out a graph, on the CPU; `dense=False` takes the indexed ways also where a box would do."""
        graph, atoms = graph.to(CPU), len(graph.atoms)
        parts = zip(graph.rules, graph.neighbours, graph.shapes, strict=True)
        rules = tuple(_rule_incidence(rule, rows, shape if dense else None) for rule, rows, shape in parts)
        rows = torch.cat([torch.zeros(0, dtype=torch.int64), *(table for rule in rules for table in rule.tables)])
        order, offsets = by_segment(rows, atoms)
        by_rule = tuple(torch.bincount(part.flatten(), minlength=atoms) for part in graph.neighbours)
        total = sum(by_rule, torch.zeros(atoms, dtype=torch.int64))
        return cls(rules, rows, order, offsets, total, by_rule)

    def to(self, device: torch.device) -> "Incidence":
        """The same on another device."""
        return Incidence(
            tuple(rule.to(device) for rule in self.rules),
            self.rows.to(device),
            self.order.to(device),
            self.offsets.to(device),
            self.messages.to(device),
            tuple(received.to(device) for received in self.messages_by_rule),
        )

    def at_slots(self, atoms: Float[Tensor, "atoms dim"]) -> tuple[Float[Tensor, "_ dim"], ...]:
        """For each rule, the rows of the atoms that fill its slots."""
        slots = gather_sum(atoms, self.rows.unsqueeze(1), self.order, self.offsets)
        return slots.split([sum(rule.sizes) for rule in self.rules])

    def sum_at_atoms(self, slots: Sequence[Float[Tensor, "_ dim"]]) -> Float[Tensor, "atoms dim"]:
        """The sum for each atom over all slots of all rules (in their order) that it fills."""
        return segment_sum(torch.cat(list(slots)), self.order, self.offsets, self.rows)


def _rule_incidence(rule: Rule, rows: Tensor, shape: tuple[int, ...] | None) -> RuleIncidence:
    if shape is not None and len(rows):
        return _boxed(rule, rows, shape)
    found = [torch.unique(rows[:, i], return_inverse=True, return_counts=True) for i in range(rows.shape[1])]
    tables, local, counts = zip(*found, strict=True)
    return RuleIncidence(tables, counts, Indexed.build(local, tuple(map(len, tables))), len(rows))


def _boxed(rule: Rule, rows: Tensor, shape: tuple[int, ...]) -> RuleIncidence:
    axes = tuple(
        tuple(sorted({rule.variables.index(term.name) for term in atom.terms if isinstance(term, Variable)}))
        for atom in rule.atoms
    )
    tables, counts = [], []
    for i, own in enumerate(axes):
        first = tuple(slice(None) if axis in own else 0 for axis in range(len(shape)))
        tables.append(rows[:, i].reshape(shape)[first].reshape(-1))
        counts.append(torch.full((len(tables[-1]),), len(rows) // len(tables[-1])))
    return RuleIncidence(tuple(tables), tuple(counts), Box(shape, axes), len(rows))
