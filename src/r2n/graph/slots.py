"""Ground rules -> tensors: the ways between the atoms at each position of one rule and its ground rules.

Each position of a rule has a table of the distinct atoms that fill it; the tables laid end to end are the rule's
*slots*. The ways go by index (`Indexed`) or, where every substitution is there, by broadcasting over the variables'
domains (`Box`), with no index per ground rule at all. Both can be walked part by part, so that what lies between
two steps of a computation stays in the processor's cache however many ground rules there are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int64, Shaped
from torch import Tensor
from torch.nn.functional import embedding_bag

from r2n.graph.segments import by_segment, gather_sum, segment_sum

PART = 50_000  # messages in one part
CPU = torch.device("cpu")

Slots = Float[Tensor, "slots dim"]
Messages = Float[Tensor, "ground_rules positions dim"]


@runtime_checkable
class Ways(Protocol):
    """The ways between a rule's slots and its ground rules."""

    def sum_at_rules(self, slots: Slots) -> Float[Tensor, "ground_rules dim"]:
        """For each ground rule, the sum over positions of its atoms' rows."""
        ...

    def at_rules(self, slots: Slots) -> Messages:
        """For each ground rule and position, its atom's row."""
        ...

    def sum_at_atoms(self, messages: Messages) -> Slots:
        """For each slot, the sum of the messages that go there."""
        ...

    def add_at_atoms(self, messages: Messages, slots: Slots) -> None:
        """Add the messages in place to the slots that they go to; one message can go to all positions."""
        ...

    def targets(self) -> list[Int64[Tensor, " ground_rules"]]:
        """For each position, the place in its table that each ground rule's message goes to."""
        ...

    def parts(self) -> Sequence["Ways"]:
        """The same ways for some ground rules at a time, in their order."""
        ...

    def to(self, device: torch.device) -> "Ways":
        """The same ways for tensors on a device."""
        ...


@dataclass(frozen=True, eq=False)
class Indexed:
    """Ways by index: `index[g, i]` is the slot of ne(g, i); `sizes` are those of the tables.

    The index stays on the CPU. What a pass needs of it is made there when first needed, and moved to the `device`.
    """

    index: Int64[Tensor, "ground_rules positions"]
    sizes: tuple[int, ...]
    device: torch.device = CPU

    @classmethod
    def build(cls, local: Sequence[Tensor], sizes: tuple[int, ...]) -> "Indexed":
        """From each position's places in its own table."""
        starts = [sum(sizes[:i]) for i in range(len(sizes))]
        return cls(torch.stack([place + start for place, start in zip(local, starts, strict=True)], dim=1), sizes)

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
    def _filled(self) -> tuple[Tensor, Tensor, Tensor]:
        """The slots that any message goes to, the messages in their order, and where each begins."""
        filled, place = torch.unique(self.index.flatten(), return_inverse=True)
        order, offsets = by_segment(place, len(filled))
        return filled.to(self.device), order.to(self.device), offsets.to(self.device)

    @cached_property
    def _parts(self) -> tuple["Indexed", ...]:
        step = max(1, PART // len(self.sizes))
        if len(self.index) <= step:
            return (self,)
        return tuple(Indexed(part, self.sizes, self.device) for part in self.index.split(step))

    def sum_at_rules(self, slots: Slots) -> Float[Tensor, "ground_rules dim"]:
        """One pass over the incidence."""
        if not slots.requires_grad:
            return embedding_bag(self.rows, slots, mode="sum")
        order, offsets = self._by_slot
        return gather_sum(slots, self.rows, order // len(self.sizes), offsets)

    def at_rules(self, slots: Slots) -> Messages:
        """One gather."""
        return slots.index_select(0, self.rows.flatten()).unflatten(0, self.rows.shape)

    def sum_at_atoms(self, messages: Messages) -> Slots:
        """One pass over the incidence."""
        return segment_sum(messages.flatten(0, 1), *self._by_slot, self.rows.flatten())

    def add_at_atoms(self, messages: Messages, slots: Slots) -> None:
        """One pass over the incidence, without the slots that nothing goes to."""
        filled, order, offsets = self._filled
        copies = len(self.sizes) // messages.shape[1]
        sums = embedding_bag(order // copies, messages.flatten(0, 1), offsets, mode="sum")
        slots.index_add_(0, filled, sums)

    def targets(self) -> list[Int64[Tensor, " ground_rules"]]:
        """The slots, counted from the start of each table."""
        starts = [sum(self.sizes[:i]) for i in range(len(self.sizes))]
        return [self.rows[:, i] - start for i, start in enumerate(starts)]

    def parts(self) -> Sequence["Indexed"]:
        """So many ground rules at a time; their order by slot is remembered."""
        return self._parts

    def to(self, device: torch.device) -> "Indexed":
        """The same index, for tensors elsewhere."""
        return self if device == self.device else Indexed(self.index, self.sizes, device)


@dataclass(frozen=True, eq=False)
class Box:
    """Ways by broadcasting: ground rules are the points of a box, atoms the points of some of its axes.

    `window` cuts the box along one axis: the axis, where the cut starts, and how long it is.
    """

    shape: tuple[int, ...]
    axes: tuple[tuple[int, ...], ...]
    window: tuple[int, int, int] = (0, 0, -1)
    device: torch.device = CPU

    @property
    def _cut_shape(self) -> tuple[int, ...]:
        axis, _, length = self.window
        return tuple(length if a == axis and length >= 0 else size for a, size in enumerate(self.shape))

    def _views(self, slots: Shaped[Tensor, "slots dim"]) -> list[Shaped[Tensor, "*box dim"]]:
        """Each position's table inside the window as a tensor over the whole box, of size 1 along other axes."""
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

    def at_rules(self, slots: Slots) -> Messages:
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

    def targets(self) -> list[Int64[Tensor, " ground_rules"]]:
        """Places of the atoms over the box."""
        places = torch.cat([torch.arange(size, device=self.device) for size in self._sizes]).unsqueeze(-1)
        return [view.squeeze(-1).expand(self._cut_shape).reshape(-1) for view in self._views(places)]

    def parts(self) -> Sequence["Box"]:
        """Slices along the longest axis."""
        step = PART // len(self.axes)
        ground_rules = prod(self.shape)
        if ground_rules <= step:
            return (self,)
        axis = max(range(len(self.shape)), key=self.shape.__getitem__)
        size = self.shape[axis]
        step = max(1, step * size // ground_rules)
        starts = range(0, size, step)
        return [Box(self.shape, self.axes, (axis, at, min(step, size - at)), self.device) for at in starts]

    def to(self, device: torch.device) -> "Box":
        """The same box; only `targets` makes tensors of its own."""
        return replace(self, device=device)
