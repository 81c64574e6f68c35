"""Ground rules -> tensors: the only way from atoms to the graph in which they are answered.

An answer depends on what is known and on the atom itself, never on what else is asked: every atom of the graph that a
source gives for some atoms, and that counts as answered there, has all the ground rules that are its own.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from r2n.errors import DataError
from r2n.graph.batching import subgraph
from r2n.graph.factor_graph import FactorGraph
from r2n.graph.surroundings import Surroundings
from r2n.grounding.counting import RuleCounts
from r2n.grounding.ground_rules import Grounder
from r2n.grounding.neighbourhoods import NeighbourhoodGrounder
from r2n.grounding.store import Store
from r2n.grounding.substitutions import MAX_GROUNDINGS
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

    @property
    def counts(self) -> RuleCounts | None:
        """The numbers of ground rules of the rules that are counted, where some are."""
        ...

    @property
    def known_in_bodies(self) -> frozenset[str]:
        """The predicates of which an atom, if it is known, may be why a ground rule is there."""
        ...

    def around(self, atoms: Codes, *, steps: int | None = None, without: Codes | None = None) -> FactorGraph:
        """A graph that answers these atoms, each with the ground rules that are its own.

        With `steps`, a network of so many layers is answered the same, and ground rules that it cannot feel may be left
        out. With `without`, no ground rule is there because one of these atoms, none of a closed world, is known: the
        graph is that of a knowledge base without them. With either, no other atoms are answered.
        """
        ...

    def may_reach(self, atoms: Codes) -> Bool[np.ndarray, " atoms"]:
        """A cheap question: False where an atom is in no ground rule, True where it may be in one."""
        ...


@dataclass(frozen=True, eq=False)
class WholeGraph:
    """A graph that was made elsewhere; atoms that it was not made for are refused."""

    whole: FactorGraph
    counts: RuleCounts | None = None

    def __repr__(self) -> str:
        """Of which graph."""
        return f"WholeGraph({self.whole!r})"

    @property
    def known_in_bodies(self) -> frozenset[str]:
        """None: the graph is taken as it is."""
        return frozenset()

    @cached_property
    def _surroundings(self) -> Surroundings:
        return Surroundings(self.whole)

    def around(self, atoms: Codes, *, steps: int | None = None, without: Codes | None = None) -> FactorGraph:
        """The part of the graph that the atoms can feel; nobody knows why its ground rules are there."""
        wanted = torch.from_numpy(np.unique(atoms))
        missing = wanted[~self.whole.contains(wanted)]
        if len(missing):
            raise DataError(
                f"{len(missing):,} of {len(wanted):,} atoms are not in the graph, that with code {int(missing[0])} for"
                " one",
                hint="ask a source that grounds what is asked: GroundedOnDemand.of(knowledge, grounder)",
            )
        if steps is not None or without is not None:
            return self._surroundings.around(wanted.numpy(), steps=steps)
        return _part(self.whole, self.whole.rows(wanted))

    def may_reach(self, atoms: Codes) -> Bool[np.ndarray, " atoms"]:
        """Those of the graph."""
        return self.whole.contains(torch.from_numpy(atoms)).numpy()


@dataclass(frozen=True, eq=False)
class Ungrounded:
    """No rule at all, for networks that read none."""

    counts: RuleCounts | None = None

    @property
    def whole(self) -> FactorGraph:
        """Nothing."""
        return _bare((), torch.zeros(0, dtype=torch.int64))

    @property
    def known_in_bodies(self) -> frozenset[str]:
        """None."""
        return frozenset()

    def around(self, atoms: Codes, *, steps: int | None = None, without: Codes | None = None) -> FactorGraph:
        """The atoms alone."""
        return _bare((), torch.from_numpy(np.unique(atoms)))

    def may_reach(self, atoms: Codes) -> Bool[np.ndarray, " atoms"]:
        """None."""
        return np.zeros(len(atoms), bool)


@dataclass(frozen=True, eq=False)
class GroundedOnDemand:
    """Grounds a knowledge base when it is first asked for a graph.

    Under full and known-body grounding the ground rules are everybody's, and are made once. Under backward grounding an
    atom has those that backward chaining from it alone finds; what several atoms share is there once for each of them.
    """

    store: Store
    grounder: Grounder
    progress: Progress = no_progress
    counts: RuleCounts | None = None

    @classmethod
    def of(cls, knowledge: KnowledgeBase, grounder: Grounder, progress: Progress = no_progress) -> "GroundedOnDemand":
        """The source of a knowledge base."""
        return cls(Store(knowledge), grounder, progress)

    def __repr__(self) -> str:
        """How it grounds, and what."""
        return f"GroundedOnDemand({type(self.grounder).__name__}, {self.store.knowledge!r})"

    @property
    def whole(self) -> FactorGraph | None:
        """All ground rules; none under a strategy that starts from what is asked."""
        return None if isinstance(self.grounder, NeighbourhoodGrounder) else self._whole

    @cached_property
    def _whole(self) -> FactorGraph:
        self.progress("ground", 0, 0)
        return FactorGraph.from_grounding(self.grounder.ground(self.store, None, self.progress))

    @property
    def known_in_bodies(self) -> frozenset[str]:
        """Those in bodies, where the strategy asks whether bodies are known."""
        rules = self.store.knowledge.theory.rules if self.grounder.reads_evidence else ()
        return frozenset(rule.atoms[literal.position].predicate for rule in rules for literal in rule.body)

    @cached_property
    def _surroundings(self) -> Surroundings:
        return Surroundings(self._whole)

    def around(self, atoms: Codes, *, steps: int | None = None, without: Codes | None = None) -> FactorGraph:
        """The graph of these atoms."""
        wanted = np.unique(np.asarray(atoms, np.int64))
        if isinstance(self.grounder, NeighbourhoodGrounder):
            store = self.store if without is None else self.store.without(without)
            return FactorGraph.of_copies(self.grounder.neighbourhoods(store, wanted), wanted)
        if steps is not None or without is not None:
            left_out = without if self.grounder.reads_evidence else None
            return self._surroundings.around(wanted, steps=steps, without=left_out)
        codes = torch.from_numpy(wanted)
        inside = self._whole.contains(codes)
        if not bool(inside.any()):
            return _bare(self._whole.rules, codes)
        return _joined(_part(self._whole, self._whole.rows(codes[inside])), codes[~inside])

    def may_reach(self, atoms: Codes) -> Bool[np.ndarray, " atoms"]:
        """Atoms of the ground rules; or those that backward chaining finds a first ground rule for."""
        if isinstance(self.grounder, NeighbourhoodGrounder):
            return self.grounder.may_reach(self.store, atoms)
        return self._whole.contains(torch.from_numpy(atoms)).numpy()


@dataclass(frozen=True, eq=False)
class Counted:
    """A source, and rules that are counted beside what it grounds, when they are first asked for."""

    source: GraphSource
    store: Store
    rules: tuple[Rule, ...]
    progress: Progress = no_progress
    max_groundings: int = MAX_GROUNDINGS

    @property
    def whole(self) -> FactorGraph | None:
        """That of the source."""
        return self.source.whole

    @property
    def counts(self) -> RuleCounts | None:
        """The numbers of the rules' ground rules in what is known."""
        return self._counts

    @cached_property
    def _counts(self) -> RuleCounts:
        return RuleCounts.of(self.store, self.rules, self.progress, max_groundings=self.max_groundings)

    @property
    def known_in_bodies(self) -> frozenset[str]:
        """As the source says: of counted rules, what is asked is left out by itself."""
        return self.source.known_in_bodies

    def around(self, atoms: Codes, *, steps: int | None = None, without: Codes | None = None) -> FactorGraph:
        """The graph of these atoms, of the source."""
        return self.source.around(atoms, steps=steps, without=without)

    def may_reach(self, atoms: Codes) -> Bool[np.ndarray, " atoms"]:
        """As the source says."""
        return self.source.may_reach(atoms)


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
