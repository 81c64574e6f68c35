"""Ground rules -> tensors: how the atoms and the ground rules of a graph meet, laid out once for fast message passing.

Work that is the same for every ground rule that an atom stands in is done once per *atom and position*: each position
of a rule has a table of the distinct atoms that fill it. All tables of a rule are its slots. Rules with as many atoms
each can be laid out as one, for a network that they share.
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
class Owners:
    """Rules (by number) that are laid out as one: whose each slot is, and each ground rule; these come rule by rule.

    `sizes` are the numbers of their ground rules.
    """

    rules: tuple[int, ...]
    sizes: tuple[int, ...]
    of_slots: Int64[Tensor, " slots"]
    of_ground_rules: Int64[Tensor, " ground_rules"]

    def to(self, device: torch.device) -> "Owners":
        """The same on another device."""
        return Owners(self.rules, self.sizes, self.of_slots.to(device), self.of_ground_rules.to(device))


@dataclass(frozen=True, eq=False)
class RuleIncidence:
    """One rule: `tables[i]`, the rows in the graph of the distinct atoms at position i, and the ways.

    `counts[i]` tells how many ground rules each atom of the table fills position i of, `received[i]` how many messages
    it receives of the rule, at all positions. With `owners` it is several rules, each with a part of every table.
    """

    tables: tuple[Int64[Tensor, " _"], ...]
    counts: tuple[Int64[Tensor, " _"], ...]
    received: tuple[Int64[Tensor, " _"], ...]
    ways: Ways
    ground_rules: int
    owners: Owners | None = None

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
            received=tuple(count.to(device) for count in self.received),
            ways=self.ways.to(device),
            owners=None if self.owners is None else self.owners.to(device),
        )


@dataclass(frozen=True, eq=False)
class Incidence:
    """A graph, laid out for message passing.

    `rows` joins all tables of all rules; `order` and `offsets` sort them by atom, so that what arrives at the
    tables is summed to the atoms in one pass. `messages[a]` counts the messages that atom a receives.
    """

    rules: tuple[RuleIncidence, ...]
    rows: Int64[Tensor, " n"]
    order: Int64[Tensor, " n"]
    offsets: Int64[Tensor, " atoms"]
    messages: Int64[Tensor, " atoms"]

    @classmethod
    def of(cls, graph: FactorGraph, *, dense: bool = True, grouped: bool = False) -> "Incidence":
        """Lay out a graph, on the CPU; `dense=False` takes the indexed ways also where a box would do.

        `grouped` lays out the rules of n atoms as one, for each n in order, and by index.
        """
        graph, atoms = graph.to(CPU), len(graph.atoms)
        if grouped:
            sizes = sorted({part.shape[1] for part in graph.neighbours})
            rules = tuple(_group_incidence(graph, size) for size in sizes)
        else:
            parts = zip(graph.rules, graph.neighbours, graph.shapes, strict=True)
            rules = tuple(_rule_incidence(rule, rows, shape if dense else None, atoms) for rule, rows, shape in parts)
        rows = torch.cat([torch.zeros(0, dtype=torch.int64), *(table for rule in rules for table in rule.tables)])
        order, offsets = by_segment(rows, atoms)
        messages = torch.zeros(atoms, dtype=torch.int64)
        for part in graph.neighbours:
            messages += torch.bincount(part.flatten(), minlength=atoms)
        return cls(rules, rows, order, offsets, messages)

    def to(self, device: torch.device) -> "Incidence":
        """The same on another device."""
        return Incidence(
            tuple(rule.to(device) for rule in self.rules),
            self.rows.to(device),
            self.order.to(device),
            self.offsets.to(device),
            self.messages.to(device),
        )

    def at_slots(self, atoms: Float[Tensor, "atoms dim"]) -> tuple[Float[Tensor, "_ dim"], ...]:
        """For each rule, the rows of the atoms that fill its slots."""
        slots = gather_sum(atoms, self.rows.unsqueeze(1), self.order, self.offsets)
        return slots.split([sum(rule.sizes) for rule in self.rules])

    def sum_at_atoms(self, slots: Sequence[Float[Tensor, "_ dim"]]) -> Float[Tensor, "atoms dim"]:
        """The sum for each atom over all slots of all rules (in their order) that it fills."""
        return segment_sum(torch.cat(list(slots)), self.order, self.offsets, self.rows)


def _rule_incidence(rule: Rule, rows: Tensor, shape: tuple[int, ...] | None, atoms: int) -> RuleIncidence:
    messages = torch.bincount(rows.flatten(), minlength=atoms)
    if shape is not None and len(rows):
        return _boxed(rule, rows, shape, messages)
    found = [torch.unique(rows[:, i], return_inverse=True, return_counts=True) for i in range(rows.shape[1])]
    tables, local, counts = zip(*found, strict=True)
    ways = Indexed.build(local, tuple(map(len, tables)))
    return RuleIncidence(tables, counts, tuple(messages[table] for table in tables), ways, len(rows))


def _boxed(rule: Rule, rows: Tensor, shape: tuple[int, ...], messages: Int64[Tensor, " atoms"]) -> RuleIncidence:
    axes = tuple(
        tuple(sorted({rule.variables.index(term.name) for term in atom.terms if isinstance(term, Variable)}))
        for atom in rule.atoms
    )
    tables, counts = [], []
    for i, own in enumerate(axes):
        first = tuple(slice(None) if axis in own else 0 for axis in range(len(shape)))
        tables.append(rows[:, i].reshape(shape)[first].reshape(-1))
        counts.append(torch.full((len(tables[-1]),), len(rows) // len(tables[-1])))
    received = tuple(messages[table] for table in tables)
    return RuleIncidence(tuple(tables), tuple(counts), received, Box(shape, axes), len(rows))


def _group_incidence(graph: FactorGraph, size: int) -> RuleIncidence:
    """All rules of `size` atoms: an atom at a position is a slot once for each rule that has it there."""
    rules = tuple(j for j, part in enumerate(graph.neighbours) if part.shape[1] == size)
    parts, atoms = [graph.neighbours[j] for j in rules], max(1, len(graph.atoms))
    sizes = tuple(map(len, parts))
    owner = torch.repeat_interleave(torch.tensor(rules), torch.tensor(sizes))
    keys = owner.unsqueeze(1) * atoms + torch.cat(parts)
    found = [torch.unique(keys[:, i], return_inverse=True, return_counts=True) for i in range(size)]
    slots, local, counts = zip(*found, strict=True)
    pairs, messages = torch.unique(keys, return_counts=True)
    return RuleIncidence(
        tuple(part % atoms for part in slots),
        counts,
        tuple(messages[torch.searchsorted(pairs, part)] for part in slots),
        Indexed.build(local, tuple(map(len, slots))),
        len(owner),
        Owners(rules, sizes, torch.cat(slots) // atoms, owner),
    )
