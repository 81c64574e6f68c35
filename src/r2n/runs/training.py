"""Predictions -> a run: training in a folder, so that no moment is a bad one to be stopped."""

import json
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import torch

from r2n.errors import CheckpointError, ConfigError
from r2n.knowledge.options import Options
from r2n.progress import Progress, no_progress
from r2n.runs.checkpoint import read_checkpoint, write_atomically, write_checkpoint
from r2n.runs.folder import RunConfig, RunFolder, config_of, differences, read_config, write_run
from r2n.runs.run import Run
from r2n.runs.trainer_state import restore_trainer, trainer_state
from r2n.training.fit import Epoch

SECONDS_BETWEEN_CHECKPOINTS = 2.0


def train_in(
    path: Path,
    run: Run,
    *,
    resume: bool = False,
    checkpoint_seconds: float = SECONDS_BETWEEN_CHECKPOINTS,
    progress: Progress = no_progress,
) -> Generator[Epoch, None, None]:
    """Train, keeping trace and checkpoint in the folder; `resume` goes on from what is there, or begins."""
    folder = RunFolder(path)
    config = config_of(
        run.problem,
        run.options,
        seed=run.seed,
        threads=torch.get_num_threads(),
        encoders=run.encoders,
        device=str(run.model.device),
    )
    if resume and folder.config.exists():
        _go_on(folder, run, config)
    else:
        _begin(folder, run, config)
    saved = monotonic()
    progress("train", run.trainer.epoch, run.trainer.epochs)
    with folder.trace.open("a", encoding="utf-8") as trace:
        while not run.trainer.is_done:
            epoch = run.trainer.step()
            trace.write(json.dumps(asdict(epoch)) + "\n")
            if monotonic() - saved > checkpoint_seconds or run.trainer.is_done:
                trace.flush()
                write_checkpoint(path, *trainer_state(run.trainer))
                saved = monotonic()
            progress("train", epoch.number, run.trainer.epochs)
            yield epoch
    if not run.trainer.epoch:  # no epoch was asked for
        write_checkpoint(path, *trainer_state(run.trainer))
    run.trainer.finish()


@dataclass(frozen=True)
class Settings:
    """Options and seed of a training, and what a person should know of where they come from."""

    options: Options
    seed: int
    notes: tuple[str, ...] = ()
    begins: bool = False


def settings_of(
    path: Path, given: Options, changes: Sequence[str], seed: int | None = None, *, resume: bool = False
) -> Settings:
    """Those that are given, with `section.key=value` changes; or, to be resumed, those that the run was begun with.

    What would make a resumed run another one is refused.
    """
    folder = RunFolder(path)
    if not resume or not folder.config.exists():
        return Settings(given.changed(changes), seed or 0, begins=True)
    kept = read_config(folder)
    wanted = _flat(kept.options.changed(changes), kept.seed if seed is None else seed)
    own = _flat(kept.options, kept.seed)
    for key, value in own.items():
        if wanted[key] != value:
            raise CheckpointError(
                f"the run in {path} was begun with {key} = {json.dumps(value)}, and goes on with that; now it is to be"
                f" {json.dumps(wanted[key])}",
                hint="leave it out, or give another --out",
            )
    in_file = _flat(given, kept.seed)
    others = [
        f"{key} = {json.dumps(own[key])} (the problem file: {json.dumps(in_file[key])})"
        for key in own
        if own[key] != in_file[key]
    ]
    notes = (f"resumed with the run's own options: {', '.join(others)}",) if others else ()
    return Settings(kept.options, kept.seed, notes)


def _flat(options: Options, seed: int) -> dict[str, Any]:
    """`{"model.dim": 32, ..., "seed": 0}`, as JSON has it."""
    sections = options.model_dump(mode="json")
    return {f"{name}.{key}": value for name, part in sections.items() for key, value in part.items()} | {"seed": seed}


def check_folder(path: Path, *, resume: bool) -> None:
    """Refuse a folder that holds a run, or cannot be made, before any work is done."""
    try:
        holds_run = RunFolder(path).config.exists()
        there = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
        if not there.is_dir():
            raise NotADirectoryError(0, f"{there} is a file")
    except (OSError, ValueError) as error:
        raise _cannot_be_made(path, error) from error
    if holds_run and not resume:
        raise ConfigError(f"{path} already holds a run", hint="go on with --resume, or give another --out")


def _cannot_be_made(path: Path, error: OSError | ValueError) -> ConfigError:
    why = getattr(error, "strerror", None) or error
    return ConfigError(f"the folder {str(path)!r} cannot be made: {why}", hint="give another --out")


def _begin(folder: RunFolder, run: Run, config: RunConfig) -> None:
    """Make the folder; weights that the seed does not give, those of the caller's modules, are kept from the start."""
    check_folder(folder.path, resume=False)
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_be_made(folder.path, error) from error
    for left_over in (folder.trace, *folder.path.glob("checkpoint*")):  # of a run whose configuration is gone
        left_over.unlink(missing_ok=True)
    if run.encoders:
        write_checkpoint(folder.path, *trainer_state(run.trainer))
    write_run(folder, run.problem, config)


def _go_on(folder: RunFolder, run: Run, config: RunConfig) -> None:
    """Put the trainer where the checkpoint says, and cut the trace to it; without a checkpoint begin again."""
    found = differences(read_config(folder), config)
    if found:
        raise CheckpointError(
            f"the run in {folder.path} was begun with another problem or options: {'; '.join(found)}",
            hint="resume with the same, or give another --out",
        )
    checkpoint = read_checkpoint(folder.path)
    if checkpoint is not None:
        restore_trainer(run.trainer, *checkpoint)
    lines = folder.trace.read_text("utf-8").splitlines()[: run.trainer.epoch] if folder.trace.exists() else []
    write_atomically(folder.trace, "".join(f"{line}\n" for line in lines).encode())
