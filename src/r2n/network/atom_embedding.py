"""Emb^0(a): embeddings of atoms from those of their constants."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from r2n.logic.language import Predicate
from r2n.network.constant_embedding import ConstantEmbedding, ConstantLayout
from r2n.network.mlp import MLP

GridParts = tuple[
    Float[Tensor, "points features"], Float[Tensor, "predicates features"], Float[Tensor, "predicates dim"]
]
"""Features, diagonals and offsets of all atoms over a grid of constants."""


@runtime_checkable
class GridEmbedding(Protocol):
    """What an atom embedding can do too that is linear in features which all predicates share.

    Emb^0(a) = sum_b features_b * diagonals[P]_b + offsets[P] over one or two blocks b of `dim` features.
    """

    def grid(self, predicates: Int64[Tensor, " n"], constants: Sequence[Float[Tensor, "_ constant_dim"]]) -> GridParts:
        """Emb^0 of all atoms of some predicates, over all combinations of the constants' vectors at each position."""
        ...

    def grid_score(
        self,
        features: Float[Tensor, "points features"],
        diagonals: Float[Tensor, "predicates features"],
        offsets: Float[Tensor, "predicates dim"],
    ) -> Float[Tensor, "predicates points"]:
        """The score of each of these atoms."""
        ...


@runtime_checkable
class RowEmbedding(Protocol):
    """What an atom embedding can do too whose score of all candidates of a row is one matrix product.

    A row is an atom of which one position is open: P(c_1, ..., ?, ..., c_n).
    """

    def row_scores(
        self,
        predicates: Int64[Tensor, " rows"],
        position: int,
        given: Float[Tensor, "rows positions constant_dim"],
        candidates: Float[Tensor, "candidates constant_dim"],
    ) -> Float[Tensor, "rows candidates"]:
        """The score of each row's atom with each candidate at the open position, from the constants' vectors.

        All rows have one arity; what stands in `given` at the open position is not read. No atom is embedded.
        """
        ...

    def formula(
        self, predicates: Int64[Tensor, " atoms"], constants: Float[Tensor, "atoms positions constant_dim"]
    ) -> Float[Tensor, "atoms dim"]:
        """Emb^0(a) of atoms given by their predicates (by index) and their constants' vectors."""
        ...

    def n3(
        self, predicates: Int64[Tensor, " atoms"], constants: Float[Tensor, "atoms positions constant_dim"]
    ) -> Float[Tensor, ""]:
        """N3 of atoms: the mean over them of the cubed moduli of what their predicates and constants are made of."""
        ...


@runtime_checkable
class Movable(Protocol):
    """Atoms of one arity, as an embedding lays them out for itself."""

    def to(self, device: torch.device) -> "Movable":
        """The same on another device."""
        ...


Laid = TypeVar("Laid", bound=Movable)


@runtime_checkable
class AtomEmbedding(Protocol[Laid]):
    """f_P, a module: from the constants of atoms to their embeddings, and from these to a score."""

    constant_dim: int
    dim: int

    @property
    def grids(self) -> GridEmbedding | None:
        """How it embeds all atoms over a grid of constants, where it can."""
        ...

    @property
    def rows(self) -> RowEmbedding | None:
        """How it scores all candidates of a row at once, where it can."""
        ...

    def lay_out(
        self,
        predicates: Int64[Tensor, " atoms"],
        arguments: Int64[Tensor, "atoms positions"],
        constants: ConstantEmbedding,
    ) -> Laid:
        """Atoms of one arity, given by their predicates (by index) and their constants (by id), on the CPU."""
        ...

    def __call__(self, atoms: Laid, constants: ConstantEmbedding) -> Float[Tensor, "atoms dim"]:
        """Emb^0(a)."""
        ...

    def score(
        self, embedding: Float[Tensor, "atoms dim"], predicates: Int64[Tensor, " atoms"]
    ) -> Float[Tensor, " atoms"]:
        """The method's own score of atoms of any arity, a logit."""
        ...

    def parameters(self) -> Iterator[nn.Parameter]:
        """Its weights."""
        ...


@dataclass(frozen=True, eq=False)
class AtomLayout:
    """Atoms of one arity: their predicates, and their constants as they are read."""

    predicates: Int64[Tensor, " atoms"]
    constants: ConstantLayout

    def to(self, device: torch.device) -> "AtomLayout":
        """The same on another device."""
        return AtomLayout(self.predicates.to(device), self.constants.to(device))


RowsByPredicate = tuple[tuple[int, Int64[Tensor, " _"]], ...]
"""The predicates of some atoms, each with the rows of its own."""


def rows_by_predicate(predicates: Int64[Tensor, " atoms"]) -> RowsByPredicate:
    """The predicates that there are, each with the rows of its atoms."""
    return tuple((i, (predicates == i).nonzero().flatten()) for i in predicates.unique().tolist())


@dataclass(frozen=True, eq=False)
class NetworkLayout:
    """Atoms of one arity: how many, the rows of those of each predicate, and their constants as they are read."""

    count: int
    by_predicate: RowsByPredicate
    constants: ConstantLayout

    def to(self, device: torch.device) -> "NetworkLayout":
        """The same on another device."""
        by_predicate = tuple((predicate, rows.to(device)) for predicate, rows in self.by_predicate)
        return NetworkLayout(self.count, by_predicate, self.constants.to(device))


class AtomMLP(nn.Module):
    """MLP_P of the constants' vectors, one MLP for each predicate of any arity; the score is the embedding's sum."""

    grids = rows = None

    def __init__(self, predicates: Sequence[Predicate], dim: int) -> None:
        """One hidden layer of `dim` units."""
        super().__init__()
        self.constant_dim = self.dim = dim
        self.networks = nn.ModuleList([MLP((predicate.arity * dim, dim, dim)) for predicate in predicates])

    def lay_out(
        self,
        predicates: Int64[Tensor, " atoms"],
        arguments: Int64[Tensor, "atoms positions"],
        constants: ConstantEmbedding,
    ) -> NetworkLayout:
        """Atoms of one arity."""
        return NetworkLayout(len(predicates), rows_by_predicate(predicates), constants.lay_out(arguments))

    def forward(self, atoms: NetworkLayout, constants: ConstantEmbedding) -> Float[Tensor, "atoms dim"]:
        """Emb^0(a)."""
        vectors = constants(atoms.constants)
        embedding = vectors.new_zeros(atoms.count, self.dim)
        for predicate, rows in atoms.by_predicate:
            embedding = embedding.index_copy(0, rows, self.networks[predicate](vectors[rows].flatten(1)))
        return embedding

    def score(
        self, embedding: Float[Tensor, "atoms dim"], predicates: Int64[Tensor, " atoms"]
    ) -> Float[Tensor, " atoms"]:
        """Its sum."""
        return embedding.sum(-1)
