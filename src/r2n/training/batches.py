"""Predictions -> a trained network: the steps of an epoch, each with its graph, laid out, and its targets."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from r2n.data.herbrand import Codes, closed_atoms
from r2n.data.knowledge_base import Evidence
from r2n.data.validation import refuse_torn_rows
from r2n.network.collate import Layout
from r2n.network.factor_graph import Batch, FactorGraph, component_batches, known_states
from r2n.network.graph_sources import GraphSource
from r2n.network.r2n import R2N
from r2n.options import TrainingOptions
from r2n.progress import Progress, no_progress
from r2n.training.negatives import Negatives, draw_negatives
from r2n.training.targets import Targets, rule_targets, targets_of


@dataclass(frozen=True, eq=False)
class Step:
    """What one step of the optimiser sees: a graph, laid out, its targets, and what is known of its atoms.

    `supervised`, `semantic` and `fuzzy` weigh the losses, which are means over the targets of the step, so that their
    mean over all steps of an epoch is the mean over the targets of the whole graph. `own` are the ground rules of each
    rule that a t-norm counts (None: all). `leaves_out` says that nothing is known of what the step asks. `penalty`
    weighs what does not depend on the step.
    """

    layout: Layout
    graph: FactorGraph
    targets: Targets
    known: Int64[Tensor, " atoms"]
    supervised: float = 1.0
    semantic: float = 1.0
    fuzzy: float = 1.0
    own: tuple[Int64[Tensor, " _"], ...] | None = None
    leaves_out: bool = False
    penalty: float = 1.0

    @classmethod
    def of(cls, layout: Layout, targets: Targets, known: Int64[Tensor, " atoms"]) -> "Step":
        """All on the device of the layout."""
        device = layout.device
        return cls(layout, layout.graph.to(device), targets.to(device), known.to(device))


@runtime_checkable
class OwnStep(Protocol):
    """A step that knows its losses itself, for it needs no graph."""

    def losses(self, model: R2N, options: TrainingOptions) -> Any:
        """The loss and its parts."""
        ...


AnyStep = Step | OwnStep


@runtime_checkable
class Batches(Protocol):
    """The steps of each epoch."""

    @property
    def ground_rules(self) -> int:
        """How large the work is: the ground rules of what is laid out at once."""
        ...

    def asked(self, generator: torch.Generator) -> tuple[Codes, Codes]:
        """The atoms that an epoch asks as true, and as false; sorted, distinct."""
        ...

    def epoch(self, generator: torch.Generator) -> Iterator[AnyStep]:
        """The steps of one epoch, in order; all that is random in them comes from the generator."""
        ...


@dataclass(frozen=True, eq=False)
class FixedBatches:
    """The same steps in every epoch, in an order that is drawn anew: one over the whole graph, or one for each part."""

    steps: tuple[Step, ...]

    @property
    def ground_rules(self) -> int:
        """Those of all steps, which are kept."""
        return sum(len(step.graph) for step in self.steps)

    def asked(self, generator: torch.Generator) -> tuple[Codes, Codes]:
        """The same in every epoch."""
        parts = [(step.layout.graph.atoms, step.targets.asked.cpu(), step.targets.labels.cpu()) for step in self.steps]
        true, false = (
            torch.cat([atoms[asked[labels[asked] == truth]] for atoms, asked, labels in parts]) for truth in (1, 0)
        )
        return true.unique().numpy(), false.unique().numpy()

    def epoch(self, generator: torch.Generator) -> Iterator[Step]:
        """Each step once."""
        order = torch.randperm(len(self.steps), generator=generator).tolist() if len(self.steps) > 1 else [0]
        return (self.steps[i] for i in order)


def training_atoms(
    model: R2N, source: GraphSource, evidence: Evidence, negatives: Negatives, options: TrainingOptions
) -> Codes:
    """The atoms that the losses speak of: the evidence and its negatives, or the whole Herbrand base.

    Where ground rules are everybody's, closed facts are among them for L_sem, and all that stands in a ground rule for
    a t-norm; where an atom has its own, only what is asked: what is there beside it is not for others to hear.
    """
    if options.loss == "full-softmax":
        return np.arange(model.base.size)
    known, whole = evidence.atoms, source.whole
    if whole is None and not options.ask_closed:
        known = known[~closed_atoms(model.base, known)]
    atoms = np.union1d(np.union1d(known, negatives.facts), negatives.codes)
    return atoms if whole is None or options.regularisation == "off" else np.union1d(atoms, whole.atoms.numpy())


def draws(options: TrainingOptions) -> bool:
    """Whether a seed tells which atoms are asked: negatives are drawn, not listed."""
    return options.negatives is not None and options.loss != "full-softmax"


Check = Callable[[FactorGraph], None]
"""Refuses a graph that is too large, before it is laid out."""


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
    """Draw the negatives, get the graph around all that is asked, and lay it out; whole, or in its components."""
    refuse_torn_rows(options)
    negatives = Negatives.none()
    if options.loss != "full-softmax":
        negatives = draw_negatives(model.base, evidence, options, np.random.default_rng(seed))
    atoms = training_atoms(model, source, evidence, negatives, options)
    if source.whole is None:
        progress("ground", 0, 0)
    graph = source.around(atoms)
    progress("lay out", 0, 0)
    targets = targets_of(model.base, graph, evidence, negatives, ask_closed=options.ask_closed)
    known = known_states(model.base, graph.atoms, evidence)
    parts = [(graph, targets, known)]
    if options.batches is not None:
        wanted = _wanted(graph, targets, whole_rules=options.regularisation != "off")
        batches = component_batches(graph, wanted, options.batches)
        parts = [(part.graph, _targets_of_part(targets, part), known[part.kept]) for part in batches] or parts
    if check is not None:
        check(max((part for part, _, _ in parts), key=lambda part: len(part.atoms)))
    return FixedBatches(_weighed([Step.of(model.lay_out(part), asked, states) for part, asked, states in parts]))


def _wanted(graph: FactorGraph, targets: Targets, *, whole_rules: bool) -> Tensor:
    """What a target touches: no loss can feel the rest; unless (`whole_rules`) one asks every ground rule."""
    wanted = torch.full((len(graph.atoms),), whole_rules)
    wanted[targets.asked] = True
    for rows, (known, _) in zip(graph.neighbours, targets.rules, strict=True):
        wanted[rows[known].flatten()] = True
    return wanted


def _weighed(steps: list[Step]) -> tuple[Step, ...]:
    """Steps weighed by their shares of all targets."""
    counts = [(len(step.targets.asked), _ruled(step.targets), _explicit(step.graph)) for step in steps]
    totals = [max(1, sum(column)) for column in zip(*counts, strict=True)]
    if len(steps) == 1:
        return tuple(steps)
    weights = [[count * len(steps) / total for count, total in zip(row, totals, strict=True)] for row in counts]
    pairs = zip(steps, weights, strict=True)
    return tuple(replace(step, supervised=w[0], semantic=w[1], fuzzy=w[2]) for step, w in pairs)


def _ruled(targets: Targets) -> int:
    return sum(len(known) for known, _ in targets.rules)


def _explicit(graph: FactorGraph) -> int:
    """The number of ground rules of explicit rules."""
    pairs = zip(graph.rules, graph.neighbours, strict=True)
    return sum(len(rows) for rule, rows in pairs if rule.formula is not None)


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
