"""Tensors -> predictions: answers from rules alone, by belief propagation on the factor graph.

`paper` iterates the layer of Theorem 1. `max-product` and `sum-product` are the textbook's: the message to an atom
leaves out what that atom said, the beliefs given at the start stay as potentials of single atoms, and on trees the
result is exact. There a rule of weight w has the potential exp(w) where it holds and 1 where not; a rule without weight
holds strictly.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor

from r2n.graph.factor_graph import FactorGraph
from r2n.graph.incidence import Incidence
from r2n.logic.theory import Rule
from r2n.model.belief_propagation import LOG_ZERO, belief_layer, satisfying

Method = Literal["paper", "max-product", "sum-product"]
LogBeliefs = Float64[Tensor, "atoms 2"]


def log_beliefs(probability: Float[Tensor, " atoms"]) -> LogBeliefs:
    """(log b(false), log b(true)) of atoms that are true with these probabilities."""
    probability = probability.double()
    return torch.stack([1 - probability, probability], dim=1).log().clamp(min=LOG_ZERO)


def normalised(beliefs: LogBeliefs) -> LogBeliefs:
    """The same beliefs, with probabilities that add up to one."""
    return beliefs - torch.logsumexp(beliefs, dim=1, keepdim=True)


def infer(
    graph: FactorGraph, beliefs: LogBeliefs, *, method: Method = "paper", iterations: int = 10, damping: float = 0.0
) -> LogBeliefs:
    """Normalised log-beliefs after so many iterations from those given; `damping` is the share of the old messages.

    It ends earlier where nothing changes any more.
    """
    if method != "paper":
        return _textbook(graph, beliefs, maximum=method == "max-product", iterations=iterations, damping=damping)
    layer = belief_layer(graph.rules).to(beliefs.device)
    incidence, beliefs = Incidence.of(graph).to(beliefs.device), normalised(beliefs)
    for _ in range(iterations):
        updated, _ = layer(beliefs, incidence, rule_embeddings=False)
        before, beliefs = beliefs, normalised((1 - damping) * normalised(updated) + damping * beliefs)
        if torch.equal(before, beliefs):
            break
    return beliefs


@dataclass
class _Factors:
    """The ground rules of one rule: potentials of all assignments, and the messages they sent last."""

    rows: Int64[Tensor, "ground_rules positions"]
    assignments: Bool[Tensor, "assignments positions"]
    potentials: Float64[Tensor, "ground_rules assignments"]
    is_first: Bool[Tensor, "ground_rules positions"]
    messages: Float64[Tensor, "ground_rules positions 2"]

    @classmethod
    def of(cls, rule: Rule, rows: Tensor) -> "_Factors":
        """An atom that fills several positions of a ground rule is one variable: the first of them speaks for it."""
        positions, device, satisfied = rows.shape[1], rows.device, satisfying(rule)  # refuses too many atoms
        bits = torch.arange(positions - 1, -1, -1, device=device)
        assignments = (torch.arange(2**positions, device=device).unsqueeze(1) >> bits) & 1 == 1
        holds = torch.zeros(2**positions, dtype=torch.bool, device=device)
        for assignment in satisfied:
            holds[int(sum(int(value) << int(bit) for value, bit in zip(assignment, bits.tolist(), strict=True)))] = True
        low, high = (LOG_ZERO, 0.0) if rule.weight is None else (0.0, rule.weight)
        potentials = torch.tensor([low, high], dtype=torch.float64, device=device)[holds.long()].repeat(len(rows), 1)
        is_first = torch.ones_like(rows, dtype=torch.bool)
        for j in range(positions):
            for i in range(j):
                same = rows[:, i] == rows[:, j]
                is_first[:, j] &= ~same
                differ = assignments[:, i] != assignments[:, j]
                potentials[same.unsqueeze(1) & differ] = LOG_ZERO
        return cls(rows, assignments, potentials, is_first, potentials.new_zeros(*rows.shape, 2))

    def send(self, totals: LogBeliefs, *, maximum: bool, damping: float) -> bool:
        """New messages, from what each atom believes without the last ones; whether any is another."""
        heard = (totals[self.rows] - self.messages) * self.is_first.unsqueeze(2)
        chosen = self.assignments.long()
        positions = range(self.rows.shape[1])
        scores = self.potentials + sum(heard[:, i, chosen[:, i]] for i in positions)
        sent = torch.zeros_like(self.messages)
        for i in positions:
            for value in (0, 1):
                part = scores[:, chosen[:, i] == value] - heard[:, i, value].unsqueeze(1)
                sent[:, i, value] = part.amax(1) if maximum else torch.logsumexp(part, 1)
        sent = (sent - sent.amax(2, keepdim=True)).clamp(min=LOG_ZERO) * self.is_first.unsqueeze(2)
        before, self.messages = self.messages, (1 - damping) * sent + damping * self.messages
        return not torch.equal(before, self.messages)


def _textbook(graph: FactorGraph, beliefs: LogBeliefs, *, maximum: bool, iterations: int, damping: float) -> LogBeliefs:
    """All messages at once, again and again."""
    parts = zip(graph.rules, graph.neighbours, strict=True)
    factors = [_Factors.of(rule, rows.to(beliefs.device)) for rule, rows in parts]
    totals = beliefs.clone()
    for _ in range(iterations):
        if not sum([part.send(totals, maximum=maximum, damping=damping) for part in factors]):
            break
        totals = beliefs.clone()
        for part in factors:
            totals.index_add_(0, part.rows.flatten(), part.messages.flatten(0, 1))
    return normalised(totals)
