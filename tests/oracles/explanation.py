"""Explanations by plain re-runs: one forward pass over a graph, or a problem, in which something is otherwise."""

from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from r2n.data.herbrand import HerbrandBase
from r2n.data.knowledge_base import Evidence, KnowledgeBase, reciprocal_codes, with_reciprocals
from r2n.grounding.ground_rules import Grounder
from r2n.network.factor_graph import FactorGraph, known_states, known_truths
from r2n.network.graph_sources import GroundedOnDemand
from r2n.network.mlp import ModulesOf
from r2n.network.r2n import R2N

GroundRule = tuple[int, tuple[int, ...]]
NOTHING: frozenset[GroundRule] = frozenset()


@dataclass(frozen=True, eq=False)
class Rerun:
    """Networks (one, or those of an ensemble), what is known to them, and how it is grounded."""

    networks: Sequence[R2N]
    known: KnowledgeBase
    grounder: Grounder
    reciprocal: bool = False
    without_rule: str | None = None
    _graphs: dict[int, FactorGraph] = field(default_factory=dict, init=False)  # nothing is grounded twice
    _logits: dict[Any, float] = field(default_factory=dict, init=False)  # or computed twice

    @cached_property
    def knowledge(self) -> KnowledgeBase:
        return with_reciprocals(self.known) if self.reciprocal else self.known

    @property
    def base(self) -> HerbrandBase:
        return self.knowledge.base

    # the graph

    def directions(self, code: int) -> list[int]:
        """The atom, and its reciprocal where it has one."""
        reciprocal = int(reciprocal_codes(self.base, np.array([code]))[0])
        return [code] if reciprocal < 0 else [code, reciprocal]

    def graph(self, code: int) -> FactorGraph:
        """The graph of one atom: all that can be felt there, with an empty place for a rule that is not there."""
        if code not in self._graphs:
            self._graphs[code] = self._ground(code)
        return self._graphs[code]

    def _ground(self, code: int) -> FactorGraph:
        knowledge = self.knowledge
        rules = knowledge.theory.rules
        if not self.networks[0].layers:
            return FactorGraph(torch.tensor([code]), (), (), ())
        kept = tuple(rule for rule in rules if rule.name != self.without_rule)
        knowledge = replace(knowledge, theory=replace(knowledge.theory, rules=kept))
        found = GroundedOnDemand.from_knowledge(knowledge, self.grounder).around(np.array([code]))
        parts = dict(zip([rule.name for rule in kept], found.neighbours, strict=True))
        nothing = [torch.zeros((0, len(rule.atoms)), dtype=torch.int64) for rule in rules]
        neighbours = tuple(parts.get(rule.name, empty) for rule, empty in zip(rules, nothing, strict=True))
        return FactorGraph(found.atoms, neighbours, rules, (None,) * len(rules), found.answered)

    def standing_in(self, code: int) -> list[GroundRule]:
        """The ground rules that the atom, or its reciprocal, stands in, at any position."""
        found: dict[GroundRule, None] = {}
        for direction in self.directions(code):
            graph = self.graph(direction)
            for j, rows in enumerate(graph.neighbours):
                for row in rows.tolist():
                    codes = tuple(graph.atoms[row].tolist())
                    if direction in codes:
                        found[j, codes] = None
        return list(found)

    # the logit

    def logit(self, code: int, without: Collection[GroundRule] = NOTHING, layers: int | None = None) -> float:
        """The mean over networks and directions; read off an earlier layer where `layers` says so."""
        key, found = (code, frozenset(without), layers), []
        for direction in self.directions(code) if key not in self._logits else ():
            graph = left_out(self.graph(direction), without)
            found += [self._read_off(truncated(network, layers), graph, direction) for network in self.networks]
        return self._logits.setdefault(key, sum(found) / max(1, len(found)))

    def _read_off(self, network: R2N, graph: FactorGraph, code: int, hidden: int | None = None) -> float:
        known = known_states(self.base, graph.atoms, self.knowledge.evidence)
        blank = None if hidden is None else graph.atoms == hidden
        with torch.no_grad():
            logits = network(network.collate(graph, "indexed"), known=known, hidden=blank).atoms
        return float(logits[graph.rows(torch.tensor([code]))])

    # what an explanation says

    def effect(self, code: int, ground_rule: GroundRule) -> float:
        """The logit as it is, minus the logit without the ground rule."""
        return self.logit(code) - self.logit(code, {ground_rule})

    def contrast(self, code: int, other: int, ground_rule: GroundRule) -> float:
        """The same for the difference of two logits."""
        return self.effect(code, ground_rule) - self.effect(other, ground_rule)

    def fidelity(self, code: int, listed: Collection[GroundRule]) -> dict[str, float]:
        """Logits with all ground rules that the atom stands in, the listed alone, without these, and with none."""
        everything = self.standing_in(code)
        return {
            "full": self.logit(code),
            "alone": self.logit(code, set(everything) - set(listed)),
            "without": self.logit(code, set(listed)),
            "none": self.logit(code, set(everything)),
        }

    def layers(self, code: int) -> list[float]:
        """out(a) of Emb^0(a), Emb^1(a), ..., Emb^L(a)."""
        return [self.logit(code, layers=count) for count in range(len(self.networks[0].layers) + 1)]

    def hiding(self, code: int, other: int) -> float:
        """The effect of what is read of another atom: the logit, minus the logit with that atom hidden."""
        found = []
        for direction in self.directions(code):
            graph = self.graph(direction)
            found += [self._read_off(network, graph, direction, other) for network in self.networks]
        return self.logit(code) - sum(found) / len(found)

    def rivals(self, code: int) -> list[int]:
        """The atoms that differ from an atom in its last constant, and of which nothing is known."""
        base = self.known.base
        index, arguments = base.decode(np.arange(base.size))
        own, last = arguments[code], self.known.language.predicates[index[code]].arity - 1
        alike = (index == index[code]) & (np.delete(arguments, last, axis=1) == np.delete(own, last)).all(axis=1)
        unknown = known_truths(base, np.arange(base.size), self.known.evidence) < 0
        return [other for other in np.flatnonzero(alike & unknown).tolist() if other != code]

    # changed problems

    def with_known(self, codes: Sequence[int], truth: bool | None) -> "Rerun":
        """These atoms (of the problem's base) are unknown, or false where the world is closed, or known to be so."""
        old = self.known.evidence
        answers = {int(a): bool(t) for a, t in zip(old.atoms, old.truth, strict=True) if int(a) not in codes}
        if truth is not None:
            answers |= dict.fromkeys(map(int, codes), truth)
        atoms = sorted(answers)
        evidence = Evidence(np.array(atoms, np.int64), np.array([answers[a] for a in atoms], bool))
        return replace(self, known=replace(self.known, evidence=evidence))

    def without(self, rule: str) -> "Rerun":
        """The theory does not have the rule; the other rules' networks are as they were trained."""
        return replace(self, without_rule=rule)


def left_out(graph: FactorGraph, without: Collection[GroundRule]) -> FactorGraph:
    """The graph with these ground rules dropped, one row at a time, and all else as it is."""
    neighbours = []
    for j, rows in enumerate(graph.neighbours):
        kept = [row for row in rows.tolist() if (j, tuple(graph.atoms[row].tolist())) not in without]
        neighbours.append(torch.tensor(kept, dtype=torch.int64).reshape(-1, rows.shape[1]))
    return replace(graph, neighbours=tuple(neighbours))


def truncated(network: R2N, layers: int | None) -> R2N:
    if layers is None:
        return network
    view = copy(network)
    view._modules = {**network._modules, "layers": ModulesOf(list(network.layers)[:layers])}
    return view
