"""Tensors -> predictions: what of a graph the network needs again and again."""

from dataclasses import dataclass
from functools import cached_property
from weakref import ReferenceType

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from r2n.graph.factor_graph import FactorGraph
from r2n.graph.incidence import Incidence
from r2n.knowledge.herbrand import HerbrandBase
from r2n.model.pair_embedding import PairEmbedding
from r2n.model.pair_layout import PairLayout
from r2n.model.whole_base import WholeBase


@dataclass(frozen=True, eq=False)
class Prepared:
    """Layouts of a graph, made when first needed; they do not keep the graph alive.

    `trained_ids` is there where the language has grown since the training: the id that each constant had then, or -1.
    """

    _graph: ReferenceType[FactorGraph]
    base: HerbrandBase
    dense: bool
    pair_embedding: PairEmbedding | None = None
    trained_ids: Int64[Tensor, " constants"] | None = None

    @property
    def graph(self) -> FactorGraph:
        """The graph."""
        graph = self._graph()
        assert graph is not None, "whoever asks holds the graph"
        return graph

    @cached_property
    def incidence(self) -> Incidence:
        """The graph laid out for message passing."""
        return Incidence.of(self.graph, dense=self.dense)

    @cached_property
    def whole(self) -> WholeBase | None:
        """The graph as grids, where it is whole."""
        return WholeBase.of(self.graph, self.base) if self.dense and self.trained_ids is None else None

    @cached_property
    def by_arity(self) -> tuple[tuple[Tensor, Tensor, Tensor], ...]:
        """For each arity, the rows of the atoms, their predicates and their constants, by the ids of the training.

        A constant without one has that of another: its atoms are `blank`.
        """
        index, arguments = self._decoded
        if self.trained_ids is not None:
            arguments = torch.where(arguments < 0, arguments, self.trained_ids[arguments].clamp(min=0))
        arity = (arguments >= 0).sum(1)
        rows = [(n, (arity == n).nonzero().flatten()) for n in arity.unique().tolist()]
        return tuple((of_arity, index[of_arity], arguments[of_arity, :n]) for n, of_arity in rows)

    @cached_property
    def predicates(self) -> Int64[Tensor, " atoms"]:
        """The predicate (by index) of each atom."""
        return self._decoded[0]

    @cached_property
    def pairs(self) -> tuple[PairLayout, ...]:
        """The atoms of each arity, laid out for the pair classifier."""
        assert self.pair_embedding is not None
        return tuple(self.pair_embedding.lay_out(index, arguments) for _, index, arguments in self.by_arity)

    @cached_property
    def blank(self) -> Bool[Tensor, " atoms"] | None:
        """The atoms with a constant that has no vector, where there may be some."""
        if self.trained_ids is None:
            return None
        arguments = self._decoded[1]
        return ((arguments >= 0) & (self.trained_ids[arguments] < 0)).any(dim=1)

    @cached_property
    def _decoded(self) -> tuple[Tensor, Tensor]:
        """The predicate of each atom, and its constants in the language as it is now, padded with -1."""
        index, arguments = self.base.decode(self.graph.atoms.numpy())
        return torch.from_numpy(index), torch.from_numpy(arguments)
