"""Predictions -> a trained network: the exact softmax over the whole Herbrand base.

A fact is asked against every atom with another constant in one position, and (relations) against every predicate with
the same domains on the same constants. Nothing is filtered out: other facts of the row count too, as alternatives.
"""

from collections.abc import Sequence
from copy import copy

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from r2n.knowledge.contradictions import refuse_without_facts
from r2n.knowledge.herbrand import HerbrandBase
from r2n.knowledge.knowledge_base import Evidence


class WholeRows:
    """The rows of a base that hold training facts: for each group of predicates with the same domains, its facts."""

    def __init__(
        self,
        base: HerbrandBase,
        evidence: Evidence,
        *,
        positions: Sequence[int] | None = None,
        relation_weight: float = 0.0,
    ) -> None:
        """`positions` are those to ask for (all by default; negative ones count from the end)."""
        refuse_without_facts(evidence)
        self.base, self.relation_weight = base, relation_weight
        index, arguments = base.decode(evidence.atoms[evidence.truth])
        groups: dict[tuple[object, ...], list[int]] = {}
        for i, predicate in enumerate(base.language.predicates):
            groups.setdefault((predicate.domains, predicate.reciprocal_of is None), []).append(i)
        self.groups: list[tuple[list[int], list[int], tuple[Tensor, ...]]] = []
        for predicates in groups.values():
            which = np.isin(index, predicates)
            if not which.any():
                continue
            arity = base.language.predicates[predicates[0]].arity
            chosen = range(arity) if positions is None else positions
            asked = sorted({p % arity for p in chosen if -arity <= p < arity})
            place = np.searchsorted(predicates, index[which])
            domains = base.language.predicates[predicates[0]].domains
            places = [base.place(domain, arguments[which, i]) for i, domain in enumerate(domains)]
            self.groups.append((predicates, asked, tuple(torch.from_numpy(np.array(x)) for x in (place, *places))))

    def to(self, device: torch.device) -> "WholeRows":
        """The same on another device."""
        moved = copy(self)
        moved.groups = [(*group[:2], tuple(part.to(device) for part in group[2])) for group in self.groups]
        return moved

    def _grid(self, out: Tensor, predicates: list[int]) -> Tensor:
        """The logits of some predicates as (predicates, constants of position 0, ...)."""
        shape = self.base.shapes[predicates[0]]
        starts = [int(self.base.offsets[i]) for i in predicates]
        size = int(self.base.offsets[predicates[0] + 1]) - starts[0]
        if predicates == list(range(predicates[0], predicates[-1] + 1)):
            return out[starts[0] : starts[0] + size * len(predicates)].view(len(predicates), *shape)
        return torch.stack([out[start : start + size] for start in starts]).view(len(predicates), *shape)

    def loss(self, out: Float[Tensor, " atoms"]) -> Float[Tensor, ""]:
        """The mean over facts and asked positions of minus the log of the fact's share of its row.

        `out` are the logits of all atoms of the base; relations are a term of their own, with its own mean.
        """
        rows, relations = [], []
        for predicates, asked, facts in self.groups:
            grid = self._grid(out, predicates)
            true = grid[facts]
            for position in asked:
                others = [part for axis, part in enumerate(facts) if axis != position + 1]
                rows.append(torch.logsumexp(grid, dim=position + 1)[tuple(others)] - true)
            if self.relation_weight:
                relations.append(torch.logsumexp(grid, dim=0)[facts[1:]] - true)
        loss = torch.cat(rows).mean()
        return loss + self.relation_weight * torch.cat(relations).mean() if relations else loss
