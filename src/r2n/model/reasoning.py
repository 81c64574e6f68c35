"""Tensors -> predictions: a reasoning layer, one round of message passing on the factor graph (eqs. 2-5).

Computed factored. The first linear map of MLP^1_j acts on a concatenation, so it is applied once per atom and
position and gathered; the last linear map of MLP^2_{j,i} commutes with the sum, so it is applied once per atom
after the messages are summed. The numbers are those of the equations.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import dropout, linear

from r2n.graph.incidence import Incidence, RuleIncidence
from r2n.model.mlp import MLP, PositionMLP

Aggregation = Literal["sum", "mean", "max", "mean-then-sum"]
Isolated = Literal["keep", "zero"]


class ReasoningLayer(nn.Module):
    """Emb^{l-1}(a) -> Emb^l(a): from atoms to ground rules by MLP^1_j, and back by MLP^2_{j,i}.

    `update_rule[j]` is MLP^1_j on the concatenation of its atoms; where its input is as wide as one atom, it is
    order-blind and acts on their sum. `message_to_atoms[j]` is MLP^2_{j,i} for all positions i. An atom in no
    ground rule keeps its embedding, or (`isolated="zero"`) gets the empty sum. With `exclude_self`, the message
    to position i comes from the other positions alone.
    """

    def __init__(
        self,
        update_rule: Sequence[MLP],
        message_to_atoms: Sequence[PositionMLP],
        *,
        aggregation: Aggregation = "mean",
        residual: bool = False,
        exclude_self: bool = False,
        isolated: Isolated = "keep",
        rule_dropout: float = 0.0,
    ) -> None:
        """One MLP^1 and one MLP^2 per rule."""
        super().__init__()
        self.update_rule, self.message_to_atoms = nn.ModuleList(update_rule), nn.ModuleList(message_to_atoms)
        self.aggregation: Aggregation = aggregation
        self.isolated: Isolated = isolated
        self.residual, self.exclude_self, self.rule_dropout = residual, exclude_self, rule_dropout

    def parts(self) -> list[tuple[MLP, PositionMLP]]:
        """MLP^1_j and MLP^2_j, rule by rule."""
        pairs = zip(self.update_rule, self.message_to_atoms, strict=True)
        return [(u, m) for u, m in pairs if isinstance(u, MLP) and isinstance(m, PositionMLP)]

    def forward(
        self, atoms: Float[Tensor, "atoms dim"], incidence: Incidence
    ) -> tuple[Float[Tensor, "atoms dim"], list[Float[Tensor, "_ rule_dim"]]]:
        """The atoms' new embeddings Emb^l(a), and the ground rules' Emb^l(g), rule by rule."""
        rules, messages = [], []
        for (update, to_atoms), rule in zip(self.parts(), incidence.rules, strict=True):
            embedding, at_positions = self._rule(atoms, rule, update)  # eqs. 2, 3
            rules.append(embedding)
            messages.append(to_atoms.before_last(dropout(at_positions, self.rule_dropout, self.training)))  # eq. 4
        if not messages:
            return (atoms if self.isolated == "keep" or self.residual else torch.zeros_like(atoms)), rules
        updated = (
            self._maximum(messages, incidence, atoms) if self.aggregation == "max" else self._sum(messages, incidence)
        )
        if self.isolated == "keep" and not self.residual:
            updated = torch.where((incidence.messages > 0).unsqueeze(1), updated, atoms)
        return (atoms + updated if self.residual else updated), rules

    def _rule(self, atoms: Tensor, rule: RuleIncidence, update: MLP) -> tuple[Tensor, Tensor]:
        """Emb(g), and what MLP^2 reads: Emb(g) itself, or with `exclude_self` one for each position."""
        first = update.linear()[0]
        positions, dim = len(rule.tables), atoms.shape[1]
        is_ordered = first.in_features == positions * dim
        weights = first.weight.split(dim, dim=1) if is_ordered else [first.weight] * positions
        mapped = [linear(atoms[table], weight) for table, weight in zip(rule.tables, weights, strict=True)]
        total = rule.meeting.sum_at_rules(mapped) + first.bias
        embedding = update.after_first(total)
        if not self.exclude_self:
            return embedding, embedding
        return embedding, update.after_first(total.unsqueeze(1) - rule.meeting.at_rules(mapped))

    def _sum(self, messages: list[Tensor], incidence: Incidence) -> Tensor:
        """Eq. 5 by sum, mean, or mean within a rule and sum over rules."""
        arrived: list[Tensor] = []
        parts = zip(messages, incidence.rules, self.parts(), incidence.messages_by_rule, strict=True)
        for message, rule, (_, to_atoms), received in parts:
            sums = rule.meeting.sum_at_atoms(message)
            for i, (table, count, total) in enumerate(zip(rule.tables, rule.counts, sums, strict=True)):
                arriving = to_atoms.last(total, i) + count.unsqueeze(1) * to_atoms.last_bias(i)
                if self.aggregation == "mean-then-sum":
                    arriving = arriving / received[table].unsqueeze(1)
                arrived.append(arriving)
        updated = incidence.sum_at_atoms(arrived)
        return updated / incidence.messages.clamp(min=1).unsqueeze(1) if self.aggregation == "mean" else updated

    def _maximum(self, messages: list[Tensor], incidence: Incidence, atoms: Tensor) -> Tensor:
        """Eq. 5 by maximum; the last map does not commute with it, so it is applied to each message."""
        updated = torch.full_like(atoms, -torch.inf)
        for message, rule, (_, to_atoms) in zip(messages, incidence.rules, self.parts(), strict=True):
            for i, (table, target) in enumerate(zip(rule.tables, rule.meeting.targets(), strict=True)):
                arriving = to_atoms.last(message[:, i], i) + to_atoms.last_bias(i)
                rows = table[target].unsqueeze(1).expand_as(arriving)
                updated = updated.scatter_reduce(0, rows, arriving, "amax")
        return torch.where((incidence.messages > 0).unsqueeze(1), updated, torch.zeros_like(updated))
