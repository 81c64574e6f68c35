"""Tensors -> predictions: a reasoning layer over a whole Herbrand base, laid out as grids (eqs. 2-5).

On a grid, Emb(P(x, y)) = features(x, y) @ maps[P] + offsets[P]: the features are shared by all its predicates. Then the
first linear map of MLP^1_j over n atoms of the same variables is one product of the features with a sum of n matrices,
and messages by a linear MLP^2 leave the atoms in this form: Emb(g) are the features of the next layer. The numbers are
those of the equations, at 1/n of their multiplications.
"""

from collections.abc import Sequence
from math import prod

import torch
from jaxtyping import Float
from torch import Tensor

from r2n.model.grid_atoms import Atoms, GridAtoms, row_dropout
from r2n.model.mlp import MLP, PositionMLP
from r2n.model.reasoning import ReasoningLayer
from r2n.model.whole_base import Grid, Reading, Received, RuleBox, WholeBase


def takes(layer: ReasoningLayer) -> bool:
    """Whether the layer's messages leave the atoms in their form, and every rule has networks of its own."""
    if layer.rule_embedding is not None:
        return False
    linear_messages = all(len(to_atoms.weights) == 1 for _, to_atoms in layer.parts())
    return linear_messages and layer.aggregation != "max" and not layer.exclude_self


def reason(
    whole: WholeBase, layer: ReasoningLayer, atoms: Sequence[Atoms]
) -> tuple[list[GridAtoms], list[Float[Tensor, "_ rule_dim"]]]:
    """Emb^{l-1}(a) -> Emb^l(a), and Emb^l(g), rule by rule (eqs. 2-5)."""
    arriving = [_Arriving(old, received) for old, received in zip(atoms, whole.received, strict=True)]
    embeddings = []
    for rule, (update, to_atoms) in zip(whole.rules, layer.parts(), strict=True):
        embedding = update.after_first(_total(update, rule, atoms, whole.grids))
        embeddings.append(embedding)
        sent = row_dropout(
            embedding.view(*rule.box, embedding.shape[-1]), layer.rule_dropout if layer.training else 0.0
        )
        before = {grid: len(arriving[grid].maps) for grid in rule.received}
        for reading in rule.readings:
            features = _at_grid(sent, reading, len(rule.box)).reshape(prod(whole.grids[reading.grid].shape), -1)
            arriving[reading.grid].add(features, to_atoms, reading)
        if layer.aggregation == "mean-then-sum":
            for grid, received in rule.received.items():
                arriving[grid].average(received, since=before[grid])
    return [part.atoms(layer) for part in arriving], embeddings


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
        offset = torch.einsum("kd,khd->h", reading.places.take(part.offsets), by_position)
        table = torch.addmm(offset, part.features, part.into(reading.places, by_position))
        total = total + _at_box(table.view(*grid.shape, table.shape[-1]), reading, len(rule.box))
    return total.expand(*rule.box, -1).reshape(prod(rule.box), -1)


def _at_box(table: Tensor, reading: Reading, variables: int) -> Tensor:
    """A table over a grid as one over the box, of size 1 along the other axes."""
    order = sorted(range(len(reading.axes)), key=reading.axes.__getitem__)
    table = table.permute(*order, len(order))
    for axis in range(variables):
        if axis not in reading.axes:
            table = table.unsqueeze(axis)
    return table


def _at_grid(sent: Tensor, reading: Reading, variables: int) -> Tensor:
    """The sum of what is sent over the axes that the reading's atoms do not have, in the order of the grid."""
    others = [axis for axis in range(variables) if axis not in reading.axes]
    summed = sent.sum(others) if others else sent
    left = sorted(reading.axes)
    return summed.permute(*(left.index(axis) for axis in reading.axes), len(left))


class _Arriving:
    """What arrives at the atoms of a grid: blocks of features, each with the maps of the predicates it goes to."""

    def __init__(self, old: Atoms, received: Received) -> None:
        self.old, self.received = old, received
        self.features: list[Tensor] = []
        self.maps: list[Tensor] = []
        self.offsets: list[Tensor] = []

    def add(self, features: Tensor, to_atoms: PositionMLP, reading: Reading) -> None:
        """The messages of a reading."""
        weights, biases = (
            reading.positions.take(last.expand(to_atoms.positions, *last.shape[1:]))
            for last in (to_atoms.weights[-1], to_atoms.biases[-1] * reading.times)
        )
        self.features.append(features)
        self.maps.append(reading.places.sum_at(weights))
        self.offsets.append(reading.places.sum_at(biases))

    def average(self, received: Received, *, since: int) -> None:
        """The mean over the messages of the blocks from `since` on."""
        if received.most <= 1:
            return
        count = received.counts.clamp(min=1)
        for i in range(since, len(self.maps)):
            self.maps[i] = self.maps[i] / count.view(-1, 1, 1)
            self.offsets[i] = self.offsets[i] / count.unsqueeze(1)

    def atoms(self, layer: ReasoningLayer) -> GridAtoms:
        """Emb^l(a) of the grid."""
        if layer.aggregation == "mean":
            self.average(self.received, since=0)
        if layer.residual:
            self._keep(torch.ones_like(self.received.counts))
        elif layer.isolated == "keep" and self.received.least == 0:
            self._keep(self.received.counts == 0)
        nothing = torch.zeros_like(self.old.offsets)
        if not self.maps:
            return GridAtoms(self.old.features[:, :0], nothing.unsqueeze(1)[:, :0], nothing)
        return GridAtoms(_joined(self.features), _joined(self.maps), sum(self.offsets, nothing))

    def _keep(self, which: Tensor) -> None:
        """Add the old embeddings of the predicates marked 1."""
        kept = which.to(self.old.offsets)
        self.features.append(self.old.features)
        self.maps.append(self.old.maps * kept.view(-1, 1, 1))
        self.offsets.append(self.old.offsets * kept.unsqueeze(1))


def _joined(blocks: list[Tensor]) -> Tensor:
    """Blocks side by side on axis 1."""
    return blocks[0] if len(blocks) == 1 else torch.cat(blocks, dim=1)
