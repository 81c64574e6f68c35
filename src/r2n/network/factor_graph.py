"""The factor graph (V, F, E) of ground atoms and ground rules, as tensors."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Int64
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from r2n.data.herbrand import Codes, HerbrandBase, closed_atoms, index_among
from r2n.data.knowledge_base import Evidence
from r2n.errors import DataError, counted
from r2n.grounding.ground_rules import Grounding, Neighbourhoods, distinct_codes
from r2n.logic.theory import Rule


@dataclass(frozen=True, eq=False)
class FactorGraph:
    """Atoms (codes) and, for each rule j, `neighbours[j][g, i]`: the row in `atoms` of ne(g, i).

    The first `answered` atoms (by default all) are ascending and distinct, and have all their ground rules: the logits
    of a network are right for them. Atoms behind them are parts of others' neighbourhoods, each a copy. `shapes[j]`
    gives the sizes of the domains of the rule's variables if every substitution is there, else None.
    """

    atoms: Int64[Tensor, " atoms"]
    neighbours: tuple[Int64[Tensor, "_ _"], ...]
    rules: tuple[Rule, ...]
    shapes: tuple[tuple[int, ...] | None, ...]
    answered: int = -1

    def __post_init__(self) -> None:
        """By default, all atoms are answered."""
        if self.answered < 0:
            object.__setattr__(self, "answered", len(self.atoms))

    @classmethod
    def from_grounding(cls, grounding: Grounding, atoms: np.ndarray | None = None) -> "FactorGraph":
        """The graph of a grounding, and of `atoms` (codes) that may be in no ground rule."""
        extra = np.zeros(0, np.int64) if atoms is None else np.asarray(atoms, np.int64)
        codes = distinct_codes([extra, *(part.atoms for part in grounding.ground_rules)])
        neighbours = tuple(torch.from_numpy(_rows(codes, part.atoms)) for part in grounding.ground_rules)
        rules = tuple(part.rule for part in grounding.ground_rules)
        return cls(torch.from_numpy(codes), neighbours, rules, tuple(part.shape for part in grounding.ground_rules))

    @classmethod
    def of_copies(cls, neighbourhoods: Neighbourhoods, queries: Codes) -> "FactorGraph":
        """The neighbourhoods of queries, nothing shared: each has its own copy of every atom."""
        grounding, members = neighbourhoods.grounding, neighbourhoods.members
        codes = distinct_codes([queries, *(part.atoms for part in grounding.ground_rules)])
        keys = [  # (query, atom) as one number
            pairs[:, :1] * len(codes) + _rows(codes, part.atoms)[pairs[:, 1]]
            for part, pairs in zip(grounding.ground_rules, members, strict=True)
        ]
        own = np.arange(len(queries)) * len(codes) + _rows(codes, queries)
        others = np.setdiff1d(distinct_codes(keys), own, assume_unique=True)
        both = np.concatenate([own, others])
        order = np.argsort(both)
        neighbours = tuple(torch.from_numpy(order[_rows(both[order], part)]) for part in keys)
        rules = tuple(part.rule for part in grounding.ground_rules)
        atoms = np.concatenate([queries, codes[others % max(1, len(codes))]])
        return cls(torch.from_numpy(atoms), neighbours, rules, (None,) * len(rules), len(queries))

    def rows(self, codes: Int64[Tensor, " batch"]) -> Int64[Tensor, " batch"]:
        """The rows of answered atoms, given by their codes."""
        found = self.contains(codes)
        if not bool(found.all()):
            missing = int(codes[~found][0])
            raise DataError(
                f"the atom with code {missing} is not in the graph",
                hint="take a source that grounds: GroundedOnDemand.from_knowledge(knowledge, grounder).around(atoms)",
            )
        return torch.searchsorted(self.atoms[: self.answered], codes)

    def contains(self, codes: Int64[Tensor, " batch"]) -> Bool[Tensor, " batch"]:
        """Whether each atom, given by its code, is answered by the graph."""
        answered = self.atoms[: self.answered]
        rows = torch.searchsorted(answered, codes)
        found = rows < len(answered)
        found[found.clone()] = answered[rows[found]] == codes[found]
        return found

    @cached_property
    def in_rules(self) -> Bool[Tensor, " atoms"]:
        """Whether each atom is in a ground rule."""
        found = torch.zeros(len(self.atoms), dtype=torch.bool, device=self.atoms.device)
        for part in self.neighbours:
            found[part.flatten()] = True
        return found

    def to(self, device: torch.device | str) -> "FactorGraph":
        """The same graph on a device; itself if it is there already."""
        if self.atoms.device == torch.device(device):
            return self
        return replace(self, atoms=self.atoms.to(device), neighbours=tuple(part.to(device) for part in self.neighbours))

    def __len__(self) -> int:
        return sum(map(len, self.neighbours))

    def __repr__(self) -> str:
        rules = f"{counted(len(self), 'ground rule')} of {counted(len(self.rules), 'rule')}"
        return f"FactorGraph({counted(len(self.atoms), 'atom')}, {rules})"


def _rows(codes: np.ndarray, atoms: np.ndarray) -> np.ndarray:
    """The index of each code in the sorted `codes`; by a table instead of bisection if the codes are dense."""
    if not atoms.size:
        return np.zeros(atoms.shape, np.int64)
    low, high = int(codes[0]), int(codes[-1])
    if high - low < 4 * atoms.size + 1_000_000:
        table = np.empty(high - low + 1, np.int64)
        table[codes - low] = np.arange(len(codes))
        return np.ascontiguousarray(table[atoms - low])
    return np.searchsorted(codes, atoms)


UNKNOWN, FALSE, TRUE = 0, 1, 2
"""The three states of an atom."""


def known_states(base: HerbrandBase, atoms: Int64[Tensor, " atoms"], evidence: Evidence) -> Int64[Tensor, " atoms"]:
    """UNKNOWN, FALSE or TRUE for each atom (codes): by the evidence, else FALSE under a closed world."""
    return torch.from_numpy(known_truths(base, atoms.cpu().numpy(), evidence) + 1).to(atoms.device)


def known_truths(base: HerbrandBase, codes: Codes, evidence: Evidence) -> Int64[np.ndarray, " atoms"]:
    """1 true, 0 false (by the evidence, or by a closed world), -1 unknown, for each atom."""
    truths = np.full(len(codes), -1, np.int64)
    truths[closed_atoms(base, codes)] = 0
    index = index_among(codes, evidence.atoms)
    truths[index >= 0] = evidence.truth[index[index >= 0]]
    return truths


@dataclass(frozen=True, eq=False)
class Batch:
    """A part of a graph, and `kept`: the old row of each of its atoms."""

    graph: FactorGraph
    kept: Int64[Tensor, " atoms"]


def subgraph(graph: FactorGraph, rows: Int64[Tensor, " batch"]) -> Batch:
    """All that is connected to the atoms in `rows`."""
    component = components(graph)
    return _cut(graph, torch.isin(component, component[rows]))


def _cut(graph: FactorGraph, atoms: Tensor) -> Batch:
    """The graph of some connected components, given by their atoms."""
    kept = [atoms[part].any(dim=1) for part in graph.neighbours]
    new_row = torch.cumsum(atoms, 0) - 1
    answered = int(atoms[: graph.answered].sum())
    neighbours = tuple(new_row[part[keep]] for part, keep in zip(graph.neighbours, kept, strict=True))
    shapes = tuple(shape if bool(keep.all()) else None for shape, keep in zip(graph.shapes, kept, strict=True))
    part_graph = FactorGraph(graph.atoms[atoms], neighbours, graph.rules, shapes, answered)
    return Batch(part_graph, atoms.nonzero().flatten())


def components(graph: FactorGraph) -> Int64[Tensor, " atoms"]:
    """The connected component of each atom, numbered by their first atoms."""
    ends = [part[:, [0, i]] for part in graph.neighbours for i in range(1, part.shape[1])]
    edges = torch.cat([torch.zeros(0, 2, dtype=torch.int64), *ends]).numpy().T
    count = len(graph.atoms)
    links = coo_array((np.ones(edges.shape[1], bool), (edges[0], edges[1])), shape=(count, count))
    found = connected_components(links, directed=False)[1]
    _, first, index = np.unique(found, return_index=True, return_inverse=True)
    return torch.from_numpy(np.argsort(np.argsort(first))[index].astype(np.int64))


def component_batches(graph: FactorGraph, wanted: Bool[Tensor, " atoms"], batches: int) -> list[Batch]:
    """At most `batches` parts of connected components with a wanted atom, about equally large."""
    component = components(graph)
    sizes = torch.bincount(component[wanted], minlength=int(component.max()) + 1 if len(component) else 0)
    order = torch.argsort(sizes, descending=True, stable=True)
    part_of = torch.full_like(sizes, -1)
    chosen = order[sizes[order] > 0]
    part_of[chosen] = torch.arange(len(chosen)) % batches
    of_atom = part_of[component]
    return [_cut(graph, of_atom == i) for i in range(min(batches, len(chosen)))]
