"""Graph batches: the tensors of a graph that a network reads."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

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
"""How a pass goes: over grids; over boxes of substitutions where these are whole; always by index."""


@dataclass(frozen=True, eq=False)
class Input:
    """What a network reads atoms by: their language, and how constants and atoms become vectors.

    `trained_ids` is there where the language has grown since the training: the id that each constant had then, or -1.
    """

    base: HerbrandBase
    constants: ConstantEmbedding
    atom_embedding: AtomEmbedding[Any]
    trained_ids: Int64[Tensor, " constants"] | None


@dataclass(frozen=True, eq=False)
class GraphBatch:
    """A graph as a network reads it, on a device; the graph itself stays where it is.

    Kinds differ in how a pass is computed, not in what it computes. One over grids (`whole`) has the other parts too,
    for the passes that hide atoms. `grouped`: rules with as many atoms are laid out as one, for they share a network.
    """

    graph: FactorGraph
    kind: Kind
    input: Input
    whole: DenseGrid | None = None
    grouped: bool = False
    device: torch.device = CPU

    def __repr__(self) -> str:
        """Its kind, where it is, and of which graph."""
        return f"GraphBatch({self.kind}, {self.device}, {self.graph!r})"

    def to(self, device: torch.device | str) -> "GraphBatch":
        """The same graph, laid out for a network on another device."""
        device = torch.device(device)
        if device == self.device:
            return self
        return replace(self, device=device, whole=None if self.whole is None else self.whole.to(device))

    @cached_property
    def incidence(self) -> Incidence:
        """The graph laid out for message passing."""
        made = Incidence.of(self.graph, dense=self.kind != "indexed", grouped=self.grouped)
        return made.to(self.device)

    @cached_property
    def by_arity(self) -> tuple[tuple[Int64[Tensor, " _"], Tensors], ...]:
        """For each arity, the rows of its atoms, and these as the input layer lays them out.

        Constants go by the ids of the training; one without has that of another, for its atoms are `blank`.
        """
        index, arguments = self._decoded
        ids = self.input.trained_ids
        if ids is not None:
            arguments = torch.where(arguments < 0, arguments, ids[arguments].clamp(min=0))
        arity = (arguments >= 0).sum(1)
        found = []
        for n in arity.unique().tolist():
            rows = (arity == n).nonzero().flatten()
            atoms = self.input.atom_embedding.collate(index[rows], arguments[rows, :n], self.input.constants)
            found.append((rows.to(self.device), atoms.to(self.device)))
        return tuple(found)

    @cached_property
    def all_constants(self) -> ConstantBatch:
        """All constants in order, as grids read them."""
        return self.input.constants.collate().to(self.device)

    @cached_property
    def predicates(self) -> Int64[Tensor, " atoms"]:
        """The predicate (by index) of each atom."""
        return self._decoded[0].to(self.device)

    @cached_property
    def blank(self) -> Bool[Tensor, " atoms"] | None:
        """The atoms with a constant that has no vector, where there may be some."""
        ids = self.input.trained_ids
        if ids is None:
            return None
        arguments = self._decoded[1]
        return ((arguments >= 0) & (ids[arguments] < 0)).any(dim=1).to(self.device)

    @cached_property
    def _decoded(self) -> tuple[Tensor, Tensor]:
        """The predicate of each atom, and its constants in the language as it is now, padded with -1."""
        index, arguments = self.input.base.decode(self.graph.atoms.cpu().numpy())
        return torch.from_numpy(index), torch.from_numpy(arguments)
