"""Predictions -> a trained network: the part of a batch of queries that one of several processes asks.

What is asked is dealt out by its codes, so that every atom, and every ground rule, counts for one process.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from r2n.data.herbrand import Codes, HerbrandBase, closed_atoms
from r2n.data.knowledge_base import Evidence, counterparts
from r2n.data.validation import refuse_batches
from r2n.logic.theory import Rule
from r2n.network.factor_graph import UNKNOWN, FactorGraph, known_states
from r2n.network.graph_sources import GraphSource
from r2n.network.r2n import R2N
from r2n.options import TrainingOptions
from r2n.progress import Progress, no_progress
from r2n.training.batches import Batches, Check, Step, make_batches
from r2n.training.negatives import Negatives, draw_negatives
from r2n.training.rows import RowBatches, asks_rows
from r2n.training.targets import Targets, targets_of
from r2n.training.team import ONE, Team


@dataclass(frozen=True, eq=False)
class Part:
    """What one process asks of a step: atoms, facts beside their negatives (for a softmax), and atoms beside."""

    asked: Codes
    negatives: Negatives
    beside: Codes


def part_of(whole: Part, team: Team, *, by_fact: bool) -> Part:
    """The part of a process: atoms one by one, and (`by_fact`) facts, each with all its negatives."""
    if team.count == 1:
        return whole
    own = slice(team.rank, None, team.count)
    asked, negatives = whole.asked[own].copy(), Negatives.none()
    if by_fact:
        negatives = Negatives(whole.negatives.facts[own].copy(), whole.negatives.atoms[own].copy())
        asked = np.union1d(asked, np.union1d(negatives.facts, negatives.codes))
    return Part(asked, negatives, whole.beside[own].copy())


def owned(
    graph: FactorGraph, own: Sequence[Int64[Tensor, " _"]], whole: Part, team: Team
) -> tuple[Int64[Tensor, " _"], ...]:
    """Of some ground rules of each rule, those of this process: of the first of its atoms that the whole step holds."""
    if team.count == 1:
        return tuple(own)
    codes = np.concatenate([whole.asked, whole.beside])
    owner = np.concatenate([np.arange(len(part)) % team.count for part in (whole.asked, whole.beside)])
    order = np.argsort(codes)
    codes, owner = codes[order], owner[order]
    atoms = graph.atoms.numpy()
    place = np.minimum(np.searchsorted(codes, atoms), max(len(codes) - 1, 0))
    is_there = codes[place] == atoms if len(codes) else np.zeros(len(atoms), bool)
    first = np.where(is_there, atoms, np.iinfo(np.int64).max)  # the smallest code of a ground rule that is there
    found = []
    for rows, some in zip(graph.neighbours, own, strict=True):
        chosen = rows[some].numpy()
        best = first[chosen].argmin(axis=1) if len(chosen) else np.zeros(0, np.int64)
        mine = owner[place[chosen[np.arange(len(chosen)), best]]] == team.rank
        found.append(some[torch.from_numpy(mine)])
    return tuple(found)


FEWEST_BATCHES_LEFT_OUT = 5  # what is left out together is missed by its own neighbours: at most a fifth of the facts


@dataclass(frozen=True, eq=False)
class Drawn:
    """What one step asks: atoms of the evidence, negatives of those that are true; its share of an epoch is `weight`.

    `beside` are atoms that are not asked, whose ground rules count in L_sem or for a t-norm.
    """

    known: Codes
    negatives: Negatives
    beside: Codes
    weight: float

    @cached_property
    def asked(self) -> Codes:
        """All that is asked, sorted and distinct."""
        return np.union1d(self.known, self.negatives.codes)

    @cached_property
    def whole(self) -> Part:
        """The step, before it is dealt out."""
        return Part(self.asked, self.negatives, self.beside)


class QueryBatches:
    """Steps of `options.batch_size` known atoms each, shuffled, their negatives drawn anew, with the graph around them.

    With one batch and all negatives, without leave-one-out, the step is that over the whole graph.
    """

    def __init__(self, model: R2N, source: GraphSource, evidence: Evidence, options: TrainingOptions) -> None:
        """Find out what can be asked; nothing is drawn or grounded around it yet."""
        self.model, self.source, self.evidence, self.options = model, source, evidence, options
        self.leaves_out = leaves_one_out(model, source, evidence, options)
        self.open = evidence.atoms[~closed_atoms(model.base, evidence.atoms)]
        self.known = evidence.atoms if options.ask_closed else self.open
        self.beside = np.setdiff1d(self._beside(), self.known, assume_unique=True)
        self.team: Team = ONE
        self.steps_felt = len(model.layers) + (options.regularisation != "off")  # a t-norm reads the atoms one step on

    def __len__(self) -> int:
        """The number of steps in an epoch; one at least."""
        steps = -(-len(self.known) // (self.options.batch_size or len(self.known) or 1))
        if self.leaves_out:
            steps = max(steps, min(FEWEST_BATCHES_LEFT_OUT, len(self.known)))
        return max(1, steps)

    @property
    def ground_rules(self) -> int:
        """How many ground rules a step sees, by the example of one."""
        return len(self.graph(next(self.drawn(torch.Generator()))))

    def epoch(self, generator: torch.Generator) -> Iterator[Step]:
        """Each known atom once."""
        return map(self._step, self.drawn(generator))

    def drawn(self, generator: torch.Generator) -> Iterator[Drawn]:
        """What the steps of an epoch ask; all that is random comes from the generator, before the first of them."""
        steps, facts = len(self), self.evidence.atoms[self.evidence.truth]
        order = self.known[torch.randperm(len(self.known), generator=generator).numpy()]
        beside = self.beside[torch.randperm(len(self.beside), generator=generator).numpy()]
        dice = np.random.default_rng(int(torch.randint(2**62, (1,), generator=generator)))
        for known, near in zip(np.array_split(order, steps), np.array_split(beside, steps), strict=True):
            true = known[np.isin(known, facts)]
            negatives = draw_negatives(self.model.base, self.evidence, self.options, dice, true)
            weight = len(known) * steps / len(order) if len(order) else 1.0
            yield Drawn(np.sort(known), negatives, near, weight)

    def asked(self, generator: torch.Generator) -> tuple[Codes, Codes]:
        """The atoms that an epoch asks as true, and as false."""
        true = np.isin(self.known, self.evidence.atoms[self.evidence.truth])
        negatives = np.unique(np.concatenate([drawn.negatives.codes for drawn in self.drawn(generator)]))
        if not self.options.ask_closed:
            negatives = negatives[~closed_atoms(self.model.base, negatives)]
        return self.known[true], np.union1d(self.known[~true], negatives)

    def left_out(self, drawn: Drawn) -> Codes:
        """Of what a step asks, that of which nothing may be known in it, in either direction of a predicate.

        An atom of a closed world is never left out: it would be false.
        """
        codes = np.intersect1d(drawn.asked, self.open, assume_unique=True)
        return np.union1d(codes, np.setdiff1d(counterparts(self.model.base, codes), [-1]))

    def graph(self, drawn: Drawn) -> FactorGraph:
        """The graph of a step: it answers what is asked here, and what is beside it."""
        part, without = self._part(drawn), self.left_out(drawn) if self.leaves_out else None
        return self.source.around(np.union1d(part.asked, part.beside), steps=self.steps_felt, without=without)

    def _part(self, drawn: Drawn) -> Part:
        """What this process asks of a step."""
        return part_of(drawn.whole, self.team, by_fact=self.options.loss != "bce")

    def _step(self, drawn: Drawn) -> Step:
        base, graph, part = self.model.base, self.graph(drawn), self._part(drawn)
        false = drawn.negatives.codes
        targets = targets_of(base, graph, self.evidence, part.negatives, false, ask_closed=self.options.ask_closed)
        is_asked = np.isin(graph.atoms[targets.asked].numpy(), part.asked)
        targets = replace(targets, asked=targets.asked[torch.from_numpy(is_asked)])
        known = known_states(base, graph.atoms, self.evidence)
        if self.leaves_out:
            known[torch.from_numpy(np.isin(graph.atoms.numpy(), self.left_out(drawn)))] = UNKNOWN
        own = None
        if self.source.whole is not None:
            own = owned(graph, own_ground_rules(graph), drawn.whole, self.team)
            targets = _of_own_ground_rules(targets, own)
        step = Step.of(self.model.lay_out(graph, "dense"), targets, known)
        own = None if own is None else tuple(rows.to(step.layout.device) for rows in own)
        weight = drawn.weight
        return replace(step, supervised=weight, semantic=weight, fuzzy=weight, own=own, leaves_out=self.leaves_out)

    def _beside(self) -> Codes:
        """Atoms that are not asked, whose ground rules are for the losses on rules: dealt out over an epoch.

        For a t-norm these are all; for L_sem those closed facts that may stand in ground rules of closed atoms alone.
        """
        whole, nothing = self.source.whole, np.zeros(0, np.int64)
        if whole is None:
            return nothing
        if self.options.regularisation != "off":
            return whole.atoms.numpy()
        wanted = self.options.semantic_weight > 0 and any(_may_be_closed(self.model.base, rule) for rule in whole.rules)
        return np.setdiff1d(self.evidence.atoms, self.open, assume_unique=True) if wanted else nothing


def own_ground_rules(graph: FactorGraph) -> tuple[Int64[Tensor, " _"], ...]:
    """For each rule, the ground rules with an atom that the graph answers: the others are there for these alone."""
    return tuple((part < graph.answered).any(dim=1).nonzero().flatten() for part in graph.neighbours)


def _of_own_ground_rules(targets: Targets, own: tuple[Int64[Tensor, " _"], ...]) -> Targets:
    """The targets, those of ground rules only where they are among these."""
    kept = [torch.isin(known, some) for (known, _), some in zip(targets.rules, own, strict=True)]
    rules = ((known[keep], truth[keep]) for (known, truth), keep in zip(targets.rules, kept, strict=True))
    return replace(targets, rules=tuple(rules))


def _may_be_closed(base: HerbrandBase, rule: Rule) -> bool:
    """Whether a ground rule may hold atoms of a closed world alone, and its truth be known."""
    predicates = [base.language.predicate(atom.predicate) for atom in rule.atoms]
    return rule.formula is not None and all(p.closed or p.closed_parts for p in predicates)


def leaves_one_out(model: R2N, source: GraphSource, evidence: Evidence, options: TrainingOptions) -> bool:
    """Whether what a step asks is unknown in it: as the options say, else where something would tell the answer.

    That is a network that reads evidence, or a rule with an asked predicate in its body where bodies have to be known.
    """
    if options.leave_one_out is not None or options.batch_size is None:
        return bool(options.leave_one_out)
    if model.evidence_input != "off":
        return True
    base = model.base
    asked = evidence.atoms[~closed_atoms(base, evidence.atoms)]
    both = np.concatenate([asked, counterparts(base, asked)])
    asked_of = {base.language.predicates[i].name for i in np.unique(base.decode(both[both >= 0])[0])}
    return not asked_of.isdisjoint(source.known_in_bodies)


def batches_of(
    model: R2N,
    source: GraphSource,
    evidence: Evidence,
    options: TrainingOptions,
    *,
    seed: int = 0,
    check: Check | None = None,
    progress: Progress = no_progress,
) -> Batches:
    """The steps that the options ask for: over the whole graph, over its components, or over batches of queries."""
    refuse_batches(options)
    if options.batch_size is None:
        return make_batches(model, source, evidence, options, seed=seed, check=check, progress=progress)
    if asks_rows(model, options):
        return RowBatches(model, evidence, options)
    progress("ground", 0, 0)
    batches = QueryBatches(model, source, evidence, options)
    if check is not None:
        check(batches.graph(next(batches.drawn(torch.Generator().manual_seed(seed)))))
    return batches
