"""Predictions -> a run: several networks of one problem that differ by their seed, asked together.

The problem is read and grounded once. Each network is that of its seed alone, bit for bit: it is built when its turn to
be trained has come, for the seed is one of the whole process.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial

from torch import nn

from r2n.errors import ConfigError
from r2n.evaluation.calibrate import Calibrated
from r2n.evaluation.evaluate import Report
from r2n.graph.sources import GraphSource
from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.knowledge.options import Options
from r2n.knowledge.problem import Problem
from r2n.model.atom_logits import AtomLogits
from r2n.model.r2n import R2N
from r2n.progress import Progress, no_progress
from r2n.runs.evaluate import evaluate_split
from r2n.runs.memory import check_memory
from r2n.runs.run import Run, check_seed, prepare_run

MOST_NETWORKS = 100


@dataclass(frozen=True, eq=False)
class Ensemble:
    """The run of the first seed, the number of networks, and those that are trained so far.

    `given` are modules of the caller for features, as they were before the training.
    """

    first: Run
    size: int
    given: Mapping[str, nn.Module] = field(default_factory=dict)
    trained: list[Run] = field(default_factory=list)

    def __repr__(self) -> str:
        """Of which problem, and how far it is."""
        return f"Ensemble('{self.problem.name}', {len(self.trained)} of {self.size} networks, seeds from {self.seed})"

    @property
    def problem(self) -> Problem:
        """The problem of all networks."""
        return self.first.problem

    @property
    def options(self) -> Options:
        """The options of all networks."""
        return self.first.options

    @property
    def seed(self) -> int:
        """The first seed; the next network has the next one."""
        return self.first.seed

    @property
    def seeds(self) -> range:
        """One for each network."""
        return range(self.seed, self.seed + self.size)

    @property
    def knowledge(self) -> KnowledgeBase:
        """What is known, in the language of the training."""
        return self.first.knowledge

    @property
    def source(self) -> GraphSource:
        """Where the graphs of all networks come from."""
        return self.first.source

    @property
    def encoders(self) -> tuple[str, ...]:
        """The domains whose features go through modules of the caller."""
        return self.first.encoders

    @property
    def memory(self) -> int | None:
        """The bytes that work may take."""
        return self.first.memory

    @property
    def epochs(self) -> int:
        """Those that were trained, of all networks."""
        return sum(run.epochs for run in self.trained)

    @property
    def model(self) -> R2N:
        """The first network."""
        return self.first.model

    def members(self, progress: Progress = no_progress) -> Iterator[Run]:
        """The runs to train, one after the other; each is built when it is asked for, and trained before the next."""
        self.trained.clear()
        for seed in self.seeds:
            is_first = seed == self.seed
            made = self.first if is_first else self.first.again(seed, deepcopy(dict(self.given)), progress)
            yield made
            self.trained.append(made)

    def notes(self) -> list[str]:
        """What a person should know before this training."""
        return self.first.notes()

    def logits(self) -> AtomLogits:
        """The means of the logits of the networks that are trained."""
        if len(self.trained) < self.size:
            raise ConfigError(
                f"{len(self.trained)} of {self.size} networks are trained", hint="train them all: train_in(folder, run)"
            )
        first, *others = (run.model for run in self.trained)
        return AtomLogits(first, self.source, self.knowledge.evidence, others=tuple(others))

    def evaluate(
        self, split: str, progress: Progress = no_progress, *, calibration: Calibrated | None = None
    ) -> Report:
        """The report on a split: ranking where all its queries are true, else classification."""
        report = partial(evaluate_split, self.logits(), self.problem, split, progress, options=self.options)
        return report(calibration=calibration, memory=self.memory)


def check_size(size: int) -> None:
    """Refuse a number of networks that nobody can want."""
    if not 1 <= size <= MOST_NETWORKS:
        hint = f"take 1 to {MOST_NETWORKS}; of more than 10, each adds little"
        raise ConfigError(f"an ensemble of {size:,} networks cannot be trained", hint=hint)


def prepare_ensemble(
    problem: Problem,
    options: Options | None = None,
    seed: int = 0,
    *,
    size: int,
    encoders: Mapping[str, nn.Module] | None = None,
    memory: int | None = None,
    progress: Progress = no_progress,
) -> Run | Ensemble:
    """Build what `size` networks share, and the first of them; one alone is a run as `prepare_run` makes it."""
    check_size(size)
    check_seed(seed + size - 1)
    given = deepcopy(dict(encoders or {})) if size > 1 else {}
    first = prepare_run(problem, options, seed, encoders=encoders, memory=memory, progress=progress)
    if size == 1:
        return first
    weights = sum(part.numel() * part.element_size() for part in first.model.state_dict().values())
    check_memory(4 * size * weights, memory, what=f"{size:,} networks", ways_out=["train fewer: --ensemble"])
    return Ensemble(first, size, given)
