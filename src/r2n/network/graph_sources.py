"""Where factor graphs come from: the full grounding, or ground rules around atoms on demand."""

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Int64

from r2n.data.herbrand import Codes, index_among, ranges
from r2n.data.knowledge_base import Evidence, KnowledgeBase
from r2n.errors import ConfigError, DataError, nearest
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.counting import RowCounts, RuleCounts
from r2n.grounding.ground_rules import Adjacency, Grounder, codes_without, distinct_codes
from r2n.grounding.joins import MAX_GROUNDINGS
from r2n.grounding.paths import FactIndex, PathGrounder, PathQueries
from r2n.grounding.store import Store
from r2n.logic.theory import Rule
from r2n.network.factor_graph import FactorGraph, subgraph
from r2n.network.paths import PathGraph
from r2n.progress import Progress, no_progress

Numbers = Int64[np.ndarray, " _"]
"""Of ground rules, rule after rule; of positions (entries), ground rule after ground rule; or rows of atoms."""


class KHopSubgraphs:
    """A graph that answers all its atoms, with the index from its atoms to ground rules and back."""

    def __init__(self, graph: FactorGraph) -> None:
        """`first` holds the number of each rule's first ground rule, `_start` that of its first entry, and of all."""
        self.graph, parts = graph, graph.neighbours
        self.first = np.cumsum([0, *map(len, parts)])
        self._start = np.cumsum([0, *(part.numel() for part in parts)])
        self._positions = np.array([part.shape[1] for part in parts], np.int64)

    def around(self, codes: Codes, *, steps: int | None = None, without: Codes | None = None) -> FactorGraph:
        """A graph that answers just these atoms (sorted, distinct), by the ground rules within `steps` (None: any
        number) of them; ground rules that have an atom of `without` in their body are left out.
        """
        found = left_out = np.zeros(0, np.int64)
        if without is not None:
            _, numbers, rules, positions = self.incident_positions(self._rows(without))
            left_out = distinct_codes([numbers[self._in_body[rules, positions]]])
        reached = rows = self._rows(codes)
        done = 0
        while len(rows) and (steps is None or done < steps):
            met = codes_without(distinct_codes([self.incident_rules(rows)[1]]), left_out)
            new = codes_without(met, found)
            found = np.concatenate([found, new])
            rows = codes_without(distinct_codes([self.atoms_of(new)[1]]), reached)
            reached = np.concatenate([reached, rows])
            done += 1
        found = np.sort(found)
        ends = np.searchsorted(found, self.first)
        kept = [
            part[torch.from_numpy(found[ends[j] : ends[j + 1]] - self.first[j])]
            for j, part in enumerate(self.graph.neighbours)
        ]
        # the atoms asked for come first, and behind them those that their ground rules need
        rows = distinct_codes([part.numpy() for part in kept])
        held = self.graph.atoms.numpy()[rows]
        index = index_among(held, codes)
        is_asked = index >= 0
        new_row = torch.from_numpy(np.where(is_asked, index, len(codes) + np.cumsum(~is_asked) - 1))
        held_rows, graph = torch.from_numpy(rows), self.graph
        pairs = zip(graph.shapes, graph.neighbours, kept, strict=True)
        return FactorGraph(
            torch.from_numpy(np.concatenate([codes, held[~is_asked]])),
            tuple(new_row[torch.searchsorted(held_rows, part)] for part in kept),
            graph.rules,
            tuple(shape if len(part) == len(full) else None for shape, full, part in pairs),
            len(codes),
        )

    def incident_rules(self, rows: Numbers) -> tuple[Numbers, Numbers]:
        """For every ground rule (and position) that atoms stand in: the atom's index in `rows`, and its number."""
        return self.incident_positions(rows)[:2]

    def incident_positions(self, rows: Numbers) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """The same, with the rule (by number) and the position."""
        index, entries = self._entries_of_atoms.follow(rows)
        rules = np.searchsorted(self._start, entries, side="right") - 1
        numbers, positions = np.divmod(entries - self._start[rules], self._positions[rules])
        return index, self.first[rules] + numbers, rules, positions

    def atoms_of(self, numbers: Numbers) -> tuple[Numbers, Numbers]:
        """For every atom of ground rules: the index of the ground rule in `numbers`, and the atom's row."""
        rules = self.rules_of(numbers)
        positions = self._positions[rules]
        _, entries = ranges(self._start[rules] + (numbers - self.first[rules]) * positions, positions)
        return np.repeat(np.arange(len(numbers)), positions), self._flat[entries]

    def rules_of(self, numbers: Numbers) -> Numbers:
        """The rule (by number) of each ground rule."""
        return np.searchsorted(self.first, numbers, side="right") - 1

    def _rows(self, codes: Codes) -> Numbers:
        """The rows of those atoms that the graph holds."""
        wanted = torch.from_numpy(np.asarray(codes, np.int64))
        return self.graph.rows(wanted[self.graph.contains(wanted)]).numpy()

    @cached_property
    def _flat(self) -> Int64[np.ndarray, " entries"]:
        """The row of each entry's atom."""
        return torch.cat([torch.zeros(0, dtype=torch.int64), *(p.flatten() for p in self.graph.neighbours)]).numpy()

    @cached_property
    def _entries_of_atoms(self) -> Adjacency:
        return Adjacency.build(self._flat, np.arange(len(self._flat)), len(self.graph.atoms))

    @cached_property
    def _in_body(self) -> np.ndarray:
        """Whether each position of each rule is one of its body; (rules, most positions)."""
        found = np.zeros((len(self.graph.rules), max(self._positions, default=0)), bool)
        for j, rule in enumerate(self.graph.rules):
            found[j, [literal.position for literal in rule.body]] = True
        return found


class GraphSource(ABC):
    """Where the graphs of atoms come from; by default, parts of one graph of all ground rules."""

    @cached_property
    @abstractmethod
    def full_graph(self) -> FactorGraph | None:
        """All ground rules, if they do not depend on the query; atoms outside it are in none."""

    @cached_property
    def row_counts(self) -> RowCounts | None:
        """The numbers of ground rules of the rules that are counted, if some are, in the rows that are asked for."""
        return None

    @property
    def counts(self) -> RuleCounts | None:
        """The same of all rows."""
        return None if self.row_counts is None else self.row_counts.full

    @property
    def paths(self) -> "Paths | None":
        """The source of ground rules along paths, if atoms are answered by these."""
        return None

    @property
    def known_in_bodies(self) -> frozenset[str]:
        """The predicates of which a known atom may be why there is a ground rule."""
        return frozenset()

    @cached_property
    def _subgraphs(self) -> KHopSubgraphs:
        assert self.full_graph is not None
        return KHopSubgraphs(self.full_graph)

    def around(self, atoms: Codes, *, steps: int | None = None, without: Codes | None = None) -> FactorGraph:
        """A graph that answers these atoms, each with its ground rules.

        With `steps`, a network of so many layers gives the same answers, and ground rules out of its reach may be left
        out. With `without`, no ground rule is there because one of these atoms (of open worlds) is known: the graph is
        that of a knowledge base without them. With either, no other atoms are answered.
        """
        wanted = np.unique(np.asarray(atoms, np.int64))
        if steps is not None or without is not None:
            return self._subgraphs.around(wanted, steps=steps, without=without if self.known_in_bodies else None)
        full, codes = self._subgraphs.graph, torch.from_numpy(wanted)
        inside = full.contains(codes)
        graph = subgraph(full, full.rows(codes[inside])).graph
        if len(graph.atoms) == len(full.atoms):
            graph = full
        if bool(inside.all()):
            return graph
        codes = torch.cat([graph.atoms, codes[~inside]]).sort().values
        new_row = torch.searchsorted(codes, graph.atoms)
        return FactorGraph(codes, tuple(new_row[part] for part in graph.neighbours), graph.rules, graph.shapes)

    def may_reach(self, atoms: Codes) -> Bool[np.ndarray, " atoms"]:
        """False where an atom is in no ground rule, True where it may be in one; cheap."""
        return self._subgraphs.graph.contains(torch.from_numpy(atoms)).numpy()


@dataclass(frozen=True, eq=False)
class FullGraph(GraphSource):
    """A graph that was made elsewhere; atoms that it was not made for are refused."""

    graph: FactorGraph

    def __repr__(self) -> str:
        return f"FullGraph({self.graph!r})"

    @cached_property
    def full_graph(self) -> FactorGraph:
        """The graph."""
        return self.graph

    def around(self, atoms: Codes, *, steps: int | None = None, without: Codes | None = None) -> FactorGraph:
        """The part of the graph that is connected to the atoms; nobody knows why its ground rules are there."""
        wanted = torch.from_numpy(np.unique(atoms))
        missing = wanted[~self.graph.contains(wanted)]
        if len(missing):
            raise DataError(
                f"{len(missing):,} of {len(wanted):,} atoms are not in the graph, that with code {int(missing[0])} for"
                " one",
                hint="ask a source that grounds what is asked: GroundedOnDemand.from_knowledge(knowledge, grounder)",
            )
        return super().around(atoms, steps=steps, without=without)


class Ungrounded(GraphSource):
    """No rule at all, for networks that read none."""

    @cached_property
    def full_graph(self) -> FactorGraph:
        """Nothing."""
        return FactorGraph(torch.zeros(0, dtype=torch.int64), (), (), ())


@dataclass(frozen=True, eq=False)
class GroundedOnDemand(GraphSource):
    """Grounds a knowledge base when it is first asked for a graph.

    Under backward grounding an atom has the ground rules that backward chaining from it alone finds, as copies of its
    own; else all atoms share the ground rules.
    """

    store: Store
    grounder: Grounder
    progress: Progress = no_progress

    @classmethod
    def from_knowledge(
        cls, knowledge: KnowledgeBase, grounder: Grounder, progress: Progress = no_progress
    ) -> "GroundedOnDemand":
        """The source of a knowledge base."""
        return cls(Store(knowledge), grounder, progress)

    def __repr__(self) -> str:
        return f"GroundedOnDemand({type(self.grounder).__name__}, {self.store.knowledge!r})"

    @cached_property
    def full_graph(self) -> FactorGraph | None:
        """All ground rules; none under a strategy that starts from the query."""
        if isinstance(self.grounder, BackwardGrounder):
            return None
        self.progress("ground", 0, 0)
        return FactorGraph.from_grounding(self.grounder.ground(self.store, None, self.progress))

    @property
    def known_in_bodies(self) -> frozenset[str]:
        """Those in bodies, if the strategy asks whether bodies are known."""
        rules = self.store.knowledge.theory.rules if self.grounder.reads_evidence else ()
        return frozenset(name for rule in rules for name in rule.body_predicates)

    def around(self, atoms: Codes, *, steps: int | None = None, without: Codes | None = None) -> FactorGraph:
        """The graph of these atoms."""
        if not isinstance(self.grounder, BackwardGrounder):
            return super().around(atoms, steps=steps, without=without)
        wanted = np.unique(np.asarray(atoms, np.int64))
        store = self.store if without is None else self.store.without(without)
        return FactorGraph.of_copies(self.grounder.neighbourhoods(store, wanted), wanted)

    def may_reach(self, atoms: Codes) -> Bool[np.ndarray, " atoms"]:
        """Atoms of the ground rules; or those that backward chaining finds a first ground rule for."""
        if isinstance(self.grounder, BackwardGrounder):
            return self.grounder.may_reach(self.store, atoms)
        return super().may_reach(atoms)


@dataclass(frozen=True, eq=False)
class Paths(GraphSource):
    """Ground rules along paths of known facts, from the first constant of each atom that is asked.

    A known atom is asked alone, on the graph of the other facts; with `pairs`, without all facts of its two constants.
    """

    knowledge: KnowledgeBase
    grounder: PathGrounder
    pairs: bool = False

    @property
    def paths(self) -> "Paths":
        """Itself."""
        return self

    @cached_property
    def full_graph(self) -> None:
        """None: ground rules depend on the query."""

    @cached_property
    def index(self) -> FactIndex:
        """The known facts."""
        return FactIndex.from_evidence(self.knowledge.base, self.knowledge.evidence)

    def around(self, atoms: Codes, *, steps: int | None = None, without: Codes | None = None) -> PathGraph:
        """The queries of these atoms: unknown ones with one predicate and first constant share theirs."""
        base, evidence, codes = self.knowledge.base, self.knowledge.evidence, np.unique(np.asarray(atoms, np.int64))
        index = self.index
        if without is not None:
            kept = ~np.isin(evidence.atoms, without)
            evidence = Evidence(evidence.atoms[kept], evidence.truth[kept])
            index = FactIndex.from_evidence(base, evidence)
        predicates, arguments = base.decode(codes)
        is_known = np.isin(codes, evidence.facts)
        row = predicates * index.constants + arguments[:, 0]
        row = np.where(is_known, len(base.shapes) * index.constants + np.arange(len(codes)), row)
        _, first, query = np.unique(row, return_index=True, return_inverse=True)
        y = arguments[:, 1] if arguments.shape[1] > 1 else np.full(len(codes), -1)
        out = query[is_known], y[is_known]
        queries = PathQueries(predicates[first], arguments[first, 0], out if is_known.any() else None, self.pairs)
        is_pair = np.array([len(shape) == 2 for shape in base.shapes], bool)[predicates]
        numbers = np.where(is_pair, query * index.constants + y, -1)
        parts = {"index": index, "queries": queries, "numbers": numbers}
        width, steps = self.grounder.width, self.grounder.depth
        return PathGraph(torch.from_numpy(codes), (), (), (), **parts, width=width, steps=steps)

    def may_reach(self, atoms: Codes) -> Bool[np.ndarray, " atoms"]:
        """Any of them."""
        return np.ones(len(atoms), bool)


@dataclass(frozen=True, eq=False)
class _Changed(GraphSource):
    """Another source, of which something is changed; known atoms are left out as they are there."""

    source: GraphSource

    @cached_property
    def full_graph(self) -> FactorGraph | None:
        return self.source.full_graph

    @property
    def paths(self) -> Paths | None:
        return self.source.paths

    @property
    def known_in_bodies(self) -> frozenset[str]:
        return self.source.known_in_bodies

    def around(self, atoms: Codes, *, steps: int | None = None, without: Codes | None = None) -> FactorGraph:
        return self.source.around(atoms, steps=steps, without=without)

    def may_reach(self, atoms: Codes) -> Bool[np.ndarray, " atoms"]:
        return self.source.may_reach(atoms)


@dataclass(frozen=True, eq=False)
class Counted(_Changed):
    """A source, and rules that are counted instead of grounded; counts leave a query out by themselves."""

    store: Store
    rules: tuple[Rule, ...]
    progress: Progress = no_progress
    max_groundings: int = MAX_GROUNDINGS

    @cached_property
    def row_counts(self) -> RowCounts:
        """The numbers of the rules' ground rules in the known facts."""
        return RowCounts(self.store, self.rules, self.progress, self.max_groundings)


@dataclass(frozen=True, eq=False)
class LeftOut(_Changed):
    """A source, and the names of its rules that are left out."""

    names: frozenset[str]

    @cached_property
    def full_graph(self) -> FactorGraph | None:
        """All ground rules of the others, if they do not depend on the query."""
        return None if self.source.full_graph is None else self._emptied(self.source.full_graph)

    def _emptied(self, graph: FactorGraph) -> FactorGraph:
        """The graph without the ground rules of these rules; its atoms stay."""
        out = [rule.name in self.names for rule in graph.rules]
        if not any(out):
            return graph
        pairs = list(zip(graph.neighbours, graph.shapes, out, strict=True))
        return replace(
            graph,
            neighbours=tuple(part[:0] if is_out else part for part, _, is_out in pairs),
            shapes=tuple(None if is_out else shape for _, shape, is_out in pairs),
        )

    @cached_property
    def row_counts(self) -> RowCounts | None:
        """The counts, with nothing of the rules left out; the others keep their numbers."""
        counts = self.source.row_counts
        return None if counts is None else counts.without_rules(self.names)

    def around(self, atoms: Codes, *, steps: int | None = None, without: Codes | None = None) -> FactorGraph:
        """The graph of these atoms; a search without the rules still gives a graph of all of them."""
        if self._searching is None:
            return self._emptied(self.source.around(atoms, steps=steps, without=without))
        graph, rules = self._searching.around(atoms, steps=steps, without=without), layered_rules(self.source)
        found = {rule.name: torch.zeros(0, len(rule.atoms), dtype=torch.int64) for rule in rules}
        found |= zip((rule.name for rule in graph.rules), graph.neighbours, strict=True)
        neighbours = tuple(found[rule.name] for rule in rules)
        return replace(graph, neighbours=neighbours, rules=rules, shapes=(None,) * len(rules))

    def may_reach(self, atoms: Codes) -> Bool[np.ndarray, " atoms"]:
        """As the search without the rules says, or as with them."""
        return (self._searching or self.source).may_reach(atoms)

    @cached_property
    def _searching(self) -> GroundedOnDemand | None:
        """The source that searches without the rules, if the strategy starts from the query."""
        grounded = _searching(self.source)
        if grounded is None:
            return None
        kept = tuple(rule for rule in grounded.store.knowledge.theory.rules if rule.name not in self.names)
        return GroundedOnDemand(grounded.store.with_rules(kept), grounded.grounder, grounded.progress)


def _searching(source: GraphSource) -> GroundedOnDemand | None:
    """The source itself, without what is counted, if its strategy starts from the query."""
    grounded = source.source if isinstance(source, Counted) else source
    if isinstance(grounded, GroundedOnDemand) and isinstance(grounded.grounder, BackwardGrounder):
        return grounded
    return None


def without_rules(source: GraphSource, names: Collection[str]) -> GraphSource:
    """The same source, where the rules of these names ground and count nothing."""
    known = [rule.name for rule in (*layered_rules(source), *counted_rules(source))]
    for name in names:
        if name not in known:
            raise ConfigError(
                f"there is no rule '{name}' to leave out", hint=nearest(name, known) or f"there is: {', '.join(known)}"
            )
    if isinstance(source, LeftOut):
        return LeftOut(source.source, source.names | frozenset(names))
    return LeftOut(source, frozenset(names)) if names else source


def layered_rules(source: GraphSource) -> tuple[Rule, ...]:
    """The rules that a source grounds, those that are left out too, in the order of the networks' parts."""
    if isinstance(source, _Changed):
        return layered_rules(source.source)
    if isinstance(source, GroundedOnDemand):
        return source.store.knowledge.theory.rules
    return () if source.full_graph is None else source.full_graph.rules


def counted_rules(source: GraphSource) -> tuple[Rule, ...]:
    """The rules that a source counts, those that are left out too."""
    if isinstance(source, Counted):
        return source.rules
    return counted_rules(source.source) if isinstance(source, _Changed) else ()


def reachable_rules(source: GraphSource, atoms: Codes, steps: int) -> frozenset[str]:
    """The names of grounded rules that may make a difference to the logits of atoms after `steps` reasoning layers."""
    grounded = _searching(source)
    if grounded is not None:
        assert isinstance(grounded.grounder, BackwardGrounder)
        met = grounded.grounder.rules_met(grounded.store, atoms)
        rules = grounded.store.knowledge.theory.rules
        return frozenset(rule.name for rule, is_met in zip(rules, met, strict=True) if is_met)
    graph = source.around(atoms, steps=steps)
    return frozenset(rule.name for rule, part in zip(graph.rules, graph.neighbours, strict=True) if len(part))
