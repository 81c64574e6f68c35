"""A trained network, asked: how good it is on a split, by one process or by several."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from r2n.evaluation.evaluate import Report
from r2n.evaluation.shares import Share
from r2n.prediction.trained import Trained
from r2n.progress import Progress, no_progress
from r2n.runs.constrained import Constrained
from r2n.runs.processes import shared


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
        return [self._report(trained, share, progress, constrained) for constrained in asked]

    def _report(self, trained: Trained, share: Share, progress: Progress, constrained: Constrained | None) -> Report:
        return trained.evaluate(
            self.split,
            progress,
            sample=self.sample,
            seed=self.seed,
            mirror=True,
            constrained=constrained,
            share=share,
        )

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
