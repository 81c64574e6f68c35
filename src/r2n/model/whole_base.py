"""Tensors -> predictions: a graph that is its whole Herbrand base laid out as grids, with no index at all.

Where every atom of the base is in the graph, and every substitution of every rule, the atoms of predicates with the
same domains are the points of one *grid*: `grid_layer.py` computes on them.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from r2n.graph.factor_graph import FactorGraph
from r2n.knowledge.herbrand import HerbrandBase
from r2n.logic.formula import Variable
from r2n.logic.theory import Rule
from r2n.model.grid_atoms import Places

MOST_POINTS = 2**21  # ground rules of a rule; beyond, a pass in parts is faster


@dataclass(frozen=True, eq=False)
class Grid:
    """Predicates (by index; `index` holds them as a tensor) with the same domains, and the constants of each position.

    The constants are given by their ids.
    """

    predicates: tuple[int, ...]
    index: Int64[Tensor, " predicates"]
    members: tuple[Int64[Tensor, " _"], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of constants of each position."""
        return tuple(map(len, self.members))

    def to(self, device: torch.device) -> "Grid":
        """The same on another device."""
        return Grid(self.predicates, self.index.to(device), tuple(part.to(device) for part in self.members))


@dataclass(frozen=True, eq=False)
class Received:
    """How many messages an atom of each predicate of a grid receives; the least and the most of these numbers."""

    counts: Int64[Tensor, " predicates"]
    least: int
    most: int

    @classmethod
    def of(cls, counts: Sequence[int]) -> "Received":
        """From the numbers."""
        return cls(torch.tensor(counts, dtype=torch.int64), min(counts), max(counts))

    def to(self, device: torch.device) -> "Received":
        """The same on another device."""
        return replace(self, counts=self.counts.to(device))


@dataclass(frozen=True, eq=False)
class Reading:
    """Positions of a rule whose atoms have the same variables, in the same order, over the same grid.

    `axes[i]` is the variable (by its number in the rule) at position i of the grid; `places` are those of the
    positions' predicates in the grid. An atom receives `times` messages for each position it stands in.
    """

    grid: int
    axes: tuple[int, ...]
    positions: Places
    places: Places
    times: int

    def to(self, device: torch.device) -> "Reading":
        """The same on another device."""
        return replace(self, positions=self.positions.to(device), places=self.places.to(device))


@dataclass(frozen=True, eq=False)
class RuleBox:
    """A rule over its box of substitutions: what it reads, and for each grid that it reads what is received there."""

    box: tuple[int, ...]
    readings: tuple[Reading, ...]
    received: dict[int, Received]

    def to(self, device: torch.device) -> "RuleBox":
        """The same on another device."""
        received = {grid: part.to(device) for grid, part in self.received.items()}
        return RuleBox(self.box, tuple(reading.to(device) for reading in self.readings), received)


@dataclass(frozen=True, eq=False)
class WholeBase:
    """The grids of a base, what each rule reads of them, and what each grid receives of all rules together."""

    grids: tuple[Grid, ...]
    rules: tuple[RuleBox, ...]
    received: tuple[Received, ...]

    @classmethod
    def of(cls, graph: FactorGraph, base: HerbrandBase) -> "WholeBase | None":
        """The form of a graph that is whole; None where atoms or substitutions are missing, or an atom is not plain."""
        if not base.size or len(graph.atoms) != base.size or not torch.equal(graph.atoms, torch.arange(base.size)):
            return None
        grids, rules = _grids(base), []
        for rule, shape in zip(graph.rules, graph.shapes, strict=True):
            if shape is None or prod(shape) > MOST_POINTS:
                return None
            made = _rule_box(rule, shape, grids, base)
            if made is None:
                return None
            rules.append(made)
        received = tuple(
            Received.of(
                [sum(counts) for counts in zip([0] * len(grid.predicates), *_counts(rules, number), strict=True)]
            )
            for number, grid in enumerate(grids)
        )
        return cls(grids, tuple(rules), received)

    def to(self, device: torch.device) -> "WholeBase":
        """The same on another device."""
        return WholeBase(
            tuple(grid.to(device) for grid in self.grids),
            tuple(rule.to(device) for rule in self.rules),
            tuple(part.to(device) for part in self.received),
        )

    def in_order(self, by_grid: Sequence[Float[Tensor, "_ _"]]) -> Float[Tensor, " atoms"]:
        """One number for each atom, in the order of the codes."""
        if len(by_grid) == 1:
            return by_grid[0].reshape(-1)
        parts = zip(self.grids, by_grid, strict=True)
        rows = {p: row for grid, part in parts for p, row in zip(grid.predicates, part, strict=True)}
        return torch.cat([rows[p] for p in sorted(rows)])


def _grids(base: HerbrandBase) -> tuple[Grid, ...]:
    by_domains: dict[tuple[object, ...], list[int]] = {}
    for index, predicate in enumerate(base.language.predicates):
        by_domains.setdefault(predicate.domains, []).append(index)
    return tuple(
        Grid(
            tuple(indices),
            torch.tensor(indices),
            tuple(
                torch.from_numpy(base.language.members(domain).copy())
                for domain in base.language.predicates[indices[0]].domains
            ),
        )
        for indices in by_domains.values()
    )


def _counts(rules: Sequence[RuleBox], grid: int) -> list[list[int]]:
    """What the predicates of a grid receive of each rule that reads it."""
    return [rule.received[grid].counts.tolist() for rule in rules if grid in rule.received]


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
    received = {grid: Counter[int]() for grid, _ in found}
    for (grid, axes), pairs in found.items():
        positions, places = zip(*pairs, strict=True)
        size, times = len(grids[grid].predicates), prod(shape) // max(1, prod(grids[grid].shape))
        readings.append(Reading(grid, axes, Places.of(positions, len(rule.atoms)), Places.of(places, size), times))
        for place in places:
            received[grid][place] += times
    counts = {grid: [part[i] for i in range(len(grids[grid].predicates))] for grid, part in received.items()}
    return RuleBox(shape, tuple(readings), {grid: Received.of(part) for grid, part in counts.items()})
