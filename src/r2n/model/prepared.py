"""Tensors -> predictions: what of a graph the network needs again and again."""

from dataclasses import dataclass
from functools import cached_property
from weakref import ReferenceType

import torch
from jaxtyping import Int64
from torch import Tensor

from r2n.graph.factor_graph import FactorGraph
from r2n.graph.incidence import Incidence
from r2n.knowledge.herbrand import HerbrandBase
from r2n.model.pair_embedding import PairEmbedding
from r2n.model.pair_layout import PairLayout
from r2n.model.whole_base import WholeBase


@dataclass(frozen=True, eq=False)
class Prepared:
    """Layouts of a graph, made when first needed; they do not keep the graph alive."""

    _graph: ReferenceType[FactorGraph]
    base: HerbrandBase
    dense: bool
    pair_embedding: PairEmbedding | None = None

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
        return WholeBase.of(self.graph, self.base) if self.dense else None

    @cached_property
    def by_arity(self) -> tuple[tuple[Tensor, Tensor, Tensor], ...]:
        """For each arity, the rows of the atoms, their predicates and their constants."""
        index, arguments = (torch.from_numpy(part) for part in self.base.decode(self.graph.atoms.numpy()))
        arity = (arguments >= 0).sum(1)
        rows = [(n, (arity == n).nonzero().flatten()) for n in arity.unique().tolist()]
        return tuple((of_arity, index[of_arity], arguments[of_arity, :n]) for n, of_arity in rows)

    @cached_property
    def predicates(self) -> Int64[Tensor, " atoms"]:
        """The predicate (by index) of each atom."""
        return torch.from_numpy(self.base.decode(self.graph.atoms.numpy())[0])

    @cached_property
    def pairs(self) -> tuple[PairLayout, ...]:
        """The atoms of each arity, laid out for the pair classifier."""
        assert self.pair_embedding is not None
        return tuple(self.pair_embedding.lay_out(index, arguments) for _, index, arguments in self.by_arity)
