"""Ground rules -> tensors: how the atoms and the ground rules of a graph meet, laid out once for fast message passing.

Work that is the same for every ground rule that an atom stands in is done once per *atom and position*. So each
position i of a rule has a table of the distinct atoms that fill it, and two ways lead between the tables and the
ground rules: by index (`Indexed`), or, where every substitution is there, by broadcasting over the variables'
domains (`Box`), with no index per ground rule at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from r2n.graph.factor_graph import FactorGraph
from r2n.graph.segments import by_segment, gather_sum, segment_sum
from r2n.logic.formula import Variable
from r2n.logic.theory import Rule

Table = Float[Tensor, "_ dim"]


@runtime_checkable
class Meeting(Protocol):
    """The ways between the atoms at each position of a rule and its ground rules."""

    def sum_at_rules(self, tables: Sequence[Table]) -> Float[Tensor, "ground_rules dim"]:
        """For each ground rule, the sum over positions of its atoms' rows in the tables."""
        ...

    def at_rules(self, tables: Sequence[Table]) -> Float[Tensor, "ground_rules positions dim"]:
        """For each ground rule and position, its atom's row in the position's table."""
        ...

    def sum_at_atoms(self, messages: Float[Tensor, "ground_rules positions dim"]) -> list[Table]:
        """For each position and each atom in its table, the sum of the messages that go there."""
        ...

    def targets(self) -> list[Int64[Tensor, " ground_rules"]]:
        """For each position, the place in its table that each ground rule's message goes to."""
        ...


@dataclass(frozen=True, eq=False)
class Indexed:
    """Ways by index: `slots[g, i]` is the place of ne(g, i) in the tables laid end to end."""

    slots: Int64[Tensor, "ground_rules positions"]
    sizes: tuple[int, ...]
    order: Int64[Tensor, " n"]
    offsets: Int64[Tensor, " slots"]
    rules_by_slot: Int64[Tensor, " n"]

    @classmethod
    def build(cls, local: Sequence[Tensor], sizes: tuple[int, ...]) -> "Indexed":
        """From each position's places in its own table."""
        starts = [sum(sizes[:i]) for i in range(len(sizes))]
        slots = torch.stack([place + start for place, start in zip(local, starts, strict=True)], dim=1)
        order, offsets = by_segment(slots.flatten(), sum(sizes))
        return cls(slots, sizes, order, offsets, order // len(sizes))

    def sum_at_rules(self, tables: Sequence[Table]) -> Float[Tensor, "ground_rules dim"]:
        """One pass over the incidence."""
        return gather_sum(torch.cat(list(tables)), self.slots, self.rules_by_slot, self.offsets)

    def at_rules(self, tables: Sequence[Table]) -> Float[Tensor, "ground_rules positions dim"]:
        """One gather."""
        return torch.cat(list(tables)).index_select(0, self.slots.flatten()).unflatten(0, self.slots.shape)

    def sum_at_atoms(self, messages: Float[Tensor, "ground_rules positions dim"]) -> list[Table]:
        """One pass over the incidence."""
        rows = messages.flatten(0, 1)
        sums = segment_sum(rows, self.order, self.offsets, self.slots.flatten())
        return list(sums.split(self.sizes))

    def targets(self) -> list[Int64[Tensor, " ground_rules"]]:
        """The slots, counted from the start of each table."""
        starts = [sum(self.sizes[:i]) for i in range(len(self.sizes))]
        return [self.slots[:, i] - start for i, start in enumerate(starts)]


@dataclass(frozen=True, eq=False)
class Box:
    """Ways by broadcasting: ground rules are the points of a box, atoms the points of some of its axes."""

    shape: tuple[int, ...]
    axes: tuple[tuple[int, ...], ...]

    def _spread(self, table: Tensor, axes: tuple[int, ...]) -> Tensor:
        """A position's table as a tensor over the whole box, of size 1 along the other axes."""
        sizes = [size if axis in axes else 1 for axis, size in enumerate(self.shape)]
        return table.reshape(*sizes, table.shape[-1])

    def sum_at_rules(self, tables: Sequence[Table]) -> Float[Tensor, "ground_rules dim"]:
        """Broadcast addition, the tables with the fewest axes first."""
        spread = [self._spread(table, axes) for table, axes in zip(tables, self.axes, strict=True)]
        total = spread[0]
        for table in spread[1:]:
            total = total + table
        return total.expand(*self.shape, total.shape[-1]).reshape(prod(self.shape), total.shape[-1])

    def at_rules(self, tables: Sequence[Table]) -> Float[Tensor, "ground_rules positions dim"]:
        """Each table broadcast over the box."""
        spread = [self._spread(table, axes) for table, axes in zip(tables, self.axes, strict=True)]
        full = [table.expand(*self.shape, table.shape[-1]) for table in spread]
        return torch.stack(full, dim=-2).reshape(prod(self.shape), len(tables), -1)

    def sum_at_atoms(self, messages: Float[Tensor, "ground_rules positions dim"]) -> list[Table]:
        """Sums over the axes that a position's atom does not have."""
        sums = []
        for i, axes in enumerate(self.axes):
            message = messages[:, i].reshape(*self.shape, messages.shape[-1])
            others = tuple(axis for axis in range(len(self.shape)) if axis not in axes)
            summed = message.sum(others) if others else message
            sums.append(summed.reshape(-1, messages.shape[-1]))
        return sums

    def targets(self) -> list[Int64[Tensor, " ground_rules"]]:
        """Places of the atoms over the box."""
        places = []
        for axes in self.axes:
            own = tuple(self.shape[axis] for axis in axes)
            table = torch.arange(prod(own)).unsqueeze(-1)
            places.append(self._spread(table, axes).squeeze(-1).expand(self.shape).reshape(-1))
        return places


@dataclass(frozen=True, eq=False)
class RuleIncidence:
    """One rule: `tables[i]`, the rows in the graph of the distinct atoms at position i, and the ways.

    `counts[i]` tells how many ground rules each atom of the table fills position i of.
    """

    tables: tuple[Int64[Tensor, " _"], ...]
    counts: tuple[Int64[Tensor, " _"], ...]
    meeting: Meeting
    ground_rules: int


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
        """Lay out a graph; `dense=False` takes the indexed ways also where a box would do."""
        atoms = len(graph.atoms)
        parts = zip(graph.rules, graph.neighbours, graph.shapes, strict=True)
        rules = tuple(_rule_incidence(rule, rows, shape if dense else None) for rule, rows, shape in parts)
        rows = torch.cat([torch.zeros(0, dtype=torch.int64), *(table for rule in rules for table in rule.tables)])
        order, offsets = by_segment(rows, atoms)
        by_rule = tuple(torch.bincount(part.flatten(), minlength=atoms) for part in graph.neighbours)
        total = sum(by_rule, torch.zeros(atoms, dtype=torch.int64))
        return cls(rules, rows, order, offsets, total, by_rule)

    def sum_at_atoms(self, tables: list[Table]) -> Float[Tensor, "atoms dim"]:
        """The sum for each atom over all tables of all rules (in their order) that hold it."""
        return segment_sum(torch.cat(tables), self.order, self.offsets, self.rows)


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
