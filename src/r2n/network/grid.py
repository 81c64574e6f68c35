"""Dense grids of atoms: full grounding without index tensors."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn.functional import dropout

from r2n.data.herbrand import HerbrandBase
from r2n.logic.formula import Variable
from r2n.logic.language import Domain
from r2n.logic.theory import Rule
from r2n.network.factor_graph import FactorGraph
from r2n.network.tensors import Tensors


@dataclass(frozen=True, eq=False)
class Selection(Tensors):
    """Some rows of a table of a given size, and whether they are all of its rows, in order."""

    index: Int64[Tensor, " k"]
    size: int
    is_all: bool

    @classmethod
    def from_rows(cls, rows: Sequence[int], size: int) -> "Selection":
        """From their numbers."""
        return cls(torch.tensor(rows, dtype=torch.int64), size, list(rows) == list(range(size)))

    def take(self, table: Tensor) -> Tensor:
        """These rows of a table; the table itself, not a copy, if these are all of them in order."""
        return table if self.is_all else table[self.index]

    def sum_at(self, values: Tensor) -> Tensor:
        """The sum of the values, one for each of these rows, at each row of the table."""
        if self.is_all:
            return values
        return values.new_zeros(self.size, *values.shape[1:]).index_add(0, self.index, values)


@dataclass(frozen=True, eq=False)
class GridAtoms:
    """Embeddings of all atoms of a grid: Emb(P(point)) = features[point] @ maps[P] + offsets[P]."""

    features: Float[Tensor, "points features"]
    maps: Float[Tensor, "predicates features dim"]
    offsets: Float[Tensor, "predicates dim"]

    def into(self, some: Selection, columns: Float[Tensor, "k hidden dim"]) -> Float[Tensor, "features hidden"]:
        """The sum over some predicates of their maps, each followed by columns of its own."""
        return torch.einsum("kfd,khd->fh", some.take(self.maps), columns)


@dataclass(frozen=True, eq=False)
class InputAtoms:
    """Emb^0 of all atoms of a grid: maps that are diagonals, block by block of the features, as in `AtomEmbedding`."""

    features: Float[Tensor, "points features"]
    diagonals: Float[Tensor, "predicates features"]
    offsets: Float[Tensor, "predicates dim"]

    @cached_property
    def maps(self) -> Float[Tensor, "predicates features dim"]:
        """The maps, written out."""
        return torch.diag_embed(self._blocks).flatten(1, 2)

    @property
    def _blocks(self) -> Tensor:
        return self.diagonals.unflatten(1, (-1, self.offsets.shape[1]))

    def into(self, some: Selection, columns: Float[Tensor, "k hidden dim"]) -> Float[Tensor, "features hidden"]:
        """As for `GridAtoms`, without writing the maps out."""
        return torch.einsum("kbd,khd->bdh", some.take(self._blocks), columns).flatten(0, 1)


Atoms = GridAtoms | InputAtoms


def row_dropout(points: Float[Tensor, "*points dim"], drop: float) -> Float[Tensor, "*points dim"]:
    """Dropout with one mask for all points that differ on the last axis only: these are compared with each other."""
    if not drop:
        return points
    return points * dropout(points.new_ones(*points.shape[:-2], 1, points.shape[-1]), drop, training=True)


MOST_POINTS = 2**21  # ground rules of a rule; beyond, a pass in parts is faster


@dataclass(frozen=True, eq=False)
class Grid(Tensors):
    """Predicates (by index, also as a tensor) with the same domains, and the constants (ids) of each position."""

    predicates: tuple[int, ...]
    index: Int64[Tensor, " predicates"]
    members: tuple[Int64[Tensor, " _"], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of constants of each position."""
        return tuple(map(len, self.members))


@dataclass(frozen=True, eq=False)
class Reading(Tensors):
    """Positions of a rule whose atoms have the same variables, in the same order, over the same grid.

    `axes[i]` is the variable (by its number in the rule) at position i of the grid; `predicates` are those of the
    positions, among the grid's. An atom receives `times` messages for each position it stands in.
    """

    grid: int
    axes: tuple[int, ...]
    positions: Selection
    predicates: Selection
    times: int


@dataclass(frozen=True, eq=False)
class RuleBox(Tensors):
    """A rule over its box of substitutions: what it reads, and the messages to an atom of each predicate of a grid."""

    box: tuple[int, ...]
    readings: tuple[Reading, ...]
    received: dict[int, Int64[Tensor, " _"]]


@dataclass(frozen=True, eq=False)
class DenseGrid(Tensors):
    """The grids of a base, and what each rule reads of them.

    `received` counts for each grid the messages of all rules to an atom of each predicate; `has_isolated`: some of
    these numbers are 0.
    """

    grids: tuple[Grid, ...]
    rules: tuple[RuleBox, ...]
    received: tuple[Int64[Tensor, " _"], ...]
    has_isolated: tuple[bool, ...]

    @classmethod
    def from_graph(cls, graph: FactorGraph, base: HerbrandBase) -> "DenseGrid | None":
        """The form of a full grounding; None if atoms or substitutions are missing, or an atom is not plain."""
        if not base.size or len(graph.atoms) != base.size or not torch.equal(graph.atoms, torch.arange(base.size)):
            return None
        language = base.language
        by_domains: dict[tuple[Domain, ...], list[int]] = {}
        for index, predicate in enumerate(language.predicates):
            by_domains.setdefault(predicate.domains, []).append(index)
        grids = tuple(
            Grid(tuple(own), torch.tensor(own), tuple(torch.from_numpy(language.members(d).copy()) for d in domains))
            for domains, own in by_domains.items()
        )
        rules: list[RuleBox] = []
        for rule, shape in zip(graph.rules, graph.shapes, strict=True):
            box = None if shape is None or prod(shape) > MOST_POINTS else _rule_box(rule, shape, grids, base)
            if box is None:
                return None
            rules.append(box)
        received = tuple(
            sum((rule.received[i] for rule in rules if i in rule.received), torch.zeros_like(grid.index))
            for i, grid in enumerate(grids)
        )
        return cls(grids, tuple(rules), received, tuple(bool((counts == 0).any()) for counts in received))

    def in_order(self, by_grid: Sequence[Float[Tensor, "_ _"]]) -> Float[Tensor, " atoms"]:
        """One number for each atom, in the order of the codes."""
        if len(by_grid) == 1:
            return by_grid[0].reshape(-1)
        parts = zip(self.grids, by_grid, strict=True)
        rows = {p: row for grid, part in parts for p, row in zip(grid.predicates, part, strict=True)}
        return torch.cat([rows[p] for p in sorted(rows)])


def _rule_box(rule: Rule, shape: tuple[int, ...], grids: tuple[Grid, ...], base: HerbrandBase) -> RuleBox | None:
    """A rule over its box; None where an atom has a constant, a variable twice, or one of a narrower domain."""
    found: dict[tuple[int, tuple[int, ...]], list[tuple[int, int]]] = {}
    for position, atom in enumerate(rule.atoms):
        names = [term.name for term in atom.terms if isinstance(term, Variable)]
        axes = tuple(rule.variables.index(name) for name in names)
        index = base.language.predicate_index(atom.predicate)
        number = next(i for i, grid in enumerate(grids) if index in grid.predicates)
        if len(set(names)) != len(atom.terms) or tuple(shape[axis] for axis in axes) != grids[number].shape:
            return None
        found.setdefault((number, axes), []).append((position, grids[number].predicates.index(index)))
    readings = []
    received = {grid: torch.zeros_like(grids[grid].index) for grid, _ in found}
    for (grid, axes), pairs in found.items():
        positions, predicates = zip(*pairs, strict=True)
        size, times = len(grids[grid].predicates), prod(shape) // max(1, prod(grids[grid].shape))
        selected = Selection.from_rows(positions, len(rule.atoms)), Selection.from_rows(predicates, size)
        readings.append(Reading(grid, axes, *selected, times))
        for predicate in predicates:
            received[grid][predicate] += times
    return RuleBox(shape, tuple(readings), received)
