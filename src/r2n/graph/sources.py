"""Ground rules -> tensors: the only way from atoms to the graph in which they are answered.

An answer depends on what is known and on the atom itself, never on what else is asked: every atom of the graph that a
source gives for some atoms, and that counts as answered there, has all the ground rules that are its own.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from r2n.errors import DataError
from r2n.graph.batching import subgraph
from r2n.graph.factor_graph import FactorGraph
from r2n.grounding.ground_rules import Grounder
from r2n.grounding.neighbourhoods import NeighbourhoodGrounder
from r2n.grounding.store import Store
from r2n.knowledge.herbrand import Codes
from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.logic.theory import Rule
from r2n.progress import Progress, no_progress


@runtime_checkable
class GraphSource(Protocol):
    """Where the graph of some atoms comes from."""

    @property
    def whole(self) -> FactorGraph | None:
        """All ground rules, where they do not depend on what is asked; atoms outside it are in none."""
        ...

    def around(self, atoms: Codes) -> FactorGraph:
        """A graph that answers these atoms, each with the ground rules that are its own."""
        ...


@dataclass(frozen=True, eq=False)
class WholeGraph:
    """A graph that was made elsewhere; atoms that it was not made for are refused."""

    whole: FactorGraph

    def around(self, atoms: Codes) -> FactorGraph:
        """The part of the graph that the atoms can feel."""
        wanted = torch.from_numpy(np.unique(atoms))
        missing = wanted[~self.whole.contains(wanted)]
        if len(missing):
            raise DataError(
                f"{len(missing):,} of {len(wanted):,} atoms are not in the graph, that with code {int(missing[0])} for"
                " one",
                hint="ask a source that grounds what is asked: GroundedOnDemand.of(knowledge, grounder)",
            )
        return _part(self.whole, self.whole.rows(wanted))


@dataclass(frozen=True, eq=False)
class Ungrounded:
    """No rule at all, for networks that read none."""

    @property
    def whole(self) -> FactorGraph:
        """Nothing."""
        return _bare((), torch.zeros(0, dtype=torch.int64))

    def around(self, atoms: Codes) -> FactorGraph:
        """The atoms alone."""
        return _bare((), torch.from_numpy(np.unique(atoms)))


@dataclass(frozen=True, eq=False)
class GroundedOnDemand:
    """Grounds a knowledge base when it is first asked for a graph.

    Under full and known-body grounding the ground rules are everybody's, and are made once. Under backward grounding an
    atom has those that backward chaining from it alone finds; what several atoms share is there once for each of them.
    """

    store: Store
    grounder: Grounder
    progress: Progress = no_progress

    @classmethod
    def of(cls, knowledge: KnowledgeBase, grounder: Grounder, progress: Progress = no_progress) -> "GroundedOnDemand":
        """The source of a knowledge base."""
        return cls(Store(knowledge), grounder, progress)

    @property
    def whole(self) -> FactorGraph | None:
        """All ground rules; none under a strategy that starts from what is asked."""
        return None if isinstance(self.grounder, NeighbourhoodGrounder) else self._whole

    @cached_property
    def _whole(self) -> FactorGraph:
        self.progress("ground", 0, 0)
        return FactorGraph.from_grounding(self.grounder.ground(self.store, None, self.progress))

    def around(self, atoms: Codes) -> FactorGraph:
        """The graph of these atoms."""
        wanted = np.unique(np.asarray(atoms, np.int64))
        if isinstance(self.grounder, NeighbourhoodGrounder):
            found = self.grounder.neighbourhoods(self.store, wanted)
            return FactorGraph.of_copies(found, wanted)
        codes = torch.from_numpy(wanted)
        inside = self._whole.contains(codes)
        if not bool(inside.any()):
            return _bare(self._whole.rules, codes)
        return _joined(_part(self._whole, self._whole.rows(codes[inside])), codes[~inside])


def _part(graph: FactorGraph, rows: Tensor) -> FactorGraph:
    """The part of a graph that atoms can feel; the graph itself where that is all of it."""
    part = subgraph(graph, rows).graph
    return graph if len(part.atoms) == len(graph.atoms) else part


def _bare(rules: tuple[Rule, ...], atoms: Tensor) -> FactorGraph:
    """Atoms in no ground rule."""
    neighbours = tuple(torch.zeros(0, len(rule.atoms), dtype=torch.int64) for rule in rules)
    return FactorGraph(atoms, neighbours, rules, (None,) * len(rules))


def _joined(graph: FactorGraph, isolated: Tensor) -> FactorGraph:
    """A graph, and atoms that stand in none of its ground rules."""
    if not len(isolated):
        return graph
    atoms = torch.cat([graph.atoms, isolated]).sort().values
    new_row = torch.searchsorted(atoms, graph.atoms)
    return FactorGraph(atoms, tuple(new_row[part] for part in graph.neighbours), graph.rules, graph.shapes)
