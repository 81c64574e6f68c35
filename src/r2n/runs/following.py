"""Predictions -> a run: what a process of a training needs to follow the one that writes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from r2n.datasets.benchmarks import load
from r2n.knowledge.options import Options
from r2n.knowledge.problem import Problem
from r2n.progress import Progress, no_progress
from r2n.runs.chosen import choose_options
from r2n.runs.devices import follows_elsewhere, together
from r2n.runs.ensemble import Ensemble, prepare_ensemble
from r2n.runs.folder import usual_folder
from r2n.runs.run import Run
from r2n.runs.training import follow, settings_of
from r2n.training.team import Team


@dataclass(frozen=True)
class FollowedRun:
    """A training in a folder, told so that another process can make the same."""

    problem: str
    folder: Path
    options: Options
    seed: int
    ensemble: int = 1
    memory: int | None = None

    def prepared(self, loaded: Problem, progress: Progress = no_progress) -> Run | Ensemble:
        """The run, before its first step."""
        return prepare_ensemble(
            loaded, self.options, self.seed, size=self.ensemble, memory=self.memory, progress=progress
        )


def follow_run(team: Team, followed: FollowedRun) -> None:
    """Make the same run, and train it with the team."""
    follow(followed.folder, followed.prepared(load(followed.problem)), team)


def follow_elsewhere(
    problem: str,
    out: Path | None,
    changes: Sequence[str],
    seed: int | None,
    ensemble: int | None,
    *,
    resume: bool,
    devices: int | None,
    memory: int | None,
) -> bool:
    """Follow in a process that torchrun or SLURM began, with the options that the one that writes finds too.

    False, and nothing is done, where this is the one that writes, or no such process.
    """
    if not follows_elsewhere(devices):
        return False
    loaded = load(problem)
    folder = out or usual_folder(loaded.name, seed or 0)
    settings = settings_of(folder, loaded.options, changes, seed, ensemble=ensemble, resume=resume)
    options = choose_options(loaded, settings.options)[0] if settings.begins else settings.options
    followed = FollowedRun(problem, folder, options, settings.seed, settings.ensemble, memory)
    with together(devices, options.training, follow_run, followed) as team:
        follow_run(team, followed)
    return True
