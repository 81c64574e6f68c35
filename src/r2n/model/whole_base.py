"""Tensors -> predictions: the network over a whole Herbrand base, with no index at all.

Where every atom of the base is in the graph, and every substitution of every rule, the atoms of predicates with the
same domains are the points of one *grid*, and Emb(P(x, y)) = features(x, y) @ maps[P] + offsets[P]: the features are
shared by all predicates of the grid. Then the first linear map of MLP^1_j over n atoms of the same variables is one
product of the features with a sum of n matrices, and messages by a linear MLP^2 leave the atoms in this form: Emb(g)
are the features of the next layer. The numbers are those of the equations, at 1/n of their multiplications.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from r2n.graph.factor_graph import FactorGraph
from r2n.knowledge.herbrand import HerbrandBase
from r2n.logic.formula import Variable
from r2n.logic.theory import Rule
from r2n.model.grid_atoms import Atoms, GridAtoms, row_dropout, sum_at, take
from r2n.model.mlp import MLP, PositionMLP
from r2n.model.reasoning import ReasoningLayer

MOST_POINTS = 2**21  # ground rules of a rule; beyond, a pass in parts is faster


@dataclass(frozen=True, eq=False)
class Grid:
    """Predicates (by index) with the same domains, and the constants (by id) of each position."""

    predicates: tuple[int, ...]
    members: tuple[Int64[Tensor, " _"], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of constants of each position."""
        return tuple(map(len, self.members))


@dataclass(frozen=True, eq=False)
class Reading:
    """Positions of a rule whose atoms have the same variables, in the same order, over the same grid.

    `axes[i]` is the variable (by its number in the rule) at position i of the grid; `places` are those of the
    positions' predicates in the grid.
    """

    grid: int
    axes: tuple[int, ...]
    positions: Int64[Tensor, " positions"]
    places: Int64[Tensor, " positions"]


@dataclass(frozen=True, eq=False)
class WholeBase:
    """The grids of a base, and what each rule reads of them over its box of substitutions."""

    grids: tuple[Grid, ...]
    readings: tuple[tuple[Reading, ...], ...]
    boxes: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, graph: FactorGraph, base: HerbrandBase) -> "WholeBase | None":
        """The form of a graph that is whole; None where atoms or substitutions are missing, or an atom is not plain."""
        if len(graph.atoms) != base.size or not base.size:
            return None
        by_domains: dict[tuple[object, ...], list[int]] = {}
        for index, predicate in enumerate(base.language.predicates):
            by_domains.setdefault(predicate.domains, []).append(index)
        grids = tuple(
            Grid(
                tuple(indices),
                tuple(
                    torch.from_numpy(base.language.members(domain).copy())
                    for domain in base.language.predicates[indices[0]].domains
                ),
            )
            for indices in by_domains.values()
        )
        readings, boxes = [], []
        for rule, shape in zip(graph.rules, graph.shapes, strict=True):
            read = None if shape is None or prod(shape) > MOST_POINTS else _readings(rule, shape, grids, base)
            if shape is None or read is None:
                return None
            readings.append(read)
            boxes.append(shape)
        return cls(grids, tuple(readings), tuple(boxes))

    def takes(self, layer: ReasoningLayer) -> bool:
        """Whether the layer's messages leave the atoms in their form."""
        linear_messages = all(len(to_atoms.weights) == 1 for _, to_atoms in layer.parts())
        return linear_messages and layer.aggregation != "max" and not layer.exclude_self

    def layer(self, layer: ReasoningLayer, atoms: Sequence[Atoms]) -> tuple[list[GridAtoms], list[Tensor]]:
        """Emb^{l-1}(a) -> Emb^l(a), and Emb^l(g), rule by rule (eqs. 2-5)."""
        arriving = [_Arriving(old, len(grid.predicates)) for old, grid in zip(atoms, self.grids, strict=True)]
        embeddings = []
        for j, (update, to_atoms) in enumerate(layer.parts()):
            box, readings = self.boxes[j], self.readings[j]
            total = _total(update, box, readings, atoms, self.grids)
            embedding = update.after_first(total)
            embeddings.append(embedding)
            sent = row_dropout(embedding.view(*box, -1), layer.rule_dropout if layer.training else 0.0)
            by_grid = {reading.grid: arriving[reading.grid].mark() for reading in readings}
            for reading in readings:
                shape = self.grids[reading.grid].shape
                features = _at_grid(sent, reading, len(box)).reshape(prod(shape), -1)
                arriving[reading.grid].add(features, to_atoms, reading, prod(box) // max(1, prod(shape)))
            if layer.aggregation == "mean-then-sum":
                for grid, mark in by_grid.items():
                    arriving[grid].average_since(mark)
        return [part.atoms(layer) for part in arriving], embeddings

    def in_order(self, by_grid: Sequence[Float[Tensor, "_ _"]]) -> Float[Tensor, " atoms"]:
        """One number for each atom, in the order of the codes."""
        if len(by_grid) == 1:
            return by_grid[0].reshape(-1)
        parts = zip(self.grids, by_grid, strict=True)
        rows = {p: row for grid, part in parts for p, row in zip(grid.predicates, part, strict=True)}
        return torch.cat([rows[p] for p in sorted(rows)])


def _readings(
    rule: Rule, shape: tuple[int, ...], grids: tuple[Grid, ...], base: HerbrandBase
) -> tuple[Reading, ...] | None:
    """What a rule reads; None where an atom has a constant, a variable twice, or a variable of a narrower domain."""
    found: dict[tuple[int, tuple[int, ...]], list[tuple[int, int]]] = {}
    for position, atom in enumerate(rule.atoms):
        names = [term.name for term in atom.terms if isinstance(term, Variable)]
        axes = tuple(rule.variables.index(name) for name in names)
        index = base.language.predicate_index(atom.predicate)
        number = next(i for i, grid in enumerate(grids) if index in grid.predicates)
        if len(set(names)) != len(atom.terms) or tuple(shape[axis] for axis in axes) != grids[number].shape:
            return None
        found.setdefault((number, axes), []).append((position, grids[number].predicates.index(index)))
    return tuple(
        Reading(grid, axes, *(torch.tensor(numbers) for numbers in zip(*pairs, strict=True)))
        for (grid, axes), pairs in found.items()
    )


def _total(
    update: MLP, box: tuple[int, ...], readings: Sequence[Reading], atoms: Sequence[Atoms], grids: Sequence[Grid]
) -> Float[Tensor, "ground_rules hidden"]:
    """Eq. 2 and the first linear map of MLP^1: one product a reading, then broadcast addition over the box."""
    first = update.linear()[0]
    positions, dim = sum(len(reading.positions) for reading in readings), atoms[0].offsets.shape[1]
    columns = first.weight.unflatten(1, (-1, dim)).transpose(0, 1).expand(positions, -1, -1)
    total = first.bias
    for reading in readings:
        part, grid = atoms[reading.grid], grids[reading.grid]
        by_position = take(columns, reading.positions)
        offset = torch.einsum("kd,khd->h", take(part.offsets, reading.places), by_position)
        table = torch.addmm(offset, part.features, part.into(reading.places, by_position))
        total = total + _at_box(table.view(*grid.shape, -1), reading, len(box))
    return total.expand(*box, -1).reshape(prod(box), -1)


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

    def __init__(self, old: Atoms, predicates: int) -> None:
        self.old = old
        self.features: list[Tensor] = []
        self.maps: list[Tensor] = []
        self.offsets: list[Tensor] = []
        self.received: list[Tensor] = []
        self.predicates = predicates

    def add(self, features: Tensor, to_atoms: PositionMLP, reading: Reading, times: int) -> None:
        """The messages of a reading; each atom gets `times` of them for each position it stands in."""
        weights, biases = (
            take(last.expand(to_atoms.positions, *last.shape[1:]), reading.positions)
            for last in (to_atoms.weights[-1], to_atoms.biases[-1] * times)
        )
        self.features.append(features)
        self.maps.append(sum_at(weights, reading.places, self.predicates))
        self.offsets.append(sum_at(biases, reading.places, self.predicates))
        self.received.append(torch.bincount(reading.places, minlength=self.predicates) * times)

    def mark(self) -> int:
        return len(self.maps)

    def average_since(self, mark: int) -> None:
        """The mean over the messages of the blocks from `mark` on."""
        if mark == len(self.maps):
            return
        count = torch.stack(self.received[mark:]).sum(0).clamp(min=1)
        if int(count.max()) == 1:
            return
        for i in range(mark, len(self.maps)):
            self.maps[i] = self.maps[i] / count.view(-1, 1, 1)
            self.offsets[i] = self.offsets[i] / count.unsqueeze(1)

    def atoms(self, layer: ReasoningLayer) -> GridAtoms:
        """Emb^l(a) of the grid."""
        none = torch.zeros(self.predicates, dtype=torch.int64)
        received = torch.stack([none, *self.received]).sum(0)
        if layer.aggregation == "mean":
            self.average_since(0)
        kept = torch.ones_like(received) if layer.residual else (received == 0) & (layer.isolated == "keep")
        if bool(kept.any()):
            kept = kept.to(self.old.offsets)
            self.features.append(self.old.features)
            self.maps.append(self.old.maps * kept.view(-1, 1, 1))
            self.offsets.append(self.old.offsets * kept.unsqueeze(1))
        nothing = torch.zeros_like(self.old.offsets)
        if not self.maps:
            return GridAtoms(self.old.features[:, :0], nothing.unsqueeze(1)[:, :0], nothing)
        return GridAtoms(_joined(self.features), _joined(self.maps), sum(self.offsets, nothing))


def _joined(blocks: list[Tensor]) -> Tensor:
    """Blocks side by side on axis 1."""
    return blocks[0] if len(blocks) == 1 else torch.cat(blocks, dim=1)
