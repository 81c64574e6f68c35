"""Tensors -> predictions: a forward pass over a graph, by one network or by several that are made alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from r2n.graph.factor_graph import FactorGraph
from r2n.graph.known_states import known_states
from r2n.knowledge.herbrand import Codes
from r2n.knowledge.knowledge_base import Evidence
from r2n.model.layout import Layout
from r2n.model.r2n import R2N

Logits = Float64[np.ndarray, " atoms"]
LogitsOfEach = Float64[np.ndarray, "networks atoms"]


@dataclass(frozen=True, eq=False)
class Pass:
    """One forward pass over a graph: what was known of its atoms, and their logits (exact for those it answers).

    `each` has a row for each network.
    """

    layout: Layout
    known: Int64[Tensor, " atoms"]
    each: LogitsOfEach

    @classmethod
    def over(
        cls, graph: FactorGraph, models: Sequence[R2N], evidence: Evidence, laid_out: Layout | None = None
    ) -> "Pass":
        """The graph is laid out once for all networks, if that was not done before."""
        known = known_states(models[0].base, graph.atoms, evidence)
        layout = models[0].lay_out(graph) if laid_out is None else laid_out
        return cls(layout, known, np.stack([_logits(model, layout, known) for model in models]))

    @cached_property
    def logits(self) -> Logits:
        """The means over the networks."""
        return self.each.mean(axis=0)

    @property
    def graph(self) -> FactorGraph:
        """The graph."""
        return self.layout.graph

    def rows(self, codes: Codes) -> Int64[np.ndarray, " atoms"]:
        """The rows of atoms that the graph answers."""
        return self.graph.rows(torch.from_numpy(codes)).numpy()


def _logits(model: R2N, layout: Layout, known: Int64[Tensor, " atoms"]) -> Logits:
    was_training = model.training
    model.eval()
    with torch.no_grad():
        out = model(layout, known=known.to(model.device), rule_outputs=False).atoms
    model.train(was_training)
    return out.double().cpu().numpy()
