"""Tensors -> predictions: the atoms of a grid, kept as features that all its predicates share and a map for each."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn.functional import dropout


def take(table: Tensor, places: Int64[Tensor, " k"]) -> Tensor:
    """Some entries of a table; the table itself, not a copy, where these are all of them in order."""
    return table if _is_all(places, len(table)) else table[places]


def _is_all(places: Tensor, size: int) -> bool:
    return len(places) == size and torch.equal(places, torch.arange(size))


@dataclass(frozen=True, eq=False)
class GridAtoms:
    """Embeddings of all atoms of a grid: Emb(P(point)) = features[point] @ maps[P] + offsets[P]."""

    features: Float[Tensor, "points features"]
    maps: Float[Tensor, "predicates features dim"]
    offsets: Float[Tensor, "predicates dim"]

    def into(
        self, places: Int64[Tensor, " k"], columns: Float[Tensor, "k hidden dim"]
    ) -> Float[Tensor, "features hidden"]:
        """The sum over some predicates of their maps, each followed by columns of its own."""
        return torch.einsum("kfd,khd->fh", take(self.maps, places), columns)


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

    def into(
        self, places: Int64[Tensor, " k"], columns: Float[Tensor, "k hidden dim"]
    ) -> Float[Tensor, "features hidden"]:
        """As for `GridAtoms`, without writing the maps out."""
        return torch.einsum("kbd,khd->bdh", take(self._blocks, places), columns).flatten(0, 1)


Atoms = GridAtoms | InputAtoms


def row_dropout(points: Float[Tensor, "*points dim"], drop: float) -> Float[Tensor, "*points dim"]:
    """Dropout with one mask for all points that differ on the last axis only.

    These are compared with each other, as alternatives for one constant: with a mask for each, chance would tell them
    apart.
    """
    if not drop:
        return points
    return points * dropout(points.new_ones(*points.shape[:-2], 1, points.shape[-1]), drop, training=True)


def sum_at(values: Tensor, places: Int64[Tensor, " k"], size: int) -> Tensor:
    """The sum of the values at each of `size` places."""
    if _is_all(places, size):
        return values
    return values.new_zeros(size, *values.shape[1:]).index_add(0, places, values)
