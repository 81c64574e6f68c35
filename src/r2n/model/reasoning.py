"""Tensors -> predictions: a reasoning layer, one round of message passing on the factor graph (eqs. 2-5).

Computed factored. The first linear map of MLP^1_j acts on a concatenation, so it is applied once per atom and
position and gathered; the last linear map of MLP^2_{j,i} commutes with the sum, so it is applied once per atom
after the messages are summed. What is left between them is one pass over the ground rules (`message_pass`), or, where
an option stands between, step by step. The numbers are those of the equations.

With `rule_network = "shared"`, rules with as many atoms share MLP^1 and MLP^2, and differ by a rule embedding alone:
all their ground rules go through one pass.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import dropout, linear

from r2n.graph.incidence import Incidence, RuleIncidence
from r2n.knowledge.options import ModelOptions
from r2n.logic.theory import Rule
from r2n.model.message_pass import message_pass
from r2n.model.mlp import MLP, ModulesOf, PositionMLP
from r2n.model.rule_embedding import RuleEmbedding

Aggregation = Literal["sum", "mean", "max", "mean-then-sum"]
Isolated = Literal["keep", "zero"]


class ReasoningLayer(nn.Module):
    """Emb^{l-1}(a) -> Emb^l(a): from atoms to ground rules by MLP^1_j, and back by MLP^2_{j,i}.

    `update_rule[j]` is MLP^1_j on the concatenation of its atoms; where its input is as wide as one atom, it is
    order-blind and acts on their sum. `message_to_atoms[j]` is MLP^2_{j,i} for all positions i. An atom in no
    ground rule keeps its embedding, or (`isolated="zero"`) gets the empty sum. With `exclude_self`, the message
    to position i comes from the other positions alone. With a `rule_embedding`, j numbers groups of rules with as many
    atoms, in the order of that number, and the incidence is to be grouped.
    """

    def __init__(
        self,
        update_rule: Sequence[MLP],
        message_to_atoms: Sequence[PositionMLP],
        *,
        aggregation: Aggregation,
        isolated: Isolated,
        residual: bool,
        exclude_self: bool,
        rule_dropout: float,
        rule_embedding: RuleEmbedding | None = None,
    ) -> None:
        """One MLP^1 and one MLP^2 per rule, or per group of rules."""
        super().__init__()
        self.update_rule, self.message_to_atoms = ModulesOf(update_rule), ModulesOf(message_to_atoms)
        self.aggregation: Aggregation = aggregation
        self.isolated: Isolated = isolated
        self.residual, self.exclude_self, self.rule_dropout = residual, exclude_self, rule_dropout
        self.rule_embedding = rule_embedding

    def parts(self) -> list[tuple[MLP, PositionMLP]]:
        """MLP^1_j and MLP^2_j, rule by rule, or group by group."""
        return list(zip(self.update_rule, self.message_to_atoms, strict=True))

    def forward(
        self, atoms: Float[Tensor, "atoms dim"], incidence: Incidence, *, rule_embeddings: bool = True
    ) -> tuple[Float[Tensor, "atoms dim"], list[Float[Tensor, "_ rule_dim"]]]:
        """The atoms' new embeddings Emb^l(a), and the ground rules' Emb^l(g), rule by rule, if they are wanted."""
        if not incidence.rules:
            return (atoms if self.isolated == "keep" or self.residual else torch.zeros_like(atoms)), []
        at_slots = incidence.at_slots(atoms)
        mapped = [
            self._scaled(_mapped(update, slots, rule), rule)
            for (update, _), slots, rule in zip(self.parts(), at_slots, incidence.rules, strict=True)
        ]
        arrive = self._maximum if self.aggregation == "max" else self._sum
        updated = arrive(mapped, incidence)
        if self.isolated == "keep" and not self.residual:
            updated = torch.where((incidence.messages > 0).unsqueeze(1), updated, atoms)
        rules = self._rule_embeddings(mapped, incidence) if rule_embeddings else []
        return (atoms + updated if self.residual else updated), rules

    def _rule_embeddings(self, mapped: list[Tensor], incidence: Incidence) -> list[Tensor]:
        """Eqs. 2, 3: Emb^l(g), rule by rule."""
        found: dict[int, Tensor] = {}
        for (update, _), slots, rule in zip(self.parts(), mapped, incidence.rules, strict=True):
            embedding = update.after_first(rule.ways.sum_at_rules(slots) + self._bias(update, rule))
            if rule.owners is None:
                found[len(found)] = embedding
            else:
                found |= zip(rule.owners.rules, embedding.split(rule.owners.sizes), strict=True)
        return [found[j] for j in range(len(found))]

    def _scaled(self, slots: Tensor, rule: RuleIncidence) -> Tensor:
        """The first linear map of MLP^1_j, made of the one that its group shares."""
        if self.rule_embedding is None or rule.owners is None:
            return slots
        return slots * self.rule_embedding.scale(rule.owners.of_slots)

    def _bias(self, update: MLP, rule: RuleIncidence) -> Tensor:
        """The bias of that map: one for all ground rules, or one for each."""
        bias = update.linear()[0].bias
        if self.rule_embedding is None or rule.owners is None:
            return bias
        return bias + self.rule_embedding.shift(rule.owners.of_ground_rules)

    def _messages(self, update: MLP, to_atoms: PositionMLP, slots: Tensor, rule: RuleIncidence) -> Tensor:
        """Eqs. 3, 4 up to the last map of MLP^2, for each ground rule and position."""
        total = rule.ways.sum_at_rules(slots) + self._bias(update, rule)
        if self.exclude_self:
            total = total.unsqueeze(1) - rule.ways.at_rules(slots)
        return to_atoms.before_last(dropout(update.after_first(total), self.rule_dropout, self.training))

    def _summed(self, update: MLP, to_atoms: PositionMLP, slots: Tensor, rule: RuleIncidence) -> Tensor:
        """Eqs. 3-5 up to the last map of MLP^2: what arrives at each slot of a rule."""
        is_plain = len(update.layers) == len(to_atoms.weights) == 2 and not update.last_relu
        if not is_plain or self.exclude_self or (self.rule_dropout and self.training):
            return rule.ways.sum_at_atoms(self._messages(update, to_atoms, slots, rule))
        first, last = update.linear()
        weight = to_atoms.weights[0].transpose(0, 1).flatten(1)
        bias = (last.bias @ weight).view_as(to_atoms.biases[0]) + to_atoms.biases[0]
        at_first = rule.sizes[0]  # every ground rule has one atom at its first position: the bias goes there
        own = first.bias
        if self.rule_embedding is not None and rule.owners is not None:
            own = own + self.rule_embedding.shift(rule.owners.of_slots[:at_first])
        slots = torch.cat([slots[:at_first] + own, slots[at_first:]])
        return message_pass(rule.ways, slots, last.weight.t() @ weight, bias)

    def _sum(self, mapped: list[Tensor], incidence: Incidence) -> Tensor:
        """Eq. 5 by sum, mean, or mean within a rule and sum over rules."""
        arrived: list[Tensor] = []
        for slots, rule, (update, to_atoms) in zip(mapped, incidence.rules, self.parts(), strict=True):
            # In a training, the weights of a rule without ground rules need their zero gradient.
            if not any(rule.sizes) and not torch.is_grad_enabled():
                arrived += [slots.new_zeros(0, to_atoms.weights[-1].shape[-1])] * len(rule.sizes)
                continue
            sums = self._summed(update, to_atoms, slots, rule).split(rule.sizes)
            for i, (received, count, total) in enumerate(zip(rule.received, rule.counts, sums, strict=True)):
                arriving = to_atoms.last(total, i) + count.unsqueeze(1) * to_atoms.last_bias(i)
                if self.aggregation == "mean-then-sum":
                    arriving = arriving / received.unsqueeze(1)
                arrived.append(arriving)
        updated = incidence.sum_at_atoms(arrived)
        return updated / incidence.messages.clamp(min=1).unsqueeze(1) if self.aggregation == "mean" else updated

    def _maximum(self, mapped: list[Tensor], incidence: Incidence) -> Tensor:
        """Eq. 5 by maximum; the last map does not commute with it, so it is applied to each message."""
        dim = self.parts()[0][1].weights[-1].shape[-1]
        updated = mapped[0].new_full((len(incidence.messages), dim), -torch.inf)
        for slots, rule, (update, to_atoms) in zip(mapped, incidence.rules, self.parts(), strict=True):
            message = self._messages(update, to_atoms, slots, rule)
            for i, (table, target) in enumerate(zip(rule.tables, rule.ways.targets(), strict=True)):
                arriving = to_atoms.last(message[:, i], i) + to_atoms.last_bias(i)
                rows = table[target].unsqueeze(1).expand_as(arriving)
                updated = updated.scatter_reduce(0, rows, arriving, "amax")
        return torch.where((incidence.messages > 0).unsqueeze(1), updated, torch.zeros_like(updated))


def _mapped(update: MLP, slots: Tensor, rule: RuleIncidence) -> Tensor:
    """Eq. 2 and the first linear map of MLP^1: each atom in a slot, by the columns of its position."""
    weight, positions, dim = update.linear()[0].weight, len(rule.tables), slots.shape[1]
    if weight.shape[1] == dim and positions > 1:  # order-blind
        return linear(slots, weight)
    pairs = zip(slots.split(rule.sizes), weight.split(dim, dim=1), strict=True)
    return torch.cat([linear(table, columns) for table, columns in pairs])


def make_layer(rules: Sequence[Rule], options: ModelOptions) -> ReasoningLayer:
    """A reasoning layer for rules; for the reasoner `fgnn`, its order-blind layer.

    `rule_network="shared"`: one MLP^1 and MLP^2 for all rules of n atoms, for each n in order.

    `mlp="deep"`: Linear-ReLU-Linear for MLP^1 and MLP^2; `"shallow"`: Linear-ReLU for MLP^1 and Linear for MLP^2.
    """
    update, messages = [], []
    dim, rule_dim = options.dim, options.rule_dim or options.dim
    is_deep, is_ordered = options.mlp == "deep", options.reasoner != "fgnn"
    is_shared, sizes_of_rules = options.rule_network == "shared", [len(rule.atoms) for rule in rules]
    for positions in sorted(set(sizes_of_rules)) if is_shared else sizes_of_rules:
        width = positions * dim if is_ordered else dim
        update.append(MLP((width, rule_dim, rule_dim) if is_deep else (width, rule_dim), last_relu=not is_deep))
        sizes = (rule_dim, rule_dim, dim) if is_deep else (rule_dim, dim)
        messages.append(PositionMLP(positions, sizes, shared=not is_ordered))
    return ReasoningLayer(
        update,
        messages,
        aggregation=options.aggregation,
        isolated=options.isolated,
        residual=options.residual,
        exclude_self=options.exclude_self,
        rule_dropout=options.rule_dropout,
        rule_embedding=RuleEmbedding(len(rules), rule_dim) if is_shared else None,
    )
