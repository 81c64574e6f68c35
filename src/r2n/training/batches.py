"""The steps of an epoch: graphs, their targets and masks, over the graph or batches of queries."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from r2n.data.herbrand import Codes, HerbrandBase, closed_atoms
from r2n.data.knowledge_base import Evidence, counterparts
from r2n.data.validation import check_component_batches
from r2n.errors import DataError
from r2n.network.collate import GraphBatch
from r2n.network.factor_graph import UNKNOWN, Batch, FactorGraph, component_batches, known_states, known_truths
from r2n.network.graph_sources import GraphSource
from r2n.network.r2n import R2N
from r2n.network.tensors import Tensors
from r2n.options import MaskingOptions, TrainingOptions
from r2n.progress import Progress, no_progress
from r2n.training.negatives import Negatives, draw_negatives


@dataclass(eq=False)
class ProcessGroup:
    """The processes of a training, as one of them sees them: its own number, from 0, and how many there are."""

    rank: int
    count: int

    def summed(self, values: Tensor) -> Tensor:
        """The sum over the values of all processes; it waits for the last."""
        return values


SINGLE = ProcessGroup(0, 1)


RuleTargets = tuple[Int64[Tensor, " _"], Bool[Tensor, " _"]]
"""The ground rules of a rule whose atoms are all labelled, and the truth of the rule on them."""


@dataclass(frozen=True, eq=False)
class Targets(Tensors):
    """Labels of a graph's atoms and ground rules.

    `labels`: 1 true, 0 false, -1 unknown, for each atom; `asked`: the rows of labelled atoms in the supervised loss;
    `facts`, `negatives`: rows of facts and of their negatives (-1: none) for the softmax; `rules[j]`: the ground rules
    of rule j whose atoms are all labelled, with the truth of the rule on them; `open_atoms`: those that may be masked;
    `first_constants`: by which they may be masked together.
    """

    labels: Int64[Tensor, " atoms"]
    asked: Int64[Tensor, " asked"]
    facts: Int64[Tensor, " rows"]
    negatives: Int64[Tensor, "rows negatives"]
    rules: tuple[RuleTargets, ...]
    open_atoms: Bool[Tensor, " atoms"]
    first_constants: Int64[Tensor, " atoms"]


def targets_of(
    base: HerbrandBase,
    graph: FactorGraph,
    evidence: Evidence,
    negatives: Negatives,
    false: Codes | None = None,
    *,
    ask_closed: bool = False,
) -> Targets:
    """Targets for the evidence and its negatives, all of which the graph must hold, and `false`: further negatives.

    Atoms that the graph holds only as parts of others' neighbourhoods are labelled, but not asked.
    """
    codes, wanted = graph.atoms.numpy(), np.union1d(negatives.codes, negatives.facts)
    missing = wanted[~graph.contains(torch.from_numpy(wanted)).numpy()]
    if len(missing):  # without its negatives, the held-out facts of a graph would be the only false atoms
        raise DataError(
            f"{len(missing):,} of {len(wanted):,} facts and negatives are not in the graph,"
            f" {base.names(missing[:1])[0]} for one",
            hint="train from a source that grounds what is asked: GroundedOnDemand.from_knowledge(knowledge, grounder)",
        )
    truths = known_truths(base, codes, evidence)
    is_negative = np.isin(codes, negatives.codes if false is None else np.union1d(negatives.codes, false))
    truths[is_negative & (truths < 0)] = 0
    labels, closed = torch.from_numpy(truths), closed_atoms(base, codes)
    is_asked = (truths >= 0) & (~closed | ask_closed)
    is_asked[graph.answered :] = False
    rows = torch.from_numpy(negatives.atoms.copy())
    rows[rows >= 0] = graph.rows(rows[rows >= 0])
    return Targets(
        labels=labels,
        asked=torch.from_numpy(np.flatnonzero(is_asked)),
        facts=graph.rows(torch.from_numpy(negatives.facts)),
        negatives=rows,
        rules=tuple(rule_targets(graph, j, labels) for j in range(len(graph.rules))),
        open_atoms=torch.from_numpy(~closed),
        first_constants=torch.from_numpy(base.decode(codes)[1][:, 0].copy() if len(codes) else np.zeros(0, np.int64)),
    )


def rule_targets(graph: FactorGraph, j: int, labels: Int64[Tensor, " atoms"]) -> RuleTargets:
    """R_j^E: the ground rules of rule j whose atoms are all labelled, and the truth of the rule on them."""
    rule, rows = graph.rules[j], graph.neighbours[j]
    if rule.formula is None:
        nothing = torch.zeros(0, dtype=torch.int64, device=rows.device)
        return nothing, nothing.bool()
    known = (labels[rows] >= 0).all(dim=1).nonzero().flatten()
    return known, rule.formula.evaluate(labels[rows[known]] == 1)


def masked_atoms(
    targets: Targets, options: MaskingOptions, constants: int, *, generator: torch.Generator
) -> Bool[Tensor, " atoms"] | None:
    """The open atoms whose input is masked in a step, or None; drawn on the CPU, for any device alike."""
    if not options.hiding:
        return None
    if options.hide_by == "atom":
        drawn = torch.rand(len(targets.labels), generator=generator) < options.hiding
        return drawn.to(targets.open_atoms.device) & targets.open_atoms
    by_constant = (torch.rand(constants, generator=generator) < options.hiding).to(targets.open_atoms.device)
    return by_constant[targets.first_constants] & targets.open_atoms


def masked_by_code(
    codes: Int64[Tensor, " atoms"], targets: Targets, options: MaskingOptions, *, generator: torch.Generator
) -> Bool[Tensor, " atoms"] | None:
    """The same by a hash (splitmix64) of an atom's code and one number drawn: alike in all parts of a step."""
    if not options.hiding:
        return None
    seed = int(torch.randint(2**62, (1,), generator=generator))
    mixed = codes.cpu().numpy().astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    drawn = torch.from_numpy((mixed >> np.uint64(11)).astype(np.float64) / 2**53 < options.hiding)
    return drawn.to(targets.open_atoms.device) & targets.open_atoms


class Losses(NamedTuple):
    """The loss of a step, and its parts L_sup, L_sem and that of the t-norm, before their weights."""

    total: Float[Tensor, ""]
    supervised: Float[Tensor, ""]
    semantic: Float[Tensor, ""]
    fuzzy: Float[Tensor, ""]


@dataclass(frozen=True, eq=False)
class Step:
    """One step of the optimiser: a graph, collated, its targets, and the known states of its atoms.

    `weights` are those of L_sup, L_sem and the t-norm, which are means over the targets of the step, so that their mean
    over all steps of an epoch is the mean over the targets of the full graph. `own` are the ground rules of each rule
    that a t-norm counts (None: all). `leaves_out`: the queries of the step are unknown in it. `penalty` weighs the
    terms that do not depend on the step.
    """

    batch: GraphBatch
    graph: FactorGraph
    targets: Targets
    known: Int64[Tensor, " atoms"]
    weights: tuple[float, ...] = (1.0, 1.0, 1.0)
    own: tuple[Int64[Tensor, " _"], ...] | None = None
    leaves_out: bool = False
    penalty: float = 1.0

    @classmethod
    def from_batch(cls, batch: GraphBatch, targets: Targets, known: Int64[Tensor, " atoms"]) -> "Step":
        """All on the device of the batch."""
        device = batch.device
        return cls(batch, batch.graph.to(device), targets.to(device), known.to(device))


AnyStep = Any
"""A step, or an object without a graph whose `losses(model, options)` are the loss and its parts."""


@runtime_checkable
class Batches(Protocol):
    """The steps of each epoch."""

    @property
    def ground_rules(self) -> int:
        """The number of ground rules that are collated at once."""
        ...

    def asked(self, generator: torch.Generator) -> tuple[Codes, Codes]:
        """The positive and the negative atoms of an epoch; sorted, distinct."""
        ...

    def epoch(self, generator: torch.Generator) -> Iterator[AnyStep]:
        """The steps of one epoch, in order; all randomness comes from the generator."""
        ...


@dataclass(frozen=True, eq=False)
class FixedBatches:
    """The same steps in every epoch, in random order: one over the full graph, or one for each part."""

    steps: tuple[Step, ...]

    @property
    def ground_rules(self) -> int:
        """Those of all steps."""
        return sum(len(step.graph) for step in self.steps)

    def asked(self, generator: torch.Generator) -> tuple[Codes, Codes]:
        """The same in every epoch."""
        parts = [(step.batch.graph.atoms, step.targets.asked.cpu(), step.targets.labels.cpu()) for step in self.steps]
        true, false = (
            torch.cat([atoms[asked[labels[asked] == truth]] for atoms, asked, labels in parts]) for truth in (1, 0)
        )
        return true.unique().numpy(), false.unique().numpy()

    def epoch(self, generator: torch.Generator) -> Iterator[Step]:
        """Each step once."""
        order = torch.randperm(len(self.steps), generator=generator).tolist() if len(self.steps) > 1 else [0]
        return (self.steps[i] for i in order)


def draws(options: TrainingOptions) -> bool:
    """Whether the seed decides which atoms are asked: negatives are drawn, not listed."""
    return options.negatives is not None and not options.asks_base


Check = Callable[[FactorGraph], None]
"""Refuses a graph that is too large, before it is collated."""


FEWER = 2  # times: a graph cut to what the layers reach from labelled atoms is taken if it is so much smaller


def make_batches(
    model: R2N,
    source: GraphSource,
    evidence: Evidence,
    options: TrainingOptions,
    *,
    seed: int = 0,
    check: Check | None = None,
    progress: Progress = no_progress,
) -> FixedBatches:
    """Draw the negatives, get the graph around all queries, and collate it; full, or in its components.

    If all atoms share the ground rules, the graph also has closed facts, for L_sem, and all atoms of ground rules, for
    a t-norm; if each atom has its own, neighbours of one query must not send messages to another. Ground rules that are
    farther from every labelled atom than the layers reach are left out if these are many.
    """
    check_component_batches(options)
    base, negatives, full = model.base, Negatives.none(), source.full_graph
    if options.asks_base:
        atoms = np.arange(base.size)
    else:
        negatives = draw_negatives(base, evidence, options, np.random.default_rng(seed))
        is_left_out = full is None and not options.ask_closed
        known = evidence.atoms[~closed_atoms(base, evidence.atoms)] if is_left_out else evidence.atoms
        atoms = np.union1d(np.union1d(known, negatives.facts), negatives.codes)
        if full is not None and options.regularisation != "off":
            atoms = np.union1d(atoms, full.atoms.numpy())
    if full is None:
        progress("ground", 0, 0)
    graph = source.around(atoms)
    if full is not None and not (options.asks_base or options.reads_closed):
        asked = atoms if options.semantic_weight and may_be_closed(full, base) else atoms[~closed_atoms(base, atoms)]
        near = source.around(asked, steps=len(model.layers))
        graph = near if FEWER * len(near) < len(graph) else graph
    progress("collate", 0, 0)
    targets = targets_of(base, graph, evidence, negatives, ask_closed=options.ask_closed)
    known = known_states(base, graph.atoms, evidence)
    parts = [(graph, targets, known)]
    if options.batches is not None:
        wanted = torch.full((len(graph.atoms),), options.regularisation != "off")  # a t-norm asks every ground rule
        wanted[targets.asked] = True
        for rows, (rule_known, _) in zip(graph.neighbours, targets.rules, strict=True):
            wanted[rows[rule_known].flatten()] = True
        batches = component_batches(graph, wanted, options.batches)
        parts = [(part.graph, _targets_of_part(targets, part), known[part.kept]) for part in batches] or parts
    if check is not None:
        check(max((part for part, _, _ in parts), key=lambda part: len(part.atoms)))
    steps = [Step.from_batch(model.collate(part), asked, states) for part, asked, states in parts]
    if len(steps) > 1:  # each weight is the step's part of all targets
        counts = np.array([loss_counts(step, len(step.targets.asked)) for step in steps])
        weights = counts * len(steps) / counts.sum(0).clip(min=1)
        steps = [replace(step, weights=tuple(row)) for step, row in zip(steps, weights.tolist(), strict=True)]
    return FixedBatches(tuple(steps))


def loss_counts(step: Step, supervised: int) -> tuple[int, int, int]:
    """Over how many atoms or facts, known ground rules, and ground rules of a t-norm the means of a step go."""
    counted = step.graph.neighbours if step.own is None else step.own
    explicit = sum(len(rows) for rule, rows in zip(step.graph.rules, counted, strict=True) if rule.formula is not None)
    return supervised, sum(len(known) for known, _ in step.targets.rules), explicit


def _targets_of_part(targets: Targets, part: Batch) -> Targets:
    """The targets among the atoms and ground rules of a part."""
    labels = targets.labels[part.kept]
    is_asked = torch.zeros(len(targets.labels), dtype=torch.bool)
    is_asked[targets.asked] = True
    return Targets(
        labels=labels,
        asked=is_asked[part.kept].nonzero().flatten(),
        facts=targets.facts[:0],
        negatives=targets.negatives[:0],
        rules=tuple(rule_targets(part.graph, j, labels) for j in range(len(part.graph.rules))),
        open_atoms=targets.open_atoms[part.kept],
        first_constants=targets.first_constants[part.kept],
    )


@dataclass(frozen=True, eq=False)
class Drawn:
    """The queries of one step: atoms, facts with their negatives; `weight` is its share of an epoch.

    `rule_atoms` are no queries: their ground rules count in L_sem or for a t-norm.
    """

    asked: Codes
    negatives: Negatives
    rule_atoms: Codes
    weight: float = 1.0

    def shard(self, group: ProcessGroup, *, by_fact: bool) -> "Drawn":
        """The part of a process: atoms one by one, and (`by_fact`) facts, each with all its negatives."""
        if group.count == 1:
            return self
        own = slice(group.rank, None, group.count)
        asked, negatives = self.asked[own].copy(), Negatives.none()
        if by_fact:
            negatives = Negatives(self.negatives.facts[own].copy(), self.negatives.atoms[own].copy())
            asked = np.union1d(asked, np.union1d(negatives.facts, negatives.codes))
        return Drawn(asked, negatives, self.rule_atoms[own].copy(), self.weight)


def own_ground_rules(graph: FactorGraph, step: Drawn, group: ProcessGroup) -> tuple[Int64[Tensor, " _"], ...]:
    """For each rule, the ground rules with an atom that the graph answers: the others are there for these alone.

    Of several processes, a ground rule belongs to that of the first of its atoms that the full step holds.
    """
    own = tuple((part < graph.answered).any(dim=1).nonzero().flatten() for part in graph.neighbours)
    codes, atoms = np.concatenate([step.asked, step.rule_atoms]), graph.atoms.numpy()
    if group.count == 1 or not len(codes):
        return own
    owner = np.concatenate([np.arange(len(part)) % group.count for part in (step.asked, step.rule_atoms)])
    order = np.argsort(codes)
    index = order[np.searchsorted(codes, atoms, sorter=order).clip(max=len(codes) - 1)]
    first = np.where(codes[index] == atoms, atoms, np.iinfo(np.int64).max)
    found = []
    for rows, some in zip(graph.neighbours, own, strict=True):
        chosen = rows[some].numpy()
        best = np.take_along_axis(chosen, first[chosen].argmin(axis=1)[:, None], axis=1)[:, 0]
        found.append(some[torch.from_numpy(owner[index[best]] == group.rank)])
    return tuple(found)


FEWEST_BATCHES_LEFT_OUT = 5  # queries left out together miss each other as neighbours: at most a fifth of the facts


class QueryBatches:
    """Steps of `options.batch_size` known atoms each, shuffled, with new negatives and the graph around them.

    With one batch and all negatives, without leave-one-out, the step is that over the full graph.
    """

    def __init__(self, model: R2N, source: GraphSource, evidence: Evidence, options: TrainingOptions) -> None:
        """Find the atoms to ask for; nothing is drawn or grounded yet."""
        self.model, self.source, self.evidence, self.options = model, source, evidence, options
        self.leaves_out = leaves_one_out(model, source, evidence, options)
        self.open = evidence.atoms[~closed_atoms(model.base, evidence.atoms)]
        self.known = evidence.atoms if options.ask_closed else self.open
        self.rule_atoms = np.setdiff1d(self._find_rule_atoms(), self.known, assume_unique=True)
        self.group = SINGLE
        self.hops = len(model.layers) + (options.regularisation != "off")  # a t-norm reads the atoms one step on

    def __len__(self) -> int:
        steps = -(-len(self.known) // (self.options.batch_size or len(self.known) or 1))
        if self.leaves_out:
            steps = max(steps, min(FEWEST_BATCHES_LEFT_OUT, len(self.known)))
        return max(1, steps)

    @property
    def ground_rules(self) -> int:
        """The number of ground rules of one step, as an example."""
        return len(self.graph(next(self.drawn(torch.Generator()))))

    def epoch(self, generator: torch.Generator) -> Iterator[Step]:
        """Each known atom once."""
        return map(self._step, self.drawn(generator))

    def drawn(self, generator: torch.Generator) -> Iterator[Drawn]:
        """The queries of an epoch's steps; all randomness comes from the generator, before the first of them."""
        steps, facts = len(self), self.evidence.facts
        order = self.known[torch.randperm(len(self.known), generator=generator).numpy()]
        others = self.rule_atoms[torch.randperm(len(self.rule_atoms), generator=generator).numpy()]
        dice = np.random.default_rng(int(torch.randint(2**62, (1,), generator=generator)))
        for known, rule_atoms in zip(np.array_split(order, steps), np.array_split(others, steps), strict=True):
            true = known[np.isin(known, facts)]
            negatives = draw_negatives(self.model.base, self.evidence, self.options, dice, true)
            weight = len(known) * steps / len(order) if len(order) else 1.0
            yield Drawn(np.union1d(known, negatives.codes), negatives, rule_atoms, weight)

    def asked(self, generator: torch.Generator) -> tuple[Codes, Codes]:
        """The positive and the negative atoms of an epoch."""
        true = np.isin(self.known, self.evidence.facts)
        negatives = np.unique(np.concatenate([drawn.negatives.codes for drawn in self.drawn(generator)]))
        if not self.options.ask_closed:
            negatives = negatives[~closed_atoms(self.model.base, negatives)]
        return self.known[true], np.union1d(self.known[~true], negatives)

    def left_out(self, drawn: Drawn) -> Codes:
        """The queries of a step that are unknown in it, with reciprocals; none of a closed world: it would be false."""
        codes = np.intersect1d(drawn.asked, self.open, assume_unique=True)
        return np.union1d(codes, np.setdiff1d(counterparts(self.model.base, codes), [-1]))

    def graph(self, drawn: Drawn) -> FactorGraph:
        """The graph of this process's part of a step: it answers its queries and rule atoms."""
        part = drawn.shard(self.group, by_fact=self.options.compares_facts)
        without = self.left_out(drawn) if self.leaves_out else None
        return self.source.around(np.union1d(part.asked, part.rule_atoms), steps=self.hops, without=without)

    def _step(self, drawn: Drawn) -> Step:
        base, graph = self.model.base, self.graph(drawn)
        part = drawn.shard(self.group, by_fact=self.options.compares_facts)
        false = drawn.negatives.codes
        targets = targets_of(base, graph, self.evidence, part.negatives, false, ask_closed=self.options.ask_closed)
        is_asked = np.isin(graph.atoms[targets.asked].numpy(), part.asked)
        targets = replace(targets, asked=targets.asked[torch.from_numpy(is_asked)])
        known = known_states(base, graph.atoms, self.evidence)
        if self.leaves_out:
            known[torch.from_numpy(np.isin(graph.atoms.numpy(), self.left_out(drawn)))] = UNKNOWN
        own = None
        if self.source.full_graph is not None:
            own = own_ground_rules(graph, drawn, self.group)
            kept = [torch.isin(rule_known, some) for (rule_known, _), some in zip(targets.rules, own, strict=True)]
            pairs = zip(targets.rules, kept, strict=True)
            targets = replace(targets, rules=tuple((rule[0][keep], rule[1][keep]) for rule, keep in pairs))
        step = Step.from_batch(self.model.collate(graph, "dense"), targets, known)
        own = None if own is None else tuple(rows.to(step.batch.device) for rows in own)
        return replace(step, weights=(drawn.weight,) * 3, own=own, leaves_out=self.leaves_out)

    def _find_rule_atoms(self) -> Codes:
        """Atoms whose ground rules are for the losses on rules, spread over the steps of an epoch.

        For a t-norm these are all; for L_sem those closed facts that may stand in ground rules of closed atoms alone.
        """
        full_graph = self.source.full_graph
        if full_graph is not None and self.options.regularisation != "off":
            return full_graph.atoms.numpy()
        if full_graph is not None and self.options.semantic_weight > 0 and may_be_closed(full_graph, self.model.base):
            return np.setdiff1d(self.evidence.atoms, self.open, assume_unique=True)
        return np.zeros(0, np.int64)


def may_be_closed(graph: FactorGraph, base: HerbrandBase) -> bool:
    """Whether there may be ground rules of closed atoms alone, which count in L_sem."""
    for rule, part in zip(graph.rules, graph.neighbours, strict=True):
        predicates = [base.language.predicate(atom.predicate) for atom in rule.atoms]
        if len(part) and rule.formula is not None and all(p.closed or p.closed_parts for p in predicates):
            return True
    return False


def leaves_one_out(model: R2N, source: GraphSource, evidence: Evidence, options: TrainingOptions) -> bool:
    """Whether the queries of a step are unknown in it: by the options, else if something would give the answer away.

    That is a network that reads evidence, or a rule with a queried predicate in its body if bodies have to be known.
    """
    if options.leave_one_out is not None or options.batch_size is None:
        return bool(options.leave_one_out)
    if model.evidence_input != "off":
        return True
    base = model.base
    asked = evidence.atoms[~closed_atoms(base, evidence.atoms)]
    both = np.concatenate([asked, counterparts(base, asked)])
    asked_of = {predicate.name for predicate in base.predicates(both[both >= 0])}
    return not asked_of.isdisjoint(source.known_in_bodies)
