"""Ground rules -> tensors: a source of graphs without some of its rules, for who asks what a rule does.

A rule that is left out keeps its place with no ground rule, so that each of the others keeps its own networks. Where
ground rules are everybody's, those of the rule are dropped; where they are found by a search from what is asked, the
search does not have the rule, so that what is proved through it goes too. Both are what the source of a theory without
the rule would give.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool

from r2n.errors import ConfigError, nearest
from r2n.graph.factor_graph import FactorGraph
from r2n.graph.sources import Counted, GraphSource, GroundedOnDemand, WholeGraph
from r2n.grounding.counting import RuleCounts
from r2n.grounding.neighbourhoods import NeighbourhoodGrounder
from r2n.knowledge.herbrand import Codes
from r2n.logic.theory import Rule


@dataclass(frozen=True, eq=False)
class LeftOut:
    """A source, and the names of its rules that are left out."""

    source: GraphSource
    names: frozenset[str]

    @property
    def whole(self) -> FactorGraph | None:
        """All ground rules of the others, where they do not depend on what is asked."""
        return self._whole

    @cached_property
    def _whole(self) -> FactorGraph | None:
        graph = self.source.whole
        return None if graph is None else emptied(graph, self.names)

    @property
    def counts(self) -> RuleCounts | None:
        """The numbers of ground rules of the others."""
        return self._counts

    @cached_property
    def _counts(self) -> RuleCounts | None:
        counts = self.source.counts
        return None if counts is None else counts_without(counts, self.names)

    @property
    def known_in_bodies(self) -> frozenset[str]:
        """As with all rules."""
        return self.source.known_in_bodies

    def around(self, atoms: Codes, *, steps: int | None = None, without: Codes | None = None) -> FactorGraph:
        """The graph of these atoms."""
        if self._searching is None:
            return emptied(self.source.around(atoms, steps=steps, without=without), self.names)
        graph = self._searching.around(atoms, steps=steps, without=without)
        return _in_places(graph, layered_rules(self.source))

    def may_reach(self, atoms: Codes) -> Bool[np.ndarray, " atoms"]:
        """As the search without the rules says, or as with them."""
        return (self._searching or self.source).may_reach(atoms)

    @cached_property
    def _searching(self) -> GroundedOnDemand | None:
        """Who searches without the rules, where the strategy starts from what is asked."""
        grounded = self.source.source if isinstance(self.source, Counted) else self.source
        if not isinstance(grounded, GroundedOnDemand) or not isinstance(grounded.grounder, NeighbourhoodGrounder):
            return None
        kept = tuple(rule for rule in grounded.store.knowledge.theory.rules if rule.name not in self.names)
        return GroundedOnDemand(grounded.store.with_rules(kept), grounded.grounder, grounded.progress)


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
    if isinstance(source, LeftOut | Counted):
        return layered_rules(source.source)
    if isinstance(source, GroundedOnDemand):
        return source.store.knowledge.theory.rules
    return source.whole.rules if isinstance(source, WholeGraph) else ()


def counted_rules(source: GraphSource) -> tuple[Rule, ...]:
    """The rules that a source counts, those that are left out too."""
    if isinstance(source, LeftOut):
        return counted_rules(source.source)
    if isinstance(source, Counted):
        return source.rules
    return () if source.counts is None else source.counts.rules


def rules_felt(source: GraphSource, atoms: Codes, steps: int) -> frozenset[str]:
    """The names of grounded rules that may make a difference to what `steps` reasoning layers say of atoms."""
    grounded = source.source if isinstance(source, Counted) else source
    if isinstance(grounded, GroundedOnDemand) and isinstance(grounded.grounder, NeighbourhoodGrounder):
        met = grounded.grounder.rules_met(grounded.store, atoms)
        rules = grounded.store.knowledge.theory.rules
        return frozenset(rule.name for rule, is_met in zip(rules, met, strict=True) if is_met)
    graph = source.around(atoms, steps=steps)
    return frozenset(rule.name for rule, part in zip(graph.rules, graph.neighbours, strict=True) if len(part))


def emptied(graph: FactorGraph, names: Collection[str]) -> FactorGraph:
    """The graph without the ground rules of some rules; its atoms stay."""
    out = [rule.name in names for rule in graph.rules]
    if not any(out):
        return graph
    pairs = list(zip(graph.neighbours, graph.shapes, out, strict=True))
    return replace(
        graph,
        neighbours=tuple(part[:0] if is_out else part for part, _, is_out in pairs),
        shapes=tuple(None if is_out else shape for _, shape, is_out in pairs),
    )


def _in_places(graph: FactorGraph, rules: tuple[Rule, ...]) -> FactorGraph:
    """The graph of some of the rules, as one of all of them."""
    found = dict(zip((rule.name for rule in graph.rules), graph.neighbours, strict=True))
    nothing = {rule.name: torch.zeros(0, len(rule.atoms), dtype=torch.int64) for rule in rules}
    neighbours = tuple(found.get(rule.name, nothing[rule.name]) for rule in rules)
    return replace(graph, neighbours=neighbours, rules=rules, shapes=(None,) * len(rules))


def counts_without(counts: RuleCounts, names: Collection[str]) -> RuleCounts:
    """The counts, with nothing of some rules; the others keep their numbers."""
    out = np.array([rule.name in names for rule in counts.rules], bool)
    kept = np.flatnonzero(~out[counts.rule])
    place = np.full(len(counts.codes), -1, np.int64)
    place[kept] = np.arange(len(kept))
    inverse = place[counts.inverse]
    sizes = np.where(out, 0, np.diff(counts.starts))
    heads = {rule.atoms[rule.head_positions[0]].predicate for rule in counts.rules if rule.name in names}
    changed = {counts.base.language.predicate_index(head) for head in heads}
    return replace(
        counts,
        codes=counts.codes[kept],
        rule=counts.rule[kept],
        counts=counts.counts[kept],
        inverse=inverse[inverse >= 0],
        starts=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        grounded={j: part for j, part in counts.grounded.items() if not out[j]},
        _sides={key: side for key, side in counts._sides.items() if key[0] not in changed},
    )
