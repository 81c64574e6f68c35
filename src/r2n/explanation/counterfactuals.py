"""Counterfactuals: what would be answered without facts or rules, and the fewest facts that flip an answer.

They come from the neighbourhood of atoms: the graph around them, and forward passes over it with and without changes.
"""

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor

from r2n.data.herbrand import Codes, HerbrandBase, RowIndex, closed_atoms
from r2n.data.knowledge_base import KnowledgeBase, counterparts, reciprocal_codes
from r2n.explanation.records import Belief, Counterfactual, Kind
from r2n.grounding.ground_rules import Adjacency
from r2n.network.factor_graph import FALSE, UNKNOWN, FactorGraph, known_states
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
            if isinstance(layer, ReasoningLayer) and layer.aggregation.adds_messages:
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
            if isinstance(layer, ReasoningLayer) and self.sums:
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


MOST_REGROUNDED = 8  # facts, or rules, for which everything is grounded again
MOST_FACTS = 200  # the nearest of a neighbourhood
MOST_TRIED = 16  # facts among which a set that flips the answer is sought
SAME = 1e-9  # logits that differ by less are equal

Logits = Float64[np.ndarray, "changes queried"]


@dataclass(frozen=True, eq=False)
class Flip:
    """When the answer `codes[0]` flips: below `half` (a logit), or by a rival of the others (None: never)."""

    codes: Codes
    by: Literal["half", "first"] | None
    half: float = 0.0

    def margins(self, logits: Logits) -> Float64[np.ndarray, " changes"]:
        """The distance of each answer from flipping; negative if it has flipped."""
        if self.by is None:
            return np.ones(len(logits))
        return logits[:, 0] - (self.half if self.by == "half" else logits[:, 1:].max(1))

    def flips(self, logits: Logits) -> Bool[np.ndarray, " changes"]:
        """Whether each answer flips."""
        return self.margins(logits) < 0


@dataclass(frozen=True, eq=False)
class Counterfactuals:
    """The answers for an atom and its rivals after changes.

    `shown` are the facts in the reasons, `rules` the rules (by name) within reach. If one of them cannot be taken out
    of the graph as it is, everything is grounded again, for a few of them. `logits` are those of the flip's atoms.
    """

    model: ExplainedModel
    near: Neighbourhood
    flip: Flip
    shown: Codes
    rules: tuple[str, ...]
    logits: Float64[np.ndarray, " queried"]

    @cached_property
    def _rests_on(self) -> tuple[np.ndarray, np.ndarray]:
        """For each position of each rule, whether a ground rule goes with a true atom there; and with a false one."""
        theory, source = self.model.knowledge.theory, self.model.members[0].source
        rules = self.near.graph.rules
        shape = len(rules), max((len(rule.atoms) for rule in rules), default=0)
        with_true, with_false = np.zeros(shape, bool), np.zeros(shape, bool)
        for j, rule in enumerate(rules):
            for literal in rule.body:
                is_closed = theory.is_closed(rule, literal.position)
                is_asked = rule.atoms[literal.position].predicate in source.known_in_bodies
                with_true[j, literal.position] |= literal.positive and (is_closed or is_asked)
                with_false[j, literal.position] |= not literal.positive and is_asked and not is_closed
        return with_true, with_false

    def only_remove(self, facts: Codes, *, false: bool = False) -> Bool[np.ndarray, " facts"]:
        """Whether facts only remove ground rules when they are not known, or known to be `false`."""
        knowledge, member = self.model.knowledge, self.model.members[0]
        adding = set(knowledge.candidates)  # the predicates whose facts may also add ground rules
        is_full = member.source.full_graph is not None and not member.model.counts_ground_rules
        for rule in knowledge.theory.rules if is_full else ():
            for literal in (literal for literal in rule.body if not literal.positive):
                predicate = rule.atoms[literal.position].predicate
                is_closed = knowledge.theory.is_closed(rule, literal.position)
                adding |= {predicate} if is_closed or (false and predicate in member.source.known_in_bodies) else set()
        removes = np.array([is_full and part.name not in adding for part in knowledge.language.predicates], bool)
        return removes[self.model.base.decode(facts)[0]]

    @property
    def are_distinguished(self) -> bool:
        """Whether a fact that is not known can differ from one that is known to be false."""
        model, source = self.model.members[0].model, self.model.members[0].source
        return model.evidence_input != "off" or source.full_graph is None or bool(source.known_in_bodies)

    def asserted(self, most: int) -> Codes:
        """The asserted facts within reach of the queried atoms, ascending; the nearest `most` of them."""
        atoms, steps = self.near.graph.atoms.numpy(), self.near.forward.steps_away
        rows = np.flatnonzero(np.isin(atoms, self.model.knowledge.evidence.atoms) & (steps <= self.near.layers))
        rows = rows[np.argsort(steps[rows], kind="stable")]
        _, first = np.unique(self.model.plain(atoms[rows]), return_index=True)
        found = self.model.plain(atoms[rows[np.sort(first)]])
        if self.model.members[0].model.evidence_input == "off":
            found = found[np.unique(self._gone(found)[0])]
        return np.sort(found[:most])

    def _rows(self, facts: Codes) -> tuple[np.ndarray, np.ndarray]:
        """The rows of facts, and of their reciprocals, in the graph: the fact's index, and the row."""
        codes = np.concatenate([facts, counterparts(self.model.base, facts)])
        atoms = self.near.graph.atoms.numpy()
        order = np.argsort(atoms, kind="stable")
        which, found = RowIndex.from_rows(atoms[order]).entries(codes)
        return which % max(1, len(facts)), order[found]

    def _gone(self, facts: Codes) -> tuple[np.ndarray, np.ndarray]:
        """The ground rules that go with facts: the fact's index, and the ground rule by number."""
        of, rows = self._rows(facts)
        index, numbers, rules, positions = self.near.forward.around.incident_positions(rows)
        evidence = self.model.knowledge.evidence
        truth = evidence.truth[np.searchsorted(evidence.atoms, facts)][of[index]]
        goes = np.where(truth, self._rests_on[0][rules, positions], self._rests_on[1][rules, positions])
        return of[index][goes], numbers[goes]

    def changes(self, facts: Codes, members: Pairs, count: int, *, false: bool = False) -> Changes:
        """Changes in which facts are not known (or are `false`); `members` pairs changes with facts (by index)."""
        of, rows = self._rows(facts)
        own, numbers = Adjacency.build(*self._gone(facts), len(facts)).follow(members[:, 1])
        left_out = np.stack([members[own, 0], numbers], axis=1)
        if self.model.members[0].model.evidence_input == "off":
            return Changes(count, left_out)
        own, read = Adjacency.build(of, rows, len(facts)).follow(members[:, 1])
        state = np.where(closed_atoms(self.model.base, facts) | false, FALSE, UNKNOWN).astype(np.int64)
        altered = np.stack([members[own, 0], read], axis=1)
        return Changes(count, left_out, altered, state[members[own, 1]])

    def of_facts(self) -> tuple[Counterfactual, ...]:
        """The answers if each fact within reach were not known, or known to be false."""
        found = self._records("not known", self.model.names(self._unknown[0]), self._unknown[1])
        if not self.are_distinguished:
            return found
        facts, logits = self._single(false=True)
        before = self._unknown[1][np.searchsorted(self._unknown[0], facts)]
        differs = np.abs(logits - before).max(1, initial=0.0) > SAME
        return (*found, *self._records("known to be false", self.model.names(facts[differs]), logits[differs]))

    def _records(self, kind: Kind, names: Sequence[str], logits: Iterable[np.ndarray]) -> tuple[Counterfactual, ...]:
        return tuple(self._record(kind, (name,), row) for name, row in zip(names, logits, strict=True))

    @cached_property
    def _unknown(self) -> tuple[Codes, Logits]:
        """Facts (ascending) within reach, and the logits if each is not known."""
        return self._single(false=False)

    def _single(self, *, false: bool) -> tuple[Codes, Logits]:
        """Facts (ascending) that can be changed, and the logits then: by leaving them out, or by grounding again."""
        asserted, evidence = self.asserted(MOST_FACTS), self.model.knowledge.evidence
        facts = np.union1d(asserted, self.shown)
        if false:
            facts = self._unknown[0]
            is_true = evidence.truth[np.searchsorted(evidence.atoms, facts)]
            facts = facts[is_true & ~closed_atoms(self.model.base, facts)]
        easy = self.only_remove(facts, false=false)
        found = facts[easy & np.isin(facts, asserted)]
        regrounded = facts[~easy & np.isin(facts, self.shown)][:MOST_REGROUNDED]
        pairs = np.stack([np.arange(len(found))] * 2, axis=1)
        logits = self.near.changed(self.changes(found, pairs, len(found), false=false))
        others = [self._regrounded(np.array([fact]), false=false) for fact in regrounded.tolist()]
        facts = np.concatenate([found, regrounded])
        order = np.argsort(facts)
        return facts[order], np.concatenate([logits, *others])[order]

    def _regrounded(self, facts: Codes, *, false: bool = False) -> Logits:
        """The logits if everything is grounded again without facts."""
        gone = WhatIf(unknown=facts, false=facts if false else facts[:0])
        return mean_logits(self.model.networks_if(gone), self.flip.codes)[None]

    def of_rules(self) -> tuple[Counterfactual, ...]:
        """The answers without each rule within reach."""
        first, graph = self.model.members[0], self.near.graph
        if first.source.full_graph is None or first.model.counts_ground_rules:
            names = self.rules[:MOST_REGROUNDED]
            logits = [mean_logits(self.model.networks_if(WhatIf(without_rule=n)), self.flip.codes) for n in names]
            return self._records("without rule", names, logits)
        rules = [j for j, part in enumerate(graph.neighbours) if len(part)]
        pairs = [np.stack([np.full(len(n), k), n], axis=1) for k, n in enumerate(map(self.near.numbers, rules))]
        logits = self.near.changed(Changes(len(rules), np.concatenate([NO_PAIRS, *pairs])))
        return self._records("without rule", [graph.rules[j].name for j in rules], logits)

    def largest(self, top: int | None) -> tuple[tuple[Counterfactual, ...], Counterfactual | None]:
        """The `top` facts and `top` rules that change the logit most, and the set of facts that flips the answer."""
        kinds = self.of_facts(), self.of_rules()
        ordered = [sorted(part, key=lambda item: -abs(item.logit - self.logits[0])) for part in kinds]
        return tuple(item for part in ordered for item in part[:top]), self.minimal_flip_set()

    def _record(self, kind: Kind, what: tuple[str, ...], logits: np.ndarray) -> Counterfactual:
        probability = float(self.model.probability(logits[:1])[0])
        return Counterfactual(kind, what, float(logits[0]), probability, bool(self.flip.flips(logits[None])[0]))

    def minimal_flip_set(self) -> Counterfactual | None:
        """The facts whose absence flips the answer, found one after the other; None if none were found."""
        if self.flip.by is None:
            return None
        facts, logits = self._unknown
        margins = self.flip.margins(logits)
        order = np.argsort(margins, kind="stable")[:MOST_TRIED]
        order = order[margins[order] < self.flip.margins(self.logits[None])[0] - SAME]
        if not len(order):
            return None
        if self.only_remove(facts[order]).all():
            found = self._greedy(facts[order])
        else:  # one fact more each time, those first that do most alone
            most = facts[order[:MOST_REGROUNDED]]
            sets = ((most[:size].tolist(), self._regrounded(most[:size])) for size in range(1, len(most) + 1))
            found = next(((part, rows[0]) for part, rows in sets if self.flip.flips(rows)[0]), None)
        if found is None:
            return None
        chosen, row = found
        return self._record("not known", tuple(self.model.names(np.array(chosen, np.int64))), row)

    def _without(self, facts: Codes, sets: list[list[int]]) -> Logits:
        """The logits without each set of facts, given by their indices."""
        pairs = np.array([[k, index] for k, part in enumerate(sets) for index in part], np.int64).reshape(-1, 2)
        return self.near.changed(self.changes(facts, pairs, len(sets)))

    def _greedy(self, facts: Codes) -> tuple[list[int], np.ndarray] | None:
        """One fact more each time, those first that do most alone; then what is not needed is left out again."""
        found = self._shortest(facts, list(range(len(facts))))
        if found is None or len(found[0]) == 1:
            return found
        chosen = list(range(len(found[0])))
        margins = self.flip.margins(self._without(facts, [chosen[:i] + chosen[i + 1 :] for i in chosen]))
        spare = [i for i in np.argsort(margins, kind="stable").tolist() if margins[i] < 0]
        sets = [[i for i in chosen if i not in spare[:n]] for n in range(1, len(spare) + 1)]
        flipping = [*self.flip.flips(self._without(facts, sets)).tolist(), False]
        kept = [chosen, *sets][flipping.index(False)]
        return found if kept == chosen else self._shortest(facts, kept)

    def _shortest(self, facts: Codes, chosen: list[int]) -> tuple[list[int], np.ndarray] | None:
        """The shortest prefix of some facts (by index) that flips the answer, and the logits without it."""
        logits = self._without(facts, [chosen[: size + 1] for size in range(len(chosen))])
        flipping = np.flatnonzero(self.flip.flips(logits))
        return (facts[chosen[: flipping[0] + 1]].tolist(), logits[flipping[0]]) if len(flipping) else None
