"""Tensors -> predictions: the only way from an atom to its logit, for all who ask a network.

code -> source -> graph -> layout -> forward pass -> logit
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from r2n.errors import DataError
from r2n.graph.factor_graph import FactorGraph
from r2n.graph.known_states import known_states
from r2n.graph.sources import GraphSource
from r2n.knowledge.herbrand import Codes
from r2n.knowledge.knowledge_base import Evidence
from r2n.knowledge.reciprocal import reciprocal_codes
from r2n.model.layout import Layout
from r2n.model.r2n import R2N

ATOMS_IN_NO_RULE = 2**18  # at once
ATOMS_WITH_THEIR_OWN_RULES = 2**12  # at once

Logits = Float64[np.ndarray, " atoms"]


@dataclass(frozen=True, eq=False)
class Pass:
    """One forward pass over a graph: what was known of its atoms, and their logits (exact for those it answers)."""

    layout: Layout
    known: Int64[Tensor, " atoms"]
    logits: Logits

    @property
    def graph(self) -> FactorGraph:
        """The graph."""
        return self.layout.graph

    def rows(self, codes: Codes) -> Int64[np.ndarray, " atoms"]:
        """The rows of atoms that the graph answers."""
        return self.graph.rows(torch.from_numpy(codes)).numpy()


@dataclass(frozen=True, eq=False)
class AtomLogits:
    """A network, where its graphs come from, and what it is told: atoms -> logits.

    The pass over the ground rules that do not depend on what is asked is made at the first question and kept: make
    another object when weights or facts change (`again`).
    """

    model: R2N
    source: GraphSource
    evidence: Evidence
    laid_out: Layout | None = None

    def __call__(self, codes: Codes) -> Logits:
        """The logits of atoms given by their codes; where there are reciprocals, the mean of both directions."""
        codes = np.array(codes, np.int64)
        self._check(codes)
        mirrored = reciprocal_codes(self.model.base, codes)
        has_one = mirrored >= 0
        logits = self._looked_up(codes)
        if has_one.any():
            logits[has_one] = (logits[has_one] + self._looked_up(mirrored[has_one])) / 2
        return logits

    def asked_at(self, position: int) -> Callable[[Codes], Logits]:
        """The logits of atoms as answers to what stands at a position: position 0 is asked of the reciprocals."""

        def score(codes: Codes) -> Logits:
            mirrored = reciprocal_codes(self.model.base, codes) if position == 0 else np.full(len(codes), -1)
            return self._looked_up(np.where(mirrored >= 0, mirrored, codes))

        return score

    def again(self) -> "AtomLogits":
        """The same for the weights as they are now; what was laid out stays so."""
        kept = self.__dict__.get("whole")
        return AtomLogits(self.model, self.source, self.evidence, self.laid_out if kept is None else kept.layout)

    @cached_property
    def whole(self) -> Pass | None:
        """The pass over all ground rules, where they do not depend on what is asked."""
        graph = self.source.whole
        return None if graph is None else self._pass(graph, self.laid_out)

    def passes(self, codes: Codes) -> Iterator[tuple[Int64[np.ndarray, " some"], Pass]]:
        """Passes that together answer the atoms, each with the places in `codes` of those that it answers."""
        self._check(codes)
        left = np.arange(len(codes))
        size = ATOMS_WITH_THEIR_OWN_RULES
        if self.whole is not None:
            inside = self.whole.graph.contains(torch.from_numpy(codes)).numpy()
            if inside.any():
                yield left[inside], self.whole
            left, size = left[~inside], ATOMS_IN_NO_RULE
        for which in np.array_split(left, -(-len(left) // size)) if len(left) else ():  # all about equal, none tiny:
            yield which, self._pass(self.source.around(codes[which]))  # a row alone is summed in another order

    def _check(self, codes: Codes) -> None:
        if len(codes) and not 0 <= codes.min() <= codes.max() < self.model.base.size:
            raise DataError(
                f"there is a code outside the Herbrand base of {self.model.base.size:,} atoms",
                hint="take codes and network from one problem",
            )

    def _looked_up(self, codes: Codes) -> Logits:
        logits = np.zeros(len(codes))
        for which, made in self.passes(codes):
            logits[which] = made.logits[made.rows(codes[which])]
        return logits

    def _pass(self, graph: FactorGraph, laid_out: Layout | None = None) -> Pass:
        known = known_states(self.model.base, graph.atoms, self.evidence)
        layout = self.model.lay_out(graph) if laid_out is None else laid_out
        was_training = self.model.training
        self.model.eval()
        with torch.no_grad():
            out = self.model(layout, known=known.to(self.model.device), rule_outputs=False).atoms
        self.model.train(was_training)
        return Pass(layout, known, out.double().cpu().numpy())
