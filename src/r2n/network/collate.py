"""Graph batches: the tensors of a graph that a network reads."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from r2n.data.herbrand import HerbrandBase
from r2n.network.constant_embedding import ConstantBatch, ConstantEmbedding
from r2n.network.factor_graph import FactorGraph
from r2n.network.grid import DenseGrid
from r2n.network.input_layers import AtomEmbedding
from r2n.network.scatter import Incidence
from r2n.network.tensors import CPU, Tensors

Kind = Literal["grid", "dense", "indexed"]
"""How a pass is computed: over grids; over boxes of substitutions if these are complete; always by index."""


@dataclass(frozen=True, eq=False)
class GraphBatch:
    """A graph as a network reads it, on a device; the graph itself is not moved.

    `trained_ids`, if the language has grown since the training: the id that each constant had then, or -1. A batch over
    grids (`dense_grid`) has the other parts too, for the passes that mask atoms. `grouped`: rules with equally many
    atoms are collated as one, for they share a network.
    """

    graph: FactorGraph
    kind: Kind
    base: HerbrandBase
    constants: ConstantEmbedding
    atom_embedding: AtomEmbedding
    trained_ids: Int64[Tensor, " constants"] | None
    dense_grid: DenseGrid | None = None
    grouped: bool = False
    device: torch.device = CPU

    def __repr__(self) -> str:
        return f"GraphBatch({self.kind}, {self.device}, {self.graph!r})"

    def to(self, device: torch.device | str) -> "GraphBatch":
        """The same batch for a network on another device."""
        device = torch.device(device)
        if device == self.device:
            return self
        return replace(self, device=device, dense_grid=None if self.dense_grid is None else self.dense_grid.to(device))

    @cached_property
    def incidence(self) -> Incidence:
        """The graph collated for message passing."""
        return Incidence.from_graph(self.graph, dense=self.kind != "indexed", grouped=self.grouped).to(self.device)

    @cached_property
    def by_arity(self) -> tuple[tuple[Int64[Tensor, " _"], Tensors], ...]:
        """For each arity, the rows of its atoms, and these as the input layer collates them.

        Constants have the ids of the training; one without has that of another, for its atoms are `masked`.
        """
        (index, arguments), ids = self._decoded, self.trained_ids
        if ids is not None:
            arguments = torch.where(arguments < 0, arguments, ids[arguments].clamp(min=0))
        arity = (arguments >= 0).sum(1)
        found = []
        for n in arity.unique().tolist():
            rows = (arity == n).nonzero().flatten()
            atoms = self.atom_embedding.collate(index[rows], arguments[rows, :n], self.constants)
            found.append((rows.to(self.device), atoms.to(self.device)))
        return tuple(found)

    @cached_property
    def all_constants(self) -> ConstantBatch:
        """All constants in order, as grids read them."""
        return self.constants.collate().to(self.device)

    @cached_property
    def predicates(self) -> Int64[Tensor, " atoms"]:
        """The predicate (by index) of each atom."""
        return self._decoded[0].to(self.device)

    @cached_property
    def masked(self) -> Bool[Tensor, " atoms"] | None:
        """The atoms with a constant that has no vector, if there may be some."""
        ids, arguments = self.trained_ids, self._decoded[1]
        if ids is None:
            return None
        return ((arguments >= 0) & (ids[arguments] < 0)).any(dim=1).to(self.device)

    @cached_property
    def _decoded(self) -> tuple[Tensor, Tensor]:
        """The predicate of each atom, and its constants in the present language, padded with -1."""
        index, arguments = self.base.decode(self.graph.atoms.cpu().numpy())
        return torch.from_numpy(index), torch.from_numpy(arguments)
