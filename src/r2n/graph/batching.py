"""Ground rules -> tensors: parts of a graph, around a batch of queries, or its connected components."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int64
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from r2n.graph.factor_graph import FactorGraph


@dataclass(frozen=True, eq=False)
class Batch:
    """A part of a graph: `graph` itself, the queries' `rows` in it, and `kept`: the old row of each of its atoms."""

    graph: FactorGraph
    rows: Int64[Tensor, " batch"]
    kept: Int64[Tensor, " atoms"]


def subgraph(graph: FactorGraph, rows: Int64[Tensor, " batch"], steps: int | None = None) -> Batch:
    """The ground rules within `steps` of the atoms in `rows` (None: any number of steps), with all their atoms.

    `steps` reasoning layers give the atoms in `rows` the same embeddings here as in the whole graph: what a
    layer tells an atom at distance d is exact here while it comes from within the remaining steps.
    """
    felt = torch.zeros(len(graph.atoms), dtype=torch.bool)
    felt[rows] = True
    kept = [torch.zeros(len(part), dtype=torch.bool) for part in graph.neighbours]
    done = 0
    while steps is None or done < steps:
        before = int(felt.sum())
        kept = [felt[part].any(dim=1) for part in graph.neighbours]
        for part, keep in zip(graph.neighbours, kept, strict=True):
            felt[part[keep].flatten()] = True
        done += 1
        if int(felt.sum()) == before:
            break
    return _cut(graph, felt, kept, rows)


def _cut(graph: FactorGraph, felt: Tensor, kept: list[Tensor], rows: Tensor) -> Batch:
    """The graph of the atoms that are felt and the ground rules that are kept."""
    new_row = torch.cumsum(felt, 0) - 1
    answered = int(felt[: graph.answered].sum())
    neighbours = tuple(new_row[part[keep]] for part, keep in zip(graph.neighbours, kept, strict=True))
    shapes = tuple(shape if bool(keep.all()) else None for shape, keep in zip(graph.shapes, kept, strict=True))
    part_graph = FactorGraph(graph.atoms[felt], neighbours, graph.rules, shapes, answered)
    return Batch(part_graph, new_row[rows], felt.nonzero().flatten())


def components(graph: FactorGraph) -> Int64[Tensor, " atoms"]:
    """The connected component of each atom, numbered by their first atoms: no message passes from one to another."""
    ends = [part[:, [0, i]] for part in graph.neighbours for i in range(1, part.shape[1])]
    edges = torch.cat([torch.zeros(0, 2, dtype=torch.int64), *ends]).numpy().T
    count = len(graph.atoms)
    links = coo_array((np.ones(edges.shape[1], bool), (edges[0], edges[1])), shape=(count, count))
    found = connected_components(links, directed=False)[1]
    _, first, place = np.unique(found, return_index=True, return_inverse=True)
    return torch.from_numpy(np.argsort(np.argsort(first))[place].astype(np.int64))


def component_batches(graph: FactorGraph, wanted: Bool[Tensor, " atoms"], batches: int) -> list[Batch]:
    """At most `batches` parts that share nothing, each of whole components; those without a wanted atom are left out.

    Components are dealt out by size, largest first, so that the parts are about equal and of all kinds. The `rows` of a
    part are its wanted atoms.
    """
    component = components(graph)
    sizes = torch.bincount(component[wanted], minlength=int(component.max()) + 1 if len(component) else 0)
    order = torch.argsort(sizes, descending=True, stable=True)
    part_of = torch.full_like(sizes, -1)
    chosen = order[sizes[order] > 0]
    part_of[chosen] = torch.arange(len(chosen)) % batches
    of_atom = part_of[component]
    return [
        _cut(
            graph,
            of_atom == i,
            [of_atom[part[:, 0]] == i for part in graph.neighbours],
            ((of_atom == i) & wanted).nonzero().flatten(),
        )
        for i in range(min(batches, len(chosen)))
    ]
