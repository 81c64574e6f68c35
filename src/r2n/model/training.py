"""`train`: crash-safe training in a folder; it can be interrupted at any time and resumed."""

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from time import monotonic
from typing import Unpack
from weakref import finalize

import numpy as np
import torch
from torch import nn

from r2n.data.problem import Problem
from r2n.datasets.benchmarks import load
from r2n.errors import CheckpointError, ConfigError, R2NError, counted, refusing
from r2n.files import take_away
from r2n.model.calibration import calibrate, keep_calibration, read_calibration
from r2n.model.choices import alternatives, choose_options, lost_choices, with_budget
from r2n.model.model import Model
from r2n.model.preflight import cost_warnings, mining_notes, preflight_warnings
from r2n.model.processes import follows_elsewhere, together
from r2n.model.run import Run, prepare_run, valid_score
from r2n.options import OptionKeywords, Options
from r2n.progress import Progress, no_progress, say
from r2n.progress import progress as progress_bar
from r2n.store.checkpoint import (
    Trace,
    forget_others,
    locked,
    read_checkpoint,
    read_trace,
    restore_trainer,
    trainer_state,
    write_checkpoint,
)
from r2n.store.folder import (
    RunConfig,
    RunFolder,
    checked_problem,
    config_of,
    differences,
    flat_options,
    read_config,
    usual_folder,
    write_run,
)
from r2n.training.batches import SINGLE, ProcessGroup
from r2n.training.fit import Epoch

SECONDS_BETWEEN_CHECKPOINTS = 2.0
FREE_SECONDS = 10.0  # that a comparison may take, however short the training was
NO_BASELINE = "--no-baseline (baseline=False) leaves it out"
PHASE = "train without rules, to compare"


def train_in(
    path: Path,
    run: Run,
    *,
    resume: bool = False,
    checkpoint_seconds: float = SECONDS_BETWEEN_CHECKPOINTS,
    progress: Progress = no_progress,
    group: ProcessGroup = SINGLE,
    calibrated: bool = True,
) -> Generator[Epoch, None, None]:
    """Train, keeping trace and checkpoint in the folder; `resume` goes on from what is there, or begins.

    The networks of an ensemble are trained one after the other, each in a folder inside. At the end the calibration is
    fitted and kept, unless only logits are read (not `calibrated`). Of a `group`, this is the process that writes.
    """
    folder = RunFolder(path)
    seed, size, threads, device = run.seed, len(run.seeds), torch.get_num_threads(), str(run.model.device)
    made = config_of(run.problem, run.options, seed, threads, run.encoders, device, size)
    with refusing(f"the folder {str(path)!r} cannot be made", "give another --out"):
        path.mkdir(parents=True, exist_ok=True)
    with locked(path):
        config = _begin(folder, run, made, resume=resume)
        folders = folder.networks(run.seeds)
        if group.count > 1:
            progress("wait for the others", 0, 0)
        group.summed(torch.zeros(1))  # all meet
        for number, (own, member) in enumerate(zip(folders, run.members(progress), strict=True), start=1):
            member.trainer.join(group)
            phase = "train" if len(folders) == 1 else f"train {number} of {len(folders)}"
            yield from _train(own, member, config, checkpoint_seconds, partial(progress, phase))
        if calibrated:
            progress("calibrate", 0, 0)
            keep_calibration(folder, calibrate(run), run.seeds)


def lacks_comparison(path: Path, run: Run) -> bool:
    """Whether the same input layer without rules is still to be trained, for a run that has rules and queries."""
    has_rules = len(run.model.layers) and run.knowledge.theory.rules and run.problem.queries
    return bool(has_rules) and not RunFolder(path).without_reasoning.config.exists()


def train_without_reasoning(path: Path, run: Run, problem: Problem, progress: Progress = no_progress) -> str | None:
    """Train the input layer of a trained run alone, in a folder inside; returns why there is no such run, if so."""
    folder = RunFolder(path)
    if not lacks_comparison(path, run):
        return None
    unfinished, memory = folder.path / f"{folder.without_reasoning.path.name}.unfinished", run.memory
    seconds = sum(epoch["seconds"] for trace in folder.traces for epoch in read_trace(trace))
    threads, began = torch.get_num_threads(), monotonic()
    try:
        alone = prepare_run(problem, without_reasoning(run.options), run.seed, size=len(run.seeds), memory=memory)
        phase: Progress = lambda _, *steps: progress(PHASE, *steps)  # noqa: E731
        with closing(train_in(unfinished, alone, resume=True, progress=phase, calibrated=False)) as epochs:
            is_over = any(monotonic() - began > max(seconds, FREE_SECONDS) for _ in epochs)
        if is_over:
            rmtree(unfinished)
            return f"it takes longer than the training itself ({seconds:.0f} s)"
        unfinished.rename(folder.without_reasoning.path)
    except (R2NError, OSError) as error:  # the run itself is trained, and stays
        return error.what if isinstance(error, R2NError) else str(error)
    finally:
        torch.set_num_threads(threads)
    return None


def without_reasoning(options: Options) -> Options:
    """The options of the same network without any rule; all that is left reads an atom's input, so none is hidden."""
    reasoning = {"reasoner": "none", "rules": "layers", "evidence_input": "off", "input_score": False}
    model = options.model.model_copy(update=reasoning)
    losses = {"hiding": 0.0, "regularisation": "off", "semantic_weight": 0.0}
    return options.model_copy(update={"model": model, "training": options.training.model_copy(update=losses)})


def _train(
    folder: RunFolder, run: Run, config: RunConfig, checkpoint_seconds: float, progress: Callable[[int, int], None]
) -> Generator[Epoch, None, None]:
    """Train one network, from its checkpoint on if there is one; the trace is cut to it."""
    if (checkpoint := read_checkpoint(folder.path, config.digest)) is not None:
        forget_others(folder.path)
        restore_trainer(run.trainer, *checkpoint)
    opened = Trace(folder.trace) if checkpoint is None else Trace.resumed(folder.trace, checkpoint[1].get("trace"))
    with closing(opened) as trace:
        run.trainer.group.summed(torch.zeros(1))  # all meet
        saved = monotonic()
        progress(run.trainer.epochs_done, run.trainer.epochs)
        while not run.trainer.is_done:
            epoch = run.trainer.step()
            trace.add(epoch)
            if monotonic() - saved > checkpoint_seconds or run.trainer.is_done:
                _keep(folder, run, config, trace)
                saved = monotonic()
            progress(epoch.number, run.trainer.epochs)
            yield epoch
        if not run.trainer.epochs_done:  # no epoch was asked for
            _keep(folder, run, config, trace)
    run.trainer.finish()
    run.trainer.join(SINGLE)


def _keep(folder: RunFolder, run: Run, config: RunConfig, trace: Trace) -> None:
    """Write a checkpoint: all that the trainer holds, and which lines of the trace came before."""
    tensors, state = trainer_state(run.trainer)
    write_checkpoint(folder.path, tensors, {**state, "trace": trace.keep()}, config.digest)


@dataclass(frozen=True)
class TrainingSpec:
    """A training in a folder, which another process can begin too; `notes` say where options come from."""

    folder: Path
    options: Options
    seed: int = 0
    ensemble: int = 1
    memory: int | None = None
    is_new: bool = True
    notes: tuple[str, ...] = ()

    def prepared(
        self, problem: Problem, progress: Progress = no_progress, encoders: Mapping[str, nn.Module] | None = None
    ) -> Run:
        """The run, before its first step."""
        size, memory = self.ensemble, self.memory
        return prepare_run(
            problem, self.options, self.seed, size=size, encoders=encoders, memory=memory, progress=progress
        )


def training_spec(
    path: Path,
    given: Options,
    change: Callable[[Options], Options],
    seed: int | None = None,
    *,
    ensemble: int | None = None,
    resume: bool = False,
    memory: int | None = None,
) -> TrainingSpec:
    """The given options, changed; or, to be resumed, those of the run, where a change is an error."""
    folder = RunFolder(path)
    if not resume or not folder.config.exists():
        return TrainingSpec(path, change(given), seed or 0, 1 if ensemble is None else ensemble, memory)
    kept = read_config(folder)
    own_seed, own_ensemble = kept.seed if seed is None else seed, kept.ensemble if ensemble is None else ensemble
    own, wanted = _flat(kept.options, kept.seed, kept.ensemble), _flat(change(kept.options), own_seed, own_ensemble)
    for key in own:
        if wanted[key] != own[key]:
            what = f"the run in {path} was begun with {key} = {own[key]}, and goes on with that; now it is to be"
            raise CheckpointError(f"{what} {wanted[key]}", hint="leave it out, or give another --out")
    in_file = _flat(given, kept.seed, kept.ensemble)
    others = [f"{key} = {own[key]} (the problem file: {in_file[key]})" for key in own if own[key] != in_file[key]]
    notes = (f"resumed with the run's own options: {', '.join(others)}",) if others else ()
    return TrainingSpec(path, kept.options, kept.seed, kept.ensemble, memory, False, notes)


def _flat(options: Options, seed: int, ensemble: int) -> dict[str, str]:
    """`{"model.dim": "32", ..., "seed": "0", "ensemble": "1"}`, each value as JSON."""
    flat = {key: json.dumps(value) for key, value in flat_options(options).items()}
    return flat | {"seed": str(seed), "ensemble": str(ensemble)}


def check_folder(path: Path, *, resume: bool) -> None:
    """Refuse a folder that holds a run, or cannot be made, before any work is done."""
    with refusing(f"the folder {str(path)!r} cannot be made", "give another --out"):
        holds_run = RunFolder(path).config.exists()
        there = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
        if not there.is_dir():
            raise NotADirectoryError(0, f"{there} is a file")
    if holds_run and not resume:
        raise ConfigError(f"{path} already holds a run", hint="go on with --resume, or give another --out")


def _begin(folder: RunFolder, run: Run, config: RunConfig, *, resume: bool) -> RunConfig:
    """Begin a run, or check that it may be resumed; returns the configuration that it was begun with.

    What a killed process left half written is removed. A resumed run keeps its number of threads on any machine. The
    weights of the caller's modules, which no seed gives, are kept from the start.
    """
    networks = folder.networks(run.seeds)
    for path in {folder.path, *(own.path for own in networks)}:
        with refusing(f"the folder {str(path)!r} cannot be made", "give another --out"):
            path.mkdir(parents=True, exist_ok=True)
        take_away(path)
    if resume and folder.config.exists():
        kept = read_config(folder)
        torch.set_num_threads(kept.threads)
        if found := differences(kept, replace(config, threads=kept.threads)):
            what = f"the run in {folder.path} was begun with another problem or options: {'; '.join(found)}"
            raise CheckpointError(what, hint="resume with the same, or give another --out")
        checked_problem(folder, kept)
        return kept
    check_folder(folder.path, resume=False)
    for own in networks:
        for left_over in (own.trace, *own.path.glob("checkpoint*")):  # of a run whose configuration is gone
            left_over.unlink(missing_ok=True)
    folder.calibration.unlink(missing_ok=True)
    for left_over in folder.path.glob(f"{folder.without_reasoning.path.name}*"):
        rmtree(left_over)
    if run.encoders:
        for own, member in zip(networks, run.members(), strict=True):
            write_checkpoint(own.path, *trainer_state(member.trainer), config.digest)
    write_run(folder, run.problem, config)
    return config


def _follow(group: ProcessGroup, problem: str, spec: TrainingSpec) -> None:
    """Train the same run in another process of a group, from the same checkpoint; only the first process writes."""
    run = spec.prepared(load(problem))
    group.summed(torch.zeros(1))  # all meet
    for own, member in zip(RunFolder(spec.folder).networks(run.seeds), run.members(), strict=True):
        member.trainer.join(group)
        if (checkpoint := read_checkpoint(own.path)) is not None:
            restore_trainer(member.trainer, *checkpoint)
        group.summed(torch.zeros(1))  # all meet
        while not member.trainer.is_done:
            member.trainer.step()
        member.trainer.finish()


Notify = Callable[[str, str], None]
"""Called with the kind of a message ("chosen", "note" or "warning") and its text."""


class _TemporaryFolder:
    """A folder that is deleted when the last model that needs it is gone."""

    def __init__(self) -> None:
        self.path = Path(mkdtemp(prefix="r2n-"))
        finalize(self, rmtree, self.path, ignore_errors=True)


def train(
    problem: Problem | str | Path,
    *,
    options: Options | Sequence[str] | None = None,
    seed: int | None = None,
    ensemble: int | None = None,
    out: Path | str | None = None,
    resume: bool = False,
    devices: int | None = None,
    memory: int | None = None,
    encoders: Mapping[str, nn.Module] | None = None,
    baseline: bool = True,
    callback: Callable[[Epoch], object] | None = None,
    progress: Progress | None = None,
    notify: Notify = lambda kind, text: say(f"{kind}: {text}"),
    checkpoint_seconds: float = SECONDS_BETWEEN_CHECKPOINTS,
    **settings: Unpack[OptionKeywords],
) -> Model:
    """Train a model on a problem, as `r2n train` does: what nobody set is chosen from the data, with its reason.

    Options are those of the problem, or `options`, changed by keywords (`layers=2, epochs=100`) or by texts as on the
    command line (`options=["model.layers=2"]`). `ensemble` networks have the seeds from `seed` (0) on. With `out`, the
    training is kept in that folder while it runs, and `resume=True` goes on from there; otherwise it is in a temporary
    folder until `Model.save`. `devices` processes share the work (the problem is then a name or a path). `memory`: the
    bytes that work may take. `encoders` are modules for the features of domains. With `baseline`, the input layer is
    trained without rules too, to compare with. `callback` is called with each epoch.
    """
    name = problem.name if isinstance(problem, Problem) else str(problem)
    with nullcontext(progress) if progress is not None else progress_bar(name) as shown:
        shown("read", 0, 0)
        loaded = problem if isinstance(problem, Problem) else load(name)
        for kind, texts in (("note", loaded.report.notes), ("warning", loaded.report.warnings)):
            for text in texts:
                notify(kind, text)
        temporary = _TemporaryFolder() if out is None else None
        folder = Path(str(out)) if temporary is None else temporary.path / "model"
        check_folder(folder, resume=resume)
        given, texts = (options, ()) if isinstance(options, Options) else (loaded.options, options or ())

        def change(some: Options) -> Options:
            return some.changed(texts).with_values(settings)

        spec = training_spec(folder, given, change, seed, ensemble=ensemble, resume=resume, memory=memory)
        spec, chosen = _with_choices(loaded, spec, notify, shown, encoders, is_shared=devices is not None)
        if devices is not None and isinstance(problem, Problem):
            hint = "give its name or path instead of a Problem"
            raise ConfigError("each of several processes reads the problem itself", hint=hint)
        with together(devices, spec.options.training, _follow, name, spec) as group:
            run = spec.prepared(loaded, shown, encoders)
            for text in (*spec.notes, *run.notes()):
                notify("note", text)
            compares = baseline and lacks_comparison(folder, run)
            if compares:
                notify("note", f"the input layer is trained without rules too, to compare with; {NO_BASELINE}")
            seconds = checkpoint_seconds
            for epoch in train_in(folder, run, resume=resume, checkpoint_seconds=seconds, progress=shown, group=group):
                if callback is not None:
                    callback(epoch)
            _tell_stops(run, notify)
        if compares and (why := train_without_reasoning(folder, run, loaded, shown)) is not None:
            notify("note", f"the results are not compared with the input layer without rules: {why}")
    model = Model.from_run(run, read_calibration(RunFolder(folder), run.seeds), folder)
    return replace(model, chosen=chosen, temporary=temporary)


def _tell_stops(run: Run, notify: Notify) -> None:
    """Say which networks were trained for all of their minutes."""
    for member in run.trained or [run]:
        trainer = member.trainer
        if trainer.is_out_of_time and trainer.epochs_done < trainer.epochs:
            done = f"{trainer.epochs_done:,} of {counted(trainer.epochs, 'epoch')}"
            over = f"training.minutes = {trainer.options.minutes:g} are over"
            notify("note", f"the training of seed {member.seed} stopped after {done}: {over}")


def _with_choices(
    problem: Problem,
    spec: TrainingSpec,
    notify: Notify,
    progress: Progress,
    encoders: Mapping[str, nn.Module] | None,
    *,
    is_shared: bool,
) -> tuple[TrainingSpec, dict[str, str] | None]:
    """With what nobody set chosen, and the reasons by the options' keys; a run that goes on has its options.

    Of several choices, each is trained, unless processes share the training, and the best on the validation queries is
    taken.
    """
    if not spec.is_new:
        return spec, None
    found = alternatives(problem, spec.options, has_encoders=bool(encoders), along_paths=not is_shared)
    scores = []
    tried = [with_budget(each, spec.options)[0] for each in found]
    for number, options in enumerate(tried if len(found) > 1 and not is_shared else [], start=1):
        notify("note", f"trained to choose, {number} of {len(found)}: {_summary(options)}")
        run = replace(spec, options=options, ensemble=1).prepared(problem, progress, encoders)
        for epoch in run.trainer:
            progress(f"choose {number} of {len(found)}", epoch.number, run.trainer.epochs)
        scores.append(valid_score(run))
        notify("note", f"its validation score: {scores[-1]:.3f}")
    options, choices = with_budget(found[int(np.argmax(scores)) if scores else 0], spec.options)
    for choice in choices:
        notify("chosen", str(choice))
    if lost := lost_choices(problem, spec.options, choices, has_encoders=bool(encoders)):
        notify("warning", lost)
    for text in (*preflight_warnings(problem, options), *cost_warnings(problem, options)):
        notify("warning", text)
    for text in mining_notes(problem):
        notify("note", text)
    return replace(spec, options=options), {choice.key: choice.reason for choice in choices}


def _summary(options: Options) -> str:
    """What tells two choices apart, in a few words."""
    model = options.model
    rules = "rules counted" if model.rules == "counted" else f"{counted(model.layers, 'reasoning layer')}"
    return f"input layer {model.input}, {rules}, loss {options.training.loss}"


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
    """Follow in a process that torchrun began; False if this is the one that writes, or no such process."""
    if not follows_elsewhere(devices):
        return False
    loaded, change = load(problem), partial(Options.changed, assignments=changes)
    folder = out or usual_folder(loaded.name, seed or 0)
    spec = training_spec(folder, loaded.options, change, seed, ensemble=ensemble, resume=resume, memory=memory)
    if spec.is_new:
        chosen = with_budget(choose_options(loaded, spec.options, along_paths=False), spec.options)
        spec = replace(spec, options=chosen[0])
    with together(devices, spec.options.training, _follow, problem, spec) as group:
        _follow(group, problem, spec)
    return True
