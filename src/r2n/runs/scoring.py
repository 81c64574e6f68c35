"""Who decides: a trained network as a function from atoms to logits, and how good it is."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from r2n.evaluation.evaluate import Report, Score, classify, rank
from r2n.graph.factor_graph import FactorGraph
from r2n.knowledge.herbrand import Codes, HerbrandBase
from r2n.knowledge.knowledge_base import Evidence
from r2n.knowledge.reciprocal import reciprocal_codes
from r2n.model.r2n import R2N
from r2n.training.targets import known_states


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
        """The logits of atoms given by their codes; where there are reciprocals, the mean of both directions."""
        mirrored = reciprocal_codes(self.model.base, codes)
        has_one = mirrored >= 0
        logits = self._logits(codes)
        if has_one.any():
            logits[has_one] = (logits[has_one] + self._logits(mirrored[has_one])) / 2
        return logits

    def asked_at(self, position: int) -> Score:
        """The logits of atoms as answers to what stands at a position: position 0 is asked of the reciprocals."""

        def score(codes: Codes) -> Float64[np.ndarray, " atoms"]:
            mirrored = reciprocal_codes(self.model.base, codes) if position == 0 else np.full(len(codes), -1)
            return self._logits(np.where(mirrored >= 0, mirrored, codes))

        return score

    @cached_property
    def _of_graph(self) -> Float64[np.ndarray, " atoms"]:
        """The logits of all atoms of the graph, as the network was at the first question."""
        return self._computed(self.graph, self.known)

    def _computed(self, graph: FactorGraph, known: Tensor) -> np.ndarray:
        self.model.eval()
        with torch.no_grad():
            return self.model(graph, known=known, rule_outputs=False).atoms.double().numpy()

    def _logits(self, codes: Codes) -> Float64[np.ndarray, " atoms"]:
        wanted = torch.from_numpy(np.array(codes, np.int64))
        if bool(self.graph.contains(wanted).all()):
            return self._of_graph[self.graph.rows(wanted).numpy()]
        graph = self.graph.with_atoms(wanted)
        known = torch.zeros_like(graph.atoms)
        known[graph.rows(self.graph.atoms)] = self.known
        return self._computed(graph, known)[graph.rows(wanted).numpy()]


def evaluate(
    model: R2N, graph: FactorGraph, queries: Evidence, *, evidence: Evidence | None = None, split: str = "queries"
) -> Report:
    """The report on queries: ranking where all are true, else classification.

    Ranking is filtered by the true queries themselves and the true `evidence`; `evidence` is also what a network
    that reads evidence is told.
    """
    known = evidence if evidence is not None else Evidence.empty()
    scores = AtomScores.of(model, graph, known)
    facts = np.union1d(known.atoms[known.truth], queries.atoms[queries.truth])
    return evaluate_scores(scores, queries, model.base, facts, split=split)


def evaluate_scores(scores: Score, queries: Evidence, base: HerbrandBase, facts: Codes, *, split: str) -> Report:
    """The report of scores on queries: ranking (filtered by `facts`) where all are true, else classification."""
    if queries.truth.all():
        return rank(scores, queries, base, facts, split=split)
    return classify(scores, queries, base, split=split)
