"""Reasoning layers (eqs. 2-5): plain, factored and dense."""

from collections.abc import Sequence
from math import prod
from typing import Literal

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn, relu
from torch.nn.functional import dropout, embedding, linear

from r2n.components import aggregations
from r2n.logic.language import Language
from r2n.logic.theory import Rule
from r2n.network.grid import Atoms, DenseGrid, Grid, GridAtoms, RuleBox, row_dropout
from r2n.network.mean_field import MeanField
from r2n.network.mlp import MLP, ModulesOf, PositionMLP
from r2n.network.scatter import GatherScatter, Incidence, RuleIncidence
from r2n.options import ModelOptions


class RuleEmbedding(nn.Module):
    """Two vectors a rule: MLP^1_j of rule j has the hidden layer relu((1 + s_j) * W x + b + t_j), W and b shared."""

    def __init__(self, rules: int, hidden: int) -> None:
        """Both start at zero: a rule is its group's network until it learns more."""
        super().__init__()
        self.scales = nn.Parameter(torch.zeros(rules, hidden))
        self.shifts = nn.Parameter(torch.zeros(rules, hidden))


class _MessagePass(torch.autograd.Function):
    @staticmethod
    def forward(ctx, index: GatherScatter, slots: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.index = index
        ctx.save_for_backward(slots, weight, bias)
        sums = slots.new_zeros(len(slots), bias.shape[1])
        for part in index.parts:
            messages = torch.addmm(bias.flatten(), relu(part.sum_at_rules(slots)), weight).relu_()
            part.add_at_atoms(messages.unflatten(1, bias.shape), sums)
        return sums

    @staticmethod
    def backward(ctx, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        slots, weight, bias = ctx.saved_tensors
        grad_sums = grad_outputs[0].contiguous()
        to_slots, to_weight, to_bias = torch.zeros_like(slots), torch.zeros_like(weight), torch.zeros_like(bias)
        back = weight.t().contiguous()
        for part in ctx.index.parts:
            hidden = relu(part.sum_at_rules(slots))
            messages = torch.addmm(bias.flatten(), hidden, weight)
            to_messages = part.at_rules(grad_sums)
            if to_messages.shape[1] != len(bias):  # one message for all positions
                to_messages = to_messages.sum(1)
            to_messages = _relu_gradient(messages, to_messages.flatten(1))
            to_weight.addmm_(hidden.t(), to_messages)
            to_bias += to_messages.sum(0).view_as(bias)
            to_hidden = _relu_gradient(hidden, to_messages @ back)
            part.add_at_atoms(to_hidden.unsqueeze(1), to_slots)
        return None, to_slots, to_weight, to_bias


def _relu_gradient(values: Tensor, grad: Tensor) -> Tensor:
    """The gradient of a ReLU; overwrites the one that arrives."""
    return torch.ops.aten.threshold_backward.grad_input(grad, values, 0, grad_input=grad)


message_pass = _MessagePass.apply
"""For each slot of an index, the sum over its ground rules of relu(relu(sum of their slots) @ weight + bias).

The bias is (copies, message); copies: one message for each position, or one for all.
"""

Counts = Int64[Tensor, " atoms"]
Vectors = Float[Tensor, "atoms dim"]
Rows = Int64[Tensor, "messages dim"]
Messages = Float[Tensor, "messages dim"]


class Aggregation:
    """How the messages that an atom receives become one vector (eq. 5).

    A linear one divides sums of messages: those of each rule by `divide_rule(counts)` and that over all rules by
    `divide_all(counts)`, functions of the number of messages; None divides by nothing. Any other sets `is_linear` to
    False, starts from `initial` and combines the messages that come one after the other in `combine`.
    """

    is_linear, initial = True, 0.0

    @property
    def adds_messages(self) -> bool:
        """Whether it is one sum of messages, so that some of them can be exchanged for others."""
        return self.is_linear and self.divide_rule(torch.ones(1, dtype=torch.int64)) is None

    def divide_rule(self, counts: Counts) -> Tensor | None:
        """What the sum of a rule's messages is divided by."""
        return None

    def divide_all(self, counts: Counts) -> Tensor | None:
        """What the sum over all rules is divided by; an atom may receive no message."""
        return None

    def combine(self, found: Vectors, rows: Rows, messages: Messages) -> Vectors:
        """What was found so far, with messages to the atoms in some rows."""
        return found.scatter_add(0, rows, messages)


class Sum(Aggregation):
    """The sum of all messages."""


class Mean(Aggregation):
    """The mean of all messages."""

    def divide_all(self, counts: Counts) -> Tensor:
        """Their number."""
        return counts.clamp(min=1)


class MeanThenSum(Aggregation):
    """The mean over the messages of each rule, summed over rules."""

    def divide_rule(self, counts: Counts) -> Tensor:
        """Their number."""
        return counts.clamp(min=1)


class Maximum(Aggregation):
    """The maximum over all messages, dimension by dimension."""

    is_linear, initial = False, -torch.inf

    def combine(self, found: Vectors, rows: Rows, messages: Messages) -> Vectors:
        """The larger one."""
        return found.scatter_reduce(0, rows, messages, "amax")


Isolated = Literal["keep", "zero"]


class ReasoningLayer(nn.Module):
    """Emb^{l-1}(a) -> Emb^l(a): from atoms to ground rules by MLP^1_j, and back by MLP^2_{j,i}.

    `update_rule[j]` is MLP^1_j on the concatenation of its atoms; where its input is as wide as one atom, it is
    order-blind and acts on their sum. `message_to_atoms[j]` is MLP^2_{j,i} for all positions i. An atom in no
    ground rule keeps its embedding, or (`isolated="zero"`) gets the empty sum. With a `rule_embedding`, j numbers
    groups of rules with as many atoms, in the order of that number, and the incidence is to be grouped.
    """

    def __init__(
        self,
        update_rule: Sequence[MLP],
        message_to_atoms: Sequence[PositionMLP],
        *,
        aggregation: Aggregation,
        isolated: Isolated,
        residual: bool,
        rule_dropout: float,
        rule_embedding: RuleEmbedding | None = None,
    ) -> None:
        """One MLP^1 and one MLP^2 per rule, or per group of rules."""
        super().__init__()
        self.update_rule, self.message_to_atoms = ModulesOf(update_rule), ModulesOf(message_to_atoms)
        self.aggregation = aggregation
        self.isolated: Isolated = isolated
        self.residual, self.rule_dropout = residual, rule_dropout
        self.rule_embedding = rule_embedding

    @property
    def is_over_grids(self) -> bool:
        """Whether its messages leave the atoms of grids in their form, and every rule has networks of its own."""
        is_linear = all(len(to_atoms.weights) == 1 for to_atoms in self.message_to_atoms)
        return is_linear and self.aggregation.is_linear and self.rule_embedding is None

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
        parts = zip(self.parts(), at_slots, incidence.rules, strict=True)
        mapped = [self._mapped(update, slots, rule) for (update, _), slots, rule in parts]
        updated = (self._sum if self.aggregation.is_linear else self._combined)(mapped, incidence)
        if self.isolated == "keep" and not self.residual:
            updated = torch.where((incidence.messages > 0).unsqueeze(1), updated, atoms)
        updated = atoms + updated if self.residual else updated
        found: dict[int, Tensor] = {}
        for (update, _), slots, rule in zip(self.parts(), mapped, incidence.rules, strict=True):
            if not rule_embeddings:
                break
            embedding = update.after_first(rule.index.sum_at_rules(slots) + self._bias(update, rule))
            if rule.owners is None:
                found[len(found)] = embedding
            else:
                found |= zip(rule.owners.rules, embedding.split(rule.owners.sizes), strict=True)
        return updated, [found[j] for j in range(len(found))]

    def _mapped(self, update: MLP, slots: Tensor, rule: RuleIncidence) -> Tensor:
        """Eq. 2 and the first linear map of MLP^1_j: each atom in a slot, by the columns of its position."""
        weight, dim = update.linear()[0].weight, slots.shape[1]
        if weight.shape[1] == dim and len(rule.tables) > 1:  # order-blind
            mapped = linear(slots, weight)
        else:
            pairs = zip(slots.split(rule.sizes), weight.split(dim, dim=1), strict=True)
            mapped = torch.cat([linear(table, columns) for table, columns in pairs])
        if self.rule_embedding is None or rule.owners is None:
            return mapped
        return mapped * embedding(rule.owners.of_slots, 1 + self.rule_embedding.scales)

    def _bias(self, update: MLP, rule: RuleIncidence) -> Tensor:
        """The bias of that map: one for all ground rules, or one for each."""
        bias = update.linear()[0].bias
        if self.rule_embedding is None or rule.owners is None:
            return bias
        return bias + embedding(rule.owners.of_ground_rules, self.rule_embedding.shifts)

    def _messages(self, update: MLP, to_atoms: PositionMLP, slots: Tensor, rule: RuleIncidence) -> Tensor:
        """Eqs. 3, 4 up to the last map of MLP^2, for each ground rule and position."""
        total = rule.index.sum_at_rules(slots) + self._bias(update, rule)
        return to_atoms.before_last(dropout(update.after_first(total), self.rule_dropout, self.training))

    def _summed(self, update: MLP, to_atoms: PositionMLP, slots: Tensor, rule: RuleIncidence) -> Tensor:
        """Eqs. 3-5 up to the last map of MLP^2: what arrives at each slot of a rule."""
        is_plain = len(update.layers) == len(to_atoms.weights) == 2 and not update.last_relu
        if not is_plain or (self.rule_dropout and self.training):
            return rule.index.sum_at_atoms(self._messages(update, to_atoms, slots, rule))
        first, last = update.linear()
        weight = to_atoms.weights[0].transpose(0, 1).flatten(1)
        bias = (last.bias @ weight).view_as(to_atoms.biases[0]) + to_atoms.biases[0]
        at_first = rule.sizes[0]  # every ground rule has one atom at its first position: the bias goes there
        own = first.bias
        if self.rule_embedding is not None and rule.owners is not None:
            own = own + embedding(rule.owners.of_slots[:at_first], self.rule_embedding.shifts)
        slots = torch.cat([slots[:at_first] + own, slots[at_first:]])
        return message_pass(rule.index, slots, last.weight.t() @ weight, bias)

    def _sum(self, mapped: list[Tensor], incidence: Incidence) -> Tensor:
        """Eq. 5 by a linear aggregation: the last map of MLP^2 is applied to sums."""
        arrived: list[Tensor] = []
        for slots, rule, (update, to_atoms) in zip(mapped, incidence.rules, self.parts(), strict=True):
            # In a training, the weights of a rule without ground rules need their zero gradient.
            if not any(rule.sizes) and not torch.is_grad_enabled():
                arrived += [slots.new_zeros(0, to_atoms.weights[-1].shape[-1])] * len(rule.sizes)
                continue
            sums = self._summed(update, to_atoms, slots, rule).split(rule.sizes)
            for i, (received, count, total) in enumerate(zip(rule.received, rule.counts, sums, strict=True)):
                arriving = to_atoms.last(total, i) + count.unsqueeze(1) * to_atoms.last_bias(i)
                arrived.append(_divided(arriving, self.aggregation.divide_rule(received)))
        return _divided(incidence.sum_at_atoms(arrived), self.aggregation.divide_all(incidence.messages))

    def _combined(self, mapped: list[Tensor], incidence: Incidence) -> Tensor:
        """Eq. 5 by any other aggregation: the last map of MLP^2 is applied to each message."""
        dim = self.parts()[0][1].weights[-1].shape[-1]
        updated = mapped[0].new_full((len(incidence.messages), dim), self.aggregation.initial)
        for slots, rule, (update, to_atoms) in zip(mapped, incidence.rules, self.parts(), strict=True):
            message = self._messages(update, to_atoms, slots, rule)
            rows = rule.index.at_rules(torch.cat(rule.tables).unsqueeze(1))
            for i in range(len(rule.tables)):
                arriving = to_atoms.last(message[:, i], i) + to_atoms.last_bias(i)
                updated = self.aggregation.combine(updated, rows[:, i].expand_as(arriving), arriving)
        return torch.where((incidence.messages > 0).unsqueeze(1), updated, torch.zeros_like(updated))


def _divided(sums: Tensor, divisor: Tensor | None) -> Tensor:
    return sums if divisor is None else sums / divisor.unsqueeze(1)


def make_layers(
    rules: Sequence[Rule], language: Language, options: ModelOptions
) -> list[ReasoningLayer] | list[MeanField]:
    """The reasoning layers; all steps of the reasoner `mean-field` are one module."""
    if options.reasoner == "mean-field":
        return [MeanField(rules, language)] * options.layers
    return [make_layer(rules, options) for _ in range(options.layers)]


def make_layer(rules: Sequence[Rule], options: ModelOptions) -> ReasoningLayer:
    """A reasoning layer for rules; for the reasoner `fgnn`, its order-blind layer.

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
        aggregation=aggregations[options.aggregation].load()(),
        isolated=options.isolated,
        residual=options.residual,
        rule_dropout=options.rule_dropout,
        rule_embedding=RuleEmbedding(len(rules), rule_dim) if is_shared else None,
    )


def reason(
    grids: DenseGrid, layer: ReasoningLayer, atoms: Sequence[Atoms]
) -> tuple[list[GridAtoms], list[Float[Tensor, "_ rule_dim"]]]:
    """Emb^{l-1}(a) -> Emb^l(a), and Emb^l(g), rule by rule (eqs. 2-5)."""
    arriving: list[list[GridAtoms]] = [[] for _ in atoms]  # for each grid, what is to be summed
    embeddings = []
    drop = layer.rule_dropout if layer.training else 0.0
    for rule, (update, to_atoms) in zip(grids.rules, layer.parts(), strict=True):
        embedding = update.after_first(_total(update, rule, atoms, grids.grids))
        embeddings.append(embedding)
        sent = row_dropout(embedding.view(*rule.box, embedding.shape[-1]), drop)
        for reading in rule.readings:  # sums over the axes that the atoms do not have, in the order of the grid
            others = [axis for axis in range(len(rule.box)) if axis not in reading.axes]
            summed, left = sent.sum(others) if others else sent, sorted(reading.axes)
            summed = summed.permute(*(left.index(axis) for axis in reading.axes), len(left))
            weights, biases = (
                reading.predicates.sum_at(reading.positions.take(last.expand(to_atoms.positions, *last.shape[1:])))
                for last in (to_atoms.weights[-1], to_atoms.biases[-1] * reading.times)
            )
            messages = GridAtoms(summed.reshape(prod(grids.grids[reading.grid].shape), -1), weights, biases)
            divisor = layer.aggregation.divide_rule(rule.received[reading.grid])
            arriving[reading.grid].append(_divided_grid(messages, divisor))
    parts = zip(atoms, arriving, grids.received, grids.has_isolated, strict=True)
    return [_grid_sum(layer, *part) for part in parts], embeddings


def _divided_grid(atoms: GridAtoms, divisor: Tensor | None) -> GridAtoms:
    """Divided by one number for each predicate."""
    if divisor is None:
        return atoms
    return GridAtoms(atoms.features, atoms.maps / divisor.view(-1, 1, 1), atoms.offsets / divisor.unsqueeze(1))


def _grid_sum(
    layer: ReasoningLayer, old: Atoms, arriving: list[GridAtoms], received: Tensor, has_isolated: bool
) -> GridAtoms:
    """Emb^l(a) of a grid: the sum of what arrives there, and of the old embeddings that are kept."""
    parts = [_divided_grid(part, layer.aggregation.divide_all(received)) for part in arriving]
    if layer.residual or (layer.isolated == "keep" and has_isolated):
        kept = (torch.ones_like(received) if layer.residual else received == 0).to(old.offsets)
        parts.append(GridAtoms(old.features, old.maps * kept.view(-1, 1, 1), old.offsets * kept.unsqueeze(1)))
    nothing = torch.zeros_like(old.offsets)
    if not parts:
        return GridAtoms(old.features[:, :0], nothing.unsqueeze(1)[:, :0], nothing)
    return GridAtoms(
        _joined([part.features for part in parts]),
        _joined([part.maps for part in parts]),
        sum([part.offsets for part in parts], nothing),
    )


def _total(
    update: MLP, rule: RuleBox, atoms: Sequence[Atoms], grids: Sequence[Grid]
) -> Float[Tensor, "ground_rules hidden"]:
    """Eq. 2 and the first linear map of MLP^1: one product a reading, then broadcast addition over the box."""
    first = update.linear()[0]
    positions, dim = rule.readings[0].positions.size, atoms[0].offsets.shape[1]
    columns = first.weight.unflatten(1, (-1, dim)).transpose(0, 1).expand(positions, -1, -1)
    total = first.bias
    for reading in rule.readings:
        part, grid = atoms[reading.grid], grids[reading.grid]
        by_position = reading.positions.take(columns)
        offset = torch.einsum("kd,khd->h", reading.predicates.take(part.offsets), by_position)
        table = torch.addmm(offset, part.features, part.into(reading.predicates, by_position))
        order = sorted(range(len(reading.axes)), key=reading.axes.__getitem__)
        table = table.view(*grid.shape, table.shape[-1]).permute(*order, len(order))
        for axis in range(len(rule.box)):  # of size 1 along the other axes of the box
            if axis not in reading.axes:
                table = table.unsqueeze(axis)
        total = total + table
    return total.expand(*rule.box, -1).reshape(prod(rule.box), -1)


def _joined(blocks: list[Tensor]) -> Tensor:
    """Blocks joined on axis 1; a single one is not copied."""
    return blocks[0] if len(blocks) == 1 else torch.cat(blocks, dim=1)
