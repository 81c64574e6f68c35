"""Ground rules -> tensors: the subgraph around a batch of queries, all that L reasoning layers can feel of it."""

from dataclasses import dataclass

import torch
from jaxtyping import Int64
from torch import Tensor

from r2n.graph.factor_graph import FactorGraph


@dataclass(frozen=True, eq=False)
class Batch:
    """A part of a graph: `graph` itself, the queries' `rows` in it, and `kept`: the old row of each of its atoms."""

    graph: FactorGraph
    rows: Int64[Tensor, " batch"]
    kept: Int64[Tensor, " atoms"]


def subgraph(graph: FactorGraph, rows: Int64[Tensor, " batch"], steps: int) -> Batch:
    """The ground rules within `steps` of the atoms in `rows`, with all their atoms.

    `steps` reasoning layers give the atoms in `rows` the same embeddings here as in the whole graph: what a
    layer tells an atom at distance d is exact here while it comes from within the remaining steps.
    """
    felt = torch.zeros(len(graph.atoms), dtype=torch.bool)
    felt[rows] = True
    kept = [torch.zeros(len(part), dtype=torch.bool) for part in graph.neighbours]
    for _ in range(steps):
        kept = [felt[part].any(dim=1) for part in graph.neighbours]
        for part, keep in zip(graph.neighbours, kept, strict=True):
            felt[part[keep].flatten()] = True
    new_row = torch.cumsum(felt, 0) - 1
    neighbours = tuple(new_row[part[keep]] for part, keep in zip(graph.neighbours, kept, strict=True))
    shapes = tuple(shape if bool(keep.all()) else None for shape, keep in zip(graph.shapes, kept, strict=True))
    part_graph = FactorGraph(graph.atoms[felt], neighbours, graph.rules, shapes)
    return Batch(part_graph, new_row[rows], felt.nonzero().flatten())
