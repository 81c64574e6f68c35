"""Gather and scatter indices of message passing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import torch
from jaxtyping import Float, Int64, Shaped
from torch import Tensor
from torch.nn.functional import embedding_bag

from r2n.logic.formula import Variable
from r2n.logic.theory import Rule
from r2n.network.factor_graph import FactorGraph
from r2n.network.tensors import CPU, Tensors, sparse_product


def by_segment(segment: Int64[Tensor, " n"], count: int) -> tuple[Int64[Tensor, " n"], Int64[Tensor, " segments"]]:
    """The order that sorts n rows by their segment, and where each of `count` segments begins in it."""
    order = torch.argsort(segment, stable=True)
    sizes = torch.bincount(segment, minlength=count)
    return order, torch.cumsum(sizes, 0) - sizes


PART = 50_000  # messages in one part
MOST_AXES = 60  # of a box; torch's tensors have at most 64

Slots = Float[Tensor, "slots dim"]
Messages = Float[Tensor, "ground_rules positions dim"]


@dataclass(frozen=True, eq=False)
class Indexed(Tensors):
    """Gathers and scatters by index: `index[g, i]` is the slot of ne(g, i); `sizes` are those of the tables.

    The index stays on the CPU. What a pass needs of it is made there when first needed, and moved to the `device`.
    """

    index: Int64[Tensor, "ground_rules positions"]
    sizes: tuple[int, ...]
    device: torch.device = CPU

    @classmethod
    def build(cls, local: Sequence[Tensor], sizes: tuple[int, ...]) -> "Indexed":
        """From each position's rows in its own table."""
        return cls(torch.stack([rows + sum(sizes[:i]) for i, rows in enumerate(local)], dim=1), sizes)

    @cached_property
    def rows(self) -> Int64[Tensor, "ground_rules positions"]:
        """The index, where the tensors are."""
        return self.index.to(self.device)

    @cached_property
    def _by_slot(self) -> tuple[Tensor, Tensor]:
        """The order that sorts the messages by slot, and where each slot begins in it."""
        order, offsets = by_segment(self.index.flatten(), sum(self.sizes))
        return order.to(self.device), offsets.to(self.device)

    @cached_property
    def _by_filled_slot(self) -> tuple[Tensor, Tensor, Tensor]:
        """The slots that any message goes to, the messages in their order, and where each begins."""
        filled, segment = torch.unique(self.index.flatten(), return_inverse=True)
        order, offsets = by_segment(segment, len(filled))
        return filled.to(self.device), order.to(self.device), offsets.to(self.device)

    @cached_property
    def parts(self) -> Sequence["Indexed"]:
        """So many ground rules at a time; their order by slot is remembered."""
        step = max(1, PART // len(self.sizes))
        if len(self.index) <= step:
            return (self,)
        return tuple(Indexed(part, self.sizes, self.device) for part in self.index.split(step))

    def sum_at_rules(self, slots: Slots) -> Float[Tensor, "ground_rules dim"]:
        """One pass over the incidence."""
        if not slots.requires_grad:
            return embedding_bag(self.rows, slots, mode="sum")
        order, offsets = self._by_slot
        return sparse_product(slots, (self.rows, None, None), (order // len(self.sizes), offsets, None))

    def at_rules(self, slots: Shaped[Tensor, "slots dim"]) -> Shaped[Tensor, "ground_rules positions dim"]:
        """One gather."""
        return slots.index_select(0, self.rows.flatten()).unflatten(0, self.rows.shape)

    def sum_at_atoms(self, messages: Messages) -> Slots:
        """One pass over the incidence."""
        back = self.rows.reshape(-1, 1)
        return sparse_product(messages.flatten(0, 1), (*self._by_slot, None), (back, None, None))

    def add_at_atoms(self, messages: Messages, slots: Slots) -> None:
        """One pass over the incidence, without the slots that nothing goes to."""
        filled, order, offsets = self._by_filled_slot
        copies = len(self.sizes) // messages.shape[1]
        sums = embedding_bag(order // copies, messages.flatten(0, 1), offsets, mode="sum")
        slots.index_add_(0, filled, sums)

    def to(self, device: torch.device) -> "Indexed":
        """The same index, for tensors elsewhere."""
        return self if device == self.device else Indexed(self.index, self.sizes, device)


@dataclass(frozen=True, eq=False)
class Box(Tensors):
    """Gathers and scatters by broadcasting: ground rules are the points of a box, atoms the points of some of its axes.

    `window` cuts the box along one axis: the axis, where the cut starts, and how long it is.
    """

    shape: tuple[int, ...]
    axes: tuple[tuple[int, ...], ...]
    window: tuple[int, int, int] = (0, 0, -1)

    @property
    def _cut_shape(self) -> tuple[int, ...]:
        axis, _, length = self.window
        return tuple(length if a == axis and length >= 0 else size for a, size in enumerate(self.shape))

    def _views(self, slots: Shaped[Tensor, "slots dim"]) -> list[Shaped[Tensor, "*box dim"]]:
        """Each position's table inside the window as a tensor over the box, of size 1 along other axes."""
        axis, start, length = self.window
        views = []
        for table, axes in zip(slots.split(self._sizes), self.axes, strict=True):
            sizes = [size if a in axes else 1 for a, size in enumerate(self.shape)]
            view = table.view(*sizes, table.shape[-1])
            views.append(view.narrow(axis, start, length) if axis in axes and length >= 0 else view)
        return views

    @cached_property
    def _sizes(self) -> list[int]:
        return [prod(self.shape[axis] for axis in axes) for axes in self.axes]

    def sum_at_rules(self, slots: Slots) -> Float[Tensor, "ground_rules dim"]:
        """Broadcast addition."""
        views = self._views(slots)
        total = views[0]
        for view in views[1:]:
            total = total + view
        return total.expand(*self._cut_shape, -1).reshape(prod(self._cut_shape), -1)

    def at_rules(self, slots: Shaped[Tensor, "slots dim"]) -> Shaped[Tensor, "ground_rules positions dim"]:
        """Each table broadcast over the box."""
        full = [view.expand(*self._cut_shape, -1) for view in self._views(slots)]
        return torch.stack(full, dim=-2).reshape(prod(self._cut_shape), len(full), -1)

    def _sums(self, messages: Messages) -> list[Float[Tensor, "*box dim"]]:
        """For each position, sums over the axes that its atom does not have; these keep size 1."""
        spread = messages.view(*self._cut_shape, *messages.shape[1:]).expand(*self._cut_shape, len(self.axes), -1)
        sums = []
        for i, axes in enumerate(self.axes):
            others = tuple(axis for axis in range(len(self.shape)) if axis not in axes)
            message = spread[..., i, :]
            sums.append(message.sum(others, keepdim=True) if others else message)
        return sums

    def sum_at_atoms(self, messages: Messages) -> Slots:
        """Sums over the axes that a position's atom does not have."""
        return torch.cat([sums.reshape(-1, messages.shape[-1]) for sums in self._sums(messages)])

    def add_at_atoms(self, messages: Messages, slots: Slots) -> None:
        """The same, into the slots inside the window."""
        for view, sums in zip(self._views(slots), self._sums(messages), strict=True):
            view.add_(sums)

    @cached_property
    def parts(self) -> Sequence["Box"]:
        """Slices along the longest axis."""
        step, ground_rules, size = PART // len(self.axes), prod(self.shape), max(self.shape, default=1)
        if ground_rules <= step:
            return (self,)
        axis, step = self.shape.index(size), max(1, step * size // ground_rules)
        return [replace(self, window=(axis, at, min(step, size - at))) for at in range(0, size, step)]


GatherScatter = Indexed | Box
"""Between a rule's slots and its ground rules."""


@dataclass(frozen=True, eq=False)
class Owners(Tensors):
    """Rules (by number) collated as one, their numbers of ground rules, and the rule of each slot and ground rule."""

    rules: tuple[int, ...]
    sizes: tuple[int, ...]
    of_slots: Int64[Tensor, " slots"]
    of_ground_rules: Int64[Tensor, " ground_rules"]


@dataclass(frozen=True, eq=False)
class RuleIncidence(Tensors):
    """One rule: `tables[i]`, the rows in the graph of the distinct atoms at position i; `index` leads to ground rules.

    `counts[i]`: in how many ground rules each atom of the table is at position i; `received[i]`: how many messages it
    receives of the rule, at all positions. With `owners` it is several rules, each with a part of every table.
    """

    tables: tuple[Int64[Tensor, " _"], ...]
    counts: tuple[Int64[Tensor, " _"], ...]
    received: tuple[Int64[Tensor, " _"], ...]
    index: GatherScatter
    owners: Owners | None = None

    @property
    def sizes(self) -> list[int]:
        """The number of atoms in each table."""
        return [len(table) for table in self.tables]


@dataclass(frozen=True, eq=False)
class Incidence(Tensors):
    """A graph, collated for message passing.

    `rows` joins all tables of all rules; `order` and `offsets` sort them by atom, so that messages at the tables are
    summed to the atoms in one pass. `messages[a]` counts the messages that atom a receives.
    """

    rules: tuple[RuleIncidence, ...]
    rows: Int64[Tensor, " n"]
    order: Int64[Tensor, " n"]
    offsets: Int64[Tensor, " atoms"]
    messages: Int64[Tensor, " atoms"]

    @classmethod
    def from_graph(cls, graph: FactorGraph, *, dense: bool = True, grouped: bool = False) -> "Incidence":
        """Collate a graph, on the CPU; `dense=False` never takes a box, `grouped` takes rules of n atoms as one."""
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

    def at_slots(self, atoms: Float[Tensor, "atoms dim"]) -> tuple[Float[Tensor, "_ dim"], ...]:
        """For each rule, the rows of the atoms that fill its slots."""
        slots = sparse_product(atoms, (self.rows.unsqueeze(1), None, None), (self.order, self.offsets, None))
        return slots.split([sum(rule.sizes) for rule in self.rules])

    def sum_at_atoms(self, slots: Sequence[Float[Tensor, "_ dim"]]) -> Float[Tensor, "atoms dim"]:
        """The sum for each atom over all slots of all rules (in their order) that it fills."""
        back = self.rows.unsqueeze(1)
        return sparse_product(torch.cat(list(slots)), (self.order, self.offsets, None), (back, None, None))


def _rule_incidence(rule: Rule, rows: Tensor, shape: tuple[int, ...] | None, atoms: int) -> RuleIncidence:
    """One rule, by index, or as a box if every substitution is there."""
    messages = torch.bincount(rows.flatten(), minlength=atoms)
    if shape is None or len(shape) > MOST_AXES or not len(rows):
        found = [torch.unique(rows[:, i], return_inverse=True, return_counts=True) for i in range(rows.shape[1])]
        tables, local, counts = zip(*found, strict=True)
        index = Indexed.build(local, tuple(map(len, tables)))
        return RuleIncidence(tables, counts, tuple(messages[table] for table in tables), index)
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
    return RuleIncidence(tuple(tables), tuple(counts), received, Box(shape, axes))


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
        Owners(rules, sizes, torch.cat(slots) // atoms, owner),
    )
