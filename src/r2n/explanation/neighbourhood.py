"""The neighbourhood of atoms: the graph around them, and forward passes over it with and without changes."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from r2n.data.herbrand import Codes, HerbrandBase
from r2n.data.knowledge_base import KnowledgeBase, counterparts, reciprocal_codes
from r2n.explanation.records import Belief
from r2n.network.factor_graph import UNKNOWN, FactorGraph, known_states
from r2n.network.incremental import IncrementalForward, Pairs, Step
from r2n.network.r2n import R2N
from r2n.network.reasoning import ReasoningLayer, Sum
from r2n.network.scatter import Incidence
from r2n.scoring import AtomLogits

NO_CODES: Codes = np.zeros(0, np.int64)
NO_PAIRS: Pairs = np.zeros((0, 2), np.int64)


@dataclass(frozen=True, eq=False)
class WhatIf:
    """A change of what is known: facts (codes) that are unknown, those of them that are false, a rule left out."""

    unknown: Codes = field(default_factory=lambda: NO_CODES)
    false: Codes = field(default_factory=lambda: NO_CODES)
    without_rule: str | None = None


@dataclass(frozen=True, eq=False)
class ExplainedModel:
    """The networks of an answer (`members`), and how they answer after a change.

    `knowledge` is their knowledge base, in the language of the training. `beliefs` gives the answers for atoms,
    `probability` maps logits to probabilities, and `half` is the logit of one half. `networks_if` grounds again.
    """

    members: tuple[AtomLogits, ...]
    knowledge: KnowledgeBase
    beliefs: Callable[[Codes], Sequence[Belief]]
    probability: Callable[[np.ndarray], np.ndarray]
    networks_if: Callable[[WhatIf], tuple[AtomLogits, ...]]
    half: float = 0.0

    @property
    def base(self) -> HerbrandBase:
        """The Herbrand base of the networks."""
        return self.members[0].model.base

    def plain(self, codes: Codes) -> Codes:
        """See `without_reciprocals`."""
        return without_reciprocals(self.base, codes)

    def names(self, codes: Codes) -> list[str]:
        """The atoms as text, none as a reciprocal."""
        return self.base.names(self.plain(codes))

    def logits(self, codes: Codes) -> Float64[np.ndarray, " atoms"]:
        """The mean of the networks' logits."""
        return mean_logits(self.members, codes)


def without_reciprocals(base: HerbrandBase, codes: Codes) -> Codes:
    """The same atoms without reciprocals: P(x, y) for P^-1(y, x)."""
    is_reciprocal = np.array([predicate.reciprocal_of is not None for predicate in base.language.predicates], bool)
    if not is_reciprocal.any():
        return codes
    return np.where(is_reciprocal[base.decode(codes)[0]], counterparts(base, codes), codes)


def mean_logits(members: Sequence[AtomLogits], codes: Codes) -> Float64[np.ndarray, " atoms"]:
    """The mean over networks of the logits of atoms."""
    return np.mean([member(codes) for member in members], axis=0)


HIDDEN = -1  # nothing is read of an atom
NUMBERS_AT_ONCE = 2**26  # of messages, in a pass over changes

ChangedLogits = Float64[np.ndarray, "changes queried"]


@dataclass(frozen=True, eq=False)
class Changes:
    """Changes of a graph, by number: ground rules that are left out, and atoms with another input.

    `left_out` pairs changes with ground rules (by number, rule after rule), `altered` with rows; `states` holds for
    each altered atom what is known of it then, or HIDDEN.
    """

    count: int
    left_out: Pairs = field(default_factory=lambda: NO_PAIRS)
    altered: Pairs = field(default_factory=lambda: NO_PAIRS)
    states: Int64[np.ndarray, " _"] = field(default_factory=lambda: NO_CODES)

    def part(self, start: int, end: int) -> "Changes":
        """The changes from `start` to `end`, numbered from 0."""
        own = (self.left_out[:, 0] >= start) & (self.left_out[:, 0] < end)
        read = (self.altered[:, 0] >= start) & (self.altered[:, 0] < end)
        back = np.array([start, 0])
        return Changes(end - start, self.left_out[own] - back, self.altered[read] - back, self.states[read])


@dataclass(frozen=True, eq=False)
class Unrolled:
    """A forward pass: Emb^0(a), ..., Emb^L(a), the sums of messages of each layer, and what is `added` to out(a)."""

    model: R2N
    embeddings: Sequence[Float[Tensor, "atoms dim"]]
    sums: Sequence[Float[Tensor, "atoms dim"]]
    added: Float[Tensor, " atoms"]
    known: Int64[Tensor, " atoms"]

    @classmethod
    @torch.no_grad()
    def from_graph(cls, logits: AtomLogits, graph: FactorGraph) -> "Unrolled":
        """The pass of a network, with the evidence that its logits use."""
        model = logits.model.eval()
        batch = model.collate(graph, "indexed")
        known = known_states(model.base, graph.atoms, logits.evidence).to(model.device)
        embedded = model.embed(batch)
        atoms = model.input_layer(batch, known=known)
        if model.atom_output is None:
            return cls(model, [atoms], [], model.atom_embedding.score(atoms, batch.predicates), known)
        embeddings, sums = [atoms], []
        for layer in model.layers:
            if layer.aggregation.adds_messages:
                sums.append(_summing(layer)(atoms, batch.incidence, rule_embeddings=False)[0])
                atoms = _updated(layer, sums[-1], atoms, batch.incidence.messages)
            else:
                atoms, _ = layer(atoms, batch.incidence, rule_embeddings=False)
            embeddings.append(atoms)
        added = model.own_score(batch, embedded) if model.input_score else atoms.new_zeros(len(atoms))
        return cls(model, embeddings, sums, added, known)

    @torch.no_grad()
    def out(self, layer: int, rows: Int64[np.ndarray, " _"]) -> Float64[np.ndarray, " _"]:
        """out(a) read off a layer, for some rows."""
        chosen = torch.from_numpy(rows).to(self.added.device)
        return self._out(self.embeddings[layer][chosen], chosen)

    def _out(self, embedding: Tensor, rows: Tensor) -> np.ndarray:
        output = self.model.atom_output
        logits = self.added[rows] if output is None else output(embedding) + self.added[rows]
        return logits.double().cpu().numpy()

    @torch.no_grad()
    def changed(
        self, steps: Sequence[Step], collated: Sequence[Incidence], changes: Changes
    ) -> tuple[Int64[np.ndarray, " _"], Float64[np.ndarray, " _"]]:
        """Which atoms of which changes differ at the end (keys of change and row), and their logits then."""
        device = self.added.device
        previous = self._altered(changes)
        for i, (layer, step, incidence) in enumerate(zip(self.model.layers, steps, collated, strict=True)):
            rows = step.as_is.to(device)
            atoms = self.embeddings[i][rows]
            which = (step.altered >= 0).nonzero().flatten()
            atoms[which.to(device)] = previous[step.altered[which].to(device)]
            count = len(step.outputs)
            if self.sums:
                received = _summing(layer)(atoms, incidence, rule_embeddings=False)[0]
                sums = self.sums[i][rows[:count]] + received[:count] - received[count : 2 * count]
                previous = _updated(layer, sums, atoms[:count], step.messages.to(device))
            else:
                previous = layer(atoms, incidence, rule_embeddings=False)[0][:count]
        keys = steps[-1].outputs
        rows = torch.from_numpy(keys % max(1, len(self.added))).to(device)
        return keys, self._out(previous, rows)

    def _altered(self, changes: Changes) -> Tensor:
        """What the first layer reads of the altered atoms, in the order of their keys."""
        order = np.lexsort((changes.altered[:, 1], changes.altered[:, 0]))
        rows = torch.from_numpy(changes.altered[order, 1]).to(self.added.device)
        states = torch.from_numpy(changes.states[order]).to(self.added.device)
        atoms, known, read = self.embeddings[0][rows], self.known[rows], self.model.known
        hidden = (states == HIDDEN).unsqueeze(1)
        if read is None:
            return atoms.masked_fill(hidden, 0.0)
        states = states.masked_fill(states == HIDDEN, UNKNOWN)
        if self.model.evidence_input == "only":
            return read[states]
        return (atoms - read[known]).masked_fill(hidden, 0.0) + read[states]


def _summing(layer: ReasoningLayer) -> ReasoningLayer:
    """The layer with the same networks, which gives the sums of messages."""
    view = copy(layer)
    view.aggregation, view.isolated, view.residual = Sum(), "zero", False
    return view


def _updated(layer: ReasoningLayer, sums: Tensor, atoms: Tensor, messages: Tensor) -> Tensor:
    """The layer's output for sums of so many messages each."""
    is_reached = (messages > 0).unsqueeze(1)
    divisor = layer.aggregation.divide_all(messages)
    made = sums if divisor is None else sums / divisor.unsqueeze(1)
    if layer.residual:
        return atoms + made.masked_fill(~is_reached, 0.0)
    return torch.where(is_reached, made, atoms if layer.isolated == "keep" else torch.zeros_like(atoms))


def graph_around(logits: AtomLogits, codes: Codes) -> tuple[FactorGraph, tuple[Int64[np.ndarray, " _"], ...]]:
    """The graph within reach of a network's layers around atoms and their reciprocals; the rows of each atom in it."""
    reciprocals = reciprocal_codes(logits.model.base, codes)
    every = np.unique(np.concatenate([codes, reciprocals[reciprocals >= 0]]))
    graph = logits.source.around(every, steps=len(logits.model.layers))
    pairs = zip(codes.tolist(), reciprocals.tolist(), strict=True)
    both = [np.unique([code, other]) if other >= 0 else np.array([code]) for code, other in pairs]
    return graph, tuple(graph.rows(torch.from_numpy(pair)).numpy() for pair in both)


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """The graph around some atoms, and the forward passes of one or several networks over it.

    `rows[i]` are the rows of the i-th queried atom: one, or two if it has a reciprocal; its logit is their mean, and
    that over the networks.
    """

    graph: FactorGraph
    codes: Codes
    rows: tuple[Int64[np.ndarray, " _"], ...]
    networks: tuple[Unrolled, ...]

    @classmethod
    def around(cls, members: Sequence[AtomLogits], codes: Codes) -> "Neighbourhood":
        """The neighbourhood of distinct atoms."""
        graph, rows = graph_around(members[0], codes)
        return cls(graph, codes, rows, tuple(Unrolled.from_graph(member, graph) for member in members))

    @property
    def layers(self) -> int:
        """The number of reasoning layers."""
        return len(self.networks[0].embeddings) - 1

    def out(self, layer: int) -> Float64[np.ndarray, " queried"]:
        """out(a) of the queried atoms, read off a layer."""
        return np.array([np.mean([network.out(layer, rows) for network in self.networks]) for rows in self.rows])

    @cached_property
    def logits(self) -> Float64[np.ndarray, " queried"]:
        """The logits of the queried atoms in the graph as it is."""
        return self.out(self.layers)

    @cached_property
    def forward(self) -> IncrementalForward:
        """The pass that computes only what a change reaches."""
        return IncrementalForward(self.graph, np.concatenate([np.zeros(0, np.int64), *self.rows]), self.layers)

    def ground_rules_of(self, index: int) -> Int64[np.ndarray, " _"]:
        """The ground rules (by number) with a queried atom."""
        return np.unique(self.forward.around.incident_rules(self.rows[index])[1])

    def located(self, number: int) -> tuple[int, Int64[np.ndarray, " positions"]]:
        """The rule (by number) of a ground rule, and the rows of its atoms."""
        rule = int(self.forward.around.rules_of(np.array([number]))[0])
        return rule, self.graph.neighbours[rule][number - int(self.forward.around.first[rule])].numpy()

    @cached_property
    def _has_copies(self) -> bool:
        return len(np.unique(self.graph.atoms.numpy())) < len(self.graph.atoms)

    def copies(self, number: int) -> tuple[int, ...]:
        """The ground rules (by number) with the same atoms, this one among them, in all neighbourhoods."""
        codes = self.graph.atoms.numpy()
        if not self._has_copies:
            return (number,)
        rule, rows = self.located(number)
        same = (codes[self.graph.neighbours[rule].numpy()] == codes[rows]).all(axis=1)
        return tuple((int(self.forward.around.first[rule]) + np.flatnonzero(same)).tolist())

    def numbers(self, rule: int) -> Int64[np.ndarray, " _"]:
        """The ground rules of a rule, by number."""
        return np.arange(*self.forward.around.first[rule : rule + 2])

    def changed(self, changes: Changes) -> ChangedLogits:
        """The logits of the queried atoms in each changed graph."""
        entries, first = sum(part.numel() for part in self.graph.neighbours), self.networks[0]
        device, width = first.added.device, first.embeddings[0].shape[1]
        size = max(1, NUMBERS_AT_ONCE // max(1, entries * width))  # as if each change reached every atom
        if not self.layers or not changes.count:
            return np.tile(self.logits, (changes.count, 1))
        if changes.count > size:
            starts = range(0, changes.count, size)
            return np.concatenate([self.changed(changes.part(i, min(i + size, changes.count))) for i in starts])
        steps = list(self.forward.steps(changes.left_out, changes.altered, by_difference=bool(first.sums)))
        grouped = any(layer.rule_embedding is not None for layer in first.model.layers)
        collated = [Incidence.from_graph(step.graph, dense=False, grouped=grouped).to(device) for step in steps]
        queried = np.unique(self.forward.asked)
        total = np.zeros((changes.count, len(queried)))
        for network in self.networks:
            keys, logits = network.changed(steps, collated, changes)
            change, row = np.divmod(keys, len(self.graph.atoms))
            own = np.tile(network.out(self.layers, queried), (changes.count, 1))
            own[change, np.searchsorted(queried, row)] = logits
            total += own / len(self.networks)
        return np.stack([total[:, np.searchsorted(queried, rows)].mean(1) for rows in self.rows], axis=1)
