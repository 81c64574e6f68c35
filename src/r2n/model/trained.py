"""A trained model: networks, problem and options."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor, nn

from r2n.data.knowledge_base import KnowledgeBase
from r2n.data.problem import Problem
from r2n.errors import CheckpointError, ConfigError, R2NError, counted
from r2n.evaluation.calibrate import Calibrated
from r2n.evaluation.ranking import DEFAULT_OPTIONS, EvaluationOptions, Share, row_memory
from r2n.evaluation.report import NOT_COMPARED, Report, Score
from r2n.model.calibration import read_calibration
from r2n.model.evaluation import WITHOUT_REASONING, Constrained, baseline_scores, evaluate_split
from r2n.model.memory import as_trained, make_device, make_source
from r2n.model.processes import shared
from r2n.model.run import Ensemble, Run
from r2n.network.graph_sources import GraphSource
from r2n.network.r2n import R2N
from r2n.options import Options
from r2n.progress import Progress, no_progress
from r2n.scoring import AtomLogits
from r2n.store.checkpoint import trained_weights
from r2n.store.folder import RunConfig, RunFolder, read_config, read_problem


@dataclass(frozen=True, eq=False)
class Trained:
    """A network and the problem it was trained on; `knowledge` is the problem's in the language of the training.

    `others` are the further networks of an ensemble, made like the first. `calibration` makes probabilities of logits;
    without one, they are those that the networks were trained to give. `folder` is that of the run, if it is kept.
    """

    problem: Problem
    options: Options
    model: R2N
    knowledge: KnowledgeBase
    source: GraphSource
    memory: int | None = None
    others: tuple[R2N, ...] = ()
    calibration: Calibrated | None = None
    folder: Path | None = None

    @classmethod
    def of(cls, run: Run | Ensemble, calibration: Calibrated | None = None, folder: Path | None = None) -> "Trained":
        """What a run has trained, and kept in a folder."""
        first, *others = run.logits().models
        shared = (run.knowledge, run.source, run.memory)
        return cls(run.problem, run.options, first, *shared, tuple(others), calibration, folder)

    @classmethod
    def load(
        cls,
        folder: Path | str,
        *,
        encoders: Mapping[str, nn.Module] | None = None,
        device: str = "auto",
        memory: int | None = None,
        progress: Progress = no_progress,
    ) -> "Trained":
        """What the run in a folder has trained; needs nothing but the folder, and changes nothing outside it.

        `encoders` are modules of the caller, where there were some in training: their weights are in the folder. The
        device need not be that of the training. `memory`: the bytes that grounding and evaluation may take.
        """
        folder = Path(folder)
        progress("read", 0, 0)
        config = read_config(RunFolder(folder))
        _check_encoders(folder, config.encoders, encoders or {})
        places = [place.path for place in RunFolder(folder).networks(config.seeds)]
        weights = [trained_weights(place, config.digest) for place in places]
        calibration = read_calibration(RunFolder(folder), config.seeds)
        problem = read_problem(RunFolder(folder), config)
        knowledge = as_trained(problem.knowledge, config.options.grounding)
        given = encoders or {}
        first, *others = (
            _network(knowledge, config, given if i == 0 else deepcopy(dict(given)), part, places[i])
            for i, part in enumerate(weights)
        )
        there = make_device(device)
        source = make_source(knowledge, config.options, progress, memory=memory)
        more = tuple(model.to(there) for model in others)
        return cls(problem, config.options, first.to(there), knowledge, source, memory, more, calibration, folder)

    def __repr__(self) -> str:
        """Of which problem, and how the network is made."""
        made, layers = self.options.model, counted(len(self.model.layers), "reasoning layer")
        networks = f", ensemble of {len(self.others) + 1}" if self.others else ""
        return f"Trained('{self.problem.name}', {made.input} of dim {made.dim}, {layers}{networks})"

    @cached_property
    def logits(self) -> AtomLogits:
        """The network's logits for any atoms; of an ensemble, the means."""
        return AtomLogits(self.model, self.source, self.knowledge.evidence, others=self.others)

    @property
    def members(self) -> tuple[AtomLogits, ...]:
        """The logits of each network alone; of one at least."""
        return self.logits.members

    @cached_property
    def baselines(self) -> dict[str, Score]:
        """What the results are compared with: parts of the network, and the same input layer trained without rules."""
        found, without = baseline_scores(self.logits, self.problem), self._without_reasoning
        return found | ({WITHOUT_REASONING: without} if isinstance(without, AtomLogits) else {})

    @cached_property
    def _without_reasoning(self) -> AtomLogits | str | None:
        """The logits of the same input layer trained without rules; None where none was trained, or why it is lost."""
        if self.folder is None:
            return None
        kept = RunFolder(self.folder).without_reasoning
        try:
            if not kept.config.exists():
                return None
            return Trained.load(kept.path, device=str(self.model.device), memory=self.memory).logits
        except (R2NError, OSError) as error:  # the run itself is sound
            why = error.what if isinstance(error, R2NError) else str(error)
            again = f"delete {kept.path}, and r2n train P --out {self.folder} --resume trains it again"
            return f"with '{WITHOUT_REASONING}': {why}; {again}"

    def evaluate(
        self,
        split: str,
        progress: Progress = no_progress,
        *,
        options: EvaluationOptions = DEFAULT_OPTIONS,
        baselines: bool = False,
    ) -> Report:
        """The report on a split: ranking where all its queries are true, else classification.

        With `baselines`, the metrics of the rules alone, of the input layer alone and of the same input layer trained
        without rules are part of the report, if they are cheap. Calibration and memory are those of the model.
        """
        report = evaluate_split(
            self.logits,
            self.problem,
            split,
            progress,
            options=replace(options, calibration=self.calibration, memory=row_memory(self.memory)),
            baselines=self.baselines if baselines else None,
            training=self.options,
        )
        said = {"constraints": str(options.forbidden)} if isinstance(options.forbidden, Constrained) else {}
        if baselines and isinstance(self._without_reasoning, str):
            said[NOT_COMPARED] = self._without_reasoning
        return replace(report, protocol={**report.protocol, **said})


def _network(
    knowledge: KnowledgeBase,
    config: RunConfig,
    encoders: Mapping[str, nn.Module],
    weights: dict[str, Tensor],
    folder: Path,
) -> R2N:
    """A network with the weights of a checkpoint."""
    with torch.random.fork_rng(devices=[]):
        model = R2N.build(knowledge, config.options.model, encoders=encoders)
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        message = str(error).splitlines()[0]
        raise CheckpointError(f"the checkpoint in {folder} does not fit its network: {message}") from error
    return model.eval()


def _check_encoders(folder: Path, wanted: tuple[str, ...], given: Mapping[str, nn.Module]) -> None:
    """A run needs the modules that it was trained with, and takes no others."""
    if sorted(given) == sorted(wanted):
        return
    missing = [name for name in wanted if name not in given]
    listed = ", ".join(f"'{name}': module" for name in wanted)
    hint = f"give them again: load(folder, encoders={{{listed}}})" if wanted else "load it without encoders"
    what = f"no encoder is given for '{missing[0]}'" if missing else "encoders are given for other domains"
    raise ConfigError(
        f"the run in {folder} was trained with encoders of its own for {list(wanted) or 'no domain'}; {what}", hint=hint
    )


@dataclass(frozen=True)
class EvaluationOfRun:
    """What is asked: the queries of a split, perhaps a sample of them, and once more with constraints of some kinds."""

    folder: Path
    split: str = "test"
    sample: int | None = None
    seed: int = 0
    kinds: tuple[str, ...] = ()
    device: str = "auto"
    memory: int | None = None

    def reports(self, trained: Trained, share: Share, progress: Progress) -> list[Report]:
        """The report, and where constraints are asked for, the one with them."""
        asked: list[Constrained | None] = [None]
        if self.kinds:
            asked.append(Constrained.of(trained.problem.knowledge, self.kinds))
        every = [EvaluationOptions(sample=self.sample, seed=self.seed, forbidden=f, share=share) for f in asked]
        return [trained.evaluate(self.split, progress, options=options, baselines=True) for options in every]

    def load(self, progress: Progress = no_progress) -> Trained:
        """The run."""
        return Trained.load(self.folder, device=self.device, memory=self.memory, progress=progress)


def evaluate_run(
    asked: EvaluationOfRun, *, jobs: int | None = None, progress: Progress = no_progress
) -> tuple[Trained, Sequence[Report]]:
    """The run, and the reports on it; by `jobs` processes, each with one thread: the same numbers for any number.

    A ranking is shared; a classification, one pass over the graph, is done by each process alike.
    """
    with shared(jobs, _evaluate_share, asked) as share:
        trained = asked.load(progress)
        return trained, asked.reports(trained, share, progress)


def _evaluate_share(share: Share, asked: EvaluationOfRun) -> None:
    asked.reports(asked.load(), share, no_progress)
