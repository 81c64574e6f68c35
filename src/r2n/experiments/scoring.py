"""Who decides: a trained network as a function from atoms to logits."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from r2n.graph.factor_graph import FactorGraph
from r2n.knowledge.herbrand import Codes
from r2n.knowledge.knowledge_base import Evidence
from r2n.model.r2n import R2N
from r2n.training.questions import known_states


@dataclass(frozen=True, eq=False)
class AtomScores:
    """Logits of atoms, looked up in one pass over the graph; atoms outside it are scored as in no ground rule."""

    model: R2N
    graph: FactorGraph
    known: Int64[Tensor, " atoms"]

    @classmethod
    def of(cls, model: R2N, graph: FactorGraph, evidence: Evidence) -> "AtomScores":
        """Scores that know the evidence."""
        return cls(model, graph, known_states(model.base, graph, evidence))

    def __call__(self, codes: Codes) -> Float64[np.ndarray, " atoms"]:
        """The logits of atoms given by their codes."""
        wanted = torch.from_numpy(np.array(codes, np.int64))
        graph, known = self.graph, self.known
        if not bool(graph.contains(wanted).all()):
            graph = self.graph.with_atoms(wanted)
            known = torch.zeros_like(graph.atoms)
            known[graph.rows(self.graph.atoms)] = self.known
        self.model.eval()
        with torch.no_grad():
            logits = self.model(graph, known=known, rule_outputs=False).atoms
        return logits[graph.rows(wanted)].double().numpy()
