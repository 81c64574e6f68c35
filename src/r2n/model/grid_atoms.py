"""Tensors -> predictions: the atoms of a grid, kept as features that all its predicates share and a map for each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn.functional import dropout


@dataclass(frozen=True, eq=False)
class Places:
    """Some places in a table of a given size, and whether they are all of its places, in order."""

    index: Int64[Tensor, " k"]
    size: int
    is_all: bool

    @classmethod
    def of(cls, places: Sequence[int], size: int) -> "Places":
        """From their numbers."""
        return cls(torch.tensor(places, dtype=torch.int64), size, list(places) == list(range(size)))

    def to(self, device: torch.device) -> "Places":
        """The same on another device."""
        return replace(self, index=self.index.to(device))

    def __len__(self) -> int:
        """How many there are."""
        return len(self.index)

    def take(self, table: Tensor) -> Tensor:
        """These entries of a table; the table itself, not a copy, where these are all of them in order."""
        return table if self.is_all else table[self.index]

    def sum_at(self, values: Tensor) -> Tensor:
        """The sum of the values, one for each of these places, at each place of the table."""
        if self.is_all:
            return values
        return values.new_zeros(self.size, *values.shape[1:]).index_add(0, self.index, values)


@dataclass(frozen=True, eq=False)
class GridAtoms:
    """Embeddings of all atoms of a grid: Emb(P(point)) = features[point] @ maps[P] + offsets[P]."""

    features: Float[Tensor, "points features"]
    maps: Float[Tensor, "predicates features dim"]
    offsets: Float[Tensor, "predicates dim"]

    def into(self, places: Places, columns: Float[Tensor, "k hidden dim"]) -> Float[Tensor, "features hidden"]:
        """The sum over some predicates of their maps, each followed by columns of its own."""
        return torch.einsum("kfd,khd->fh", places.take(self.maps), columns)


@dataclass(frozen=True, eq=False)
class InputAtoms:
    """Emb^0 of all atoms of a grid: maps that are diagonals, block by block of the features, as in `AtomEmbedding`."""

    features: Float[Tensor, "points features"]
    diagonals: Float[Tensor, "predicates features"]
    offsets: Float[Tensor, "predicates dim"]

    @cached_property
    def maps(self) -> Float[Tensor, "predicates features dim"]:
        """The maps, written out."""
        return torch.diag_embed(self._blocks).flatten(1, 2)

    @property
    def _blocks(self) -> Tensor:
        return self.diagonals.unflatten(1, (-1, self.offsets.shape[1]))

    def into(self, places: Places, columns: Float[Tensor, "k hidden dim"]) -> Float[Tensor, "features hidden"]:
        """As for `GridAtoms`, without writing the maps out."""
        return torch.einsum("kbd,khd->bdh", places.take(self._blocks), columns).flatten(0, 1)


Atoms = GridAtoms | InputAtoms


def row_dropout(points: Float[Tensor, "*points dim"], drop: float) -> Float[Tensor, "*points dim"]:
    """Dropout with one mask for all points that differ on the last axis only.

    These are compared with each other, as alternatives for one constant: with a mask for each, chance would tell them
    apart.
    """
    if not drop:
        return points
    return points * dropout(points.new_ones(*points.shape[:-2], 1, points.shape[-1]), drop, training=True)
