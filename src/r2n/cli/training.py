"""The command line: r2n train, evaluate."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from r2n.cli.screen import (
    DeviceOption,
    JobsOption,
    JsonOption,
    MemoryOption,
    PhaseProgress,
    ProblemArgument,
    RunArgument,
    ScreenTable,
    SetOption,
    new_path,
    notes_beside,
    print_json,
    print_rejected,
    print_report,
    progress,
    screen,
)
from r2n.data.problem import Problem
from r2n.datasets.benchmarks import load
from r2n.model.choices import choose_options
from r2n.model.memory import parse_size
from r2n.model.preflight import cost_warnings, preflight_warnings
from r2n.options import Options
from r2n.visible import visible

if TYPE_CHECKING:  # torch takes seconds to import: these come in where they are used
    from r2n.evaluation.report import Report
    from r2n.model.run import Ensemble, Run
    from r2n.model.trained import Trained
    from r2n.model.training import Settings
    from r2n.reporting.profiling import Profiler
    from r2n.reporting.run_report import Training
    from r2n.reporting.write import Written
    from r2n.training.fit import Epoch

EXAMPLES = 5

RunFolderOption = Annotated[
    Path | None, typer.Option(parser=new_path, help="The run's folder (default: runs/NAME-SEED).")
]
SeedOption = Annotated[int | None, typer.Option(min=0, help="By default 0, or that of the resumed run.")]
EnsembleOption = Annotated[
    int | None,
    typer.Option(min=1, metavar="K", help="Train K networks, with the seeds from --seed on; their mean answers."),
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Go on from the folder's checkpoint, with its options.")]
SecondsOption = Annotated[float, typer.Option("--checkpoint-seconds", min=0, help="Seconds between checkpoints.")]
DevicesOption = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Train by N processes, each with a device, that share every batch."),
]


def train(
    problem: ProblemArgument,
    out: RunFolderOption = None,
    seed: SeedOption = None,
    ensemble: EnsembleOption = None,
    changes: SetOption = None,
    resume: ResumeOption = False,
    seconds: SecondsOption = 2.0,
    memory: MemoryOption = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps.")] = None,
    devices: DevicesOption = None,
    with_baseline: Annotated[
        bool, typer.Option("--baseline/--no-baseline", help="Train the input layer without rules too, to compare.")
    ] = True,
    with_report: Annotated[bool, typer.Option("--report/--no-report", help="Write report.html at the end.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Train a network on a problem, keep it as a run, and report on its queries."""
    from r2n.model.processes import together
    from r2n.model.training import (
        FollowedRun,
        check_folder,
        follow_elsewhere,
        follow_run,
        lacks_comparison,
        settings_of,
        train_in,
    )
    from r2n.reporting.profiling import Profiler
    from r2n.reporting.write import write_results
    from r2n.store.folder import usual_folder

    limit, wanted = None if memory is None else parse_size(memory), list(changes or ())
    wanted += [] if device is None else [f"training.device={device}"]
    if follow_elsewhere(problem, out, wanted, seed, ensemble, resume=resume, devices=devices, memory=limit):
        return
    with progress(problem) as shown:
        meter = Profiler(shown)
        meter("read", 0, 0)
        loaded = load(problem)
        folder = out or usual_folder(loaded.name, seed or 0)
        print_rejected(loaded.report.rejected, more="r2n check P --all")
        _tell_notes(*loaded.report.notes)
        for text in loaded.report.warnings:
            typer.echo(f"warning: {text}", err=True)
        check_folder(folder, resume=resume)
        settings = settings_of(folder, loaded.options, wanted, seed, ensemble=ensemble, resume=resume)
        options, reasons = _chosen(loaded, settings)
        followed = FollowedRun(problem, folder, options, settings.seed, settings.ensemble, limit)
        with together(devices, options.training, follow_run, followed) as team:
            run = followed.prepared(loaded, meter)
            _tell_notes(*settings.notes, *run.notes())
            if with_baseline and lacks_comparison(folder, run):
                _tell_notes(
                    "the input layer is trained without rules too, to compare with; --no-baseline leaves it out"
                )
            for epoch in train_in(folder, run, resume=resume, checkpoint_seconds=seconds, progress=meter, team=team):
                _show_epoch(shown, epoch, loaded)
        if with_baseline:
            _train_baseline(folder, run, loaded, meter)
        trained, reports, training = _evaluated(folder, run, meter, reasons)
    written = write_results(folder, reports, training)
    _tell_training(folder, trained, written, as_json=as_json)
    if with_report:
        _write_report(folder, trained, reports, training, written)


def _train_baseline(folder: Path, run: "Run | Ensemble", problem: Problem, meter: "Profiler") -> None:
    """Train the same input layer without rules, which results are compared with; what is missing is said."""
    from r2n.model.training import train_without_reasoning

    why = train_without_reasoning(folder, run, problem, meter)
    if why is not None:
        _tell_notes(f"the results are not compared with the input layer without rules: {why}")


def _evaluated(
    folder: Path, run: "Run | Ensemble", meter: "Profiler", reasons: dict[str, str] | None
) -> "tuple[Trained, list[Report], Training]":
    """What was trained, how good it is, and what the training took.

    A resumed run keeps the reasons for its options, and what it took where it was over already.
    """
    from r2n.model.calibration import read_calibration
    from r2n.model.trained import Trained
    from r2n.reporting.run_report import Training
    from r2n.reporting.write import read_training
    from r2n.store.folder import RunFolder

    calibration = read_calibration(RunFolder(folder), run.seeds)
    trained = Trained.of(run, calibration, folder)
    reports = [trained.evaluate(split, meter, mirror=True) for split in trained.problem.queries]
    meter.end()
    epochs, training = run.epochs, Training(run.epochs, meter.costs, reasons)
    if reasons is None:
        kept = read_training(folder)
        costs = kept.phases if kept.phases and kept.epochs == epochs else meter.costs
        training = Training(epochs, costs, kept.chosen)
    return trained, reports, training


def _tell_training(folder: Path, trained: "Trained", written: "Written", *, as_json: bool) -> None:
    document, name = written.document, trained.problem.name
    calibration = trained.calibration
    _tell_beside(*document["reports"])
    _tell_notes(*written.failures, *[f"probabilities are {calibration}"] * bool(calibration and calibration.why_not))
    if as_json:
        print_json(document)
        return
    _print_reports(document["reports"], name)
    _print_examples(trained)
    typer.echo(f"the run is in {folder}", err=True)
    for step in _next_steps(folder, trained.problem):
        typer.echo(f"next: {visible(step)}", err=True)


def _next_steps(folder: Path, problem: Problem) -> Iterator[str]:
    """Commands that go on from here, with the first true query of the run, or a fact where there is none."""
    from r2n.model.answers import question_text

    run, base = quote(str(folder)), problem.knowledge.base
    every = (problem.test, *problem.queries.values(), problem.train)
    code = next((part.atoms[part.truth][:1] for part in every if part.truth.any()), None)
    if code is not None:
        yield f"r2n predict {run} {quote(question_text(base, code))}"
        yield f"r2n explain {run} {quote(base.names(code)[0])}"
    missing = "" if find_spec("fastapi") and find_spec("uvicorn") else "  (needs pip install 'r2n[serve]')"
    yield f"r2n serve {run}{missing}"


def _write_report(
    folder: Path, trained: "Trained", reports: "list[Report]", training: "Training", written: "Written"
) -> None:
    """Make the page of a run that is over already: it may take long, and nothing is lost with it."""
    from r2n.reporting.write import write_page

    told = len(written.failures)
    with progress(str(folder)) as shown:
        shown("report", 0, 0)
        write_page(folder, trained, reports, training, written)
    _tell_notes(*written.failures[told:])
    if not written.failures[told:]:
        typer.echo(f"its report is in {folder / 'report.html'}", err=True)


def _chosen(problem: Problem, settings: "Settings") -> tuple[Options, dict[str, str] | None]:
    """The options, with what nobody set chosen; and the reasons, by the options' keys. Prints choices and warnings.

    A run that goes on has its options, and no new reasons.
    """
    if not settings.begins:
        return settings.options, None
    options, choices = choose_options(problem, settings.options)
    for choice in choices:
        typer.echo(f"chosen: {choice}", err=True)
    for text in (*preflight_warnings(problem, options), *cost_warnings(problem, options)):
        typer.echo(f"warning: {text}", err=True)
    return options, {choice.key: choice.reason for choice in choices}


def _tell_notes(*notes: str) -> None:
    for note in notes:
        typer.echo(f"note: {note}", err=True)


def _tell_beside(*reports: dict[str, Any]) -> None:
    _tell_notes(*(note for report in reports for note in notes_beside(report)))


def _show_epoch(shown: PhaseProgress, epoch: "Epoch", problem: Problem) -> None:
    """An epoch's loss and, where there is one, the validation metric, which the report may filter by more facts."""
    from r2n.model.evaluation import is_filtered_less

    shown.detail(loss=f"{epoch.loss:.4f}")
    if epoch.valid is not None:
        name = "valid (other splits not filtered)" if is_filtered_less(problem) else "valid"
        shown.detail(**{name: f"{epoch.valid:.4f}"})


def _print_reports(reports: list[dict[str, Any]], name: str) -> None:
    for report in reports:
        print_report(report, name)


def _print_examples(trained: "Trained") -> None:
    """A few test queries with their probabilities, evenly from the most to the least probable."""
    from r2n.model.predictor import Predictor

    problem = trained.problem
    if "test" not in problem.queries:
        return
    queries = problem.test
    truth = dict(zip(problem.knowledge.base.names(queries.atoms), queries.truth, strict=True))
    answers = Predictor.of(trained).answers(queries.atoms)
    chosen = answers[:: max(1, len(answers) // EXAMPLES)][:EXAMPLES]
    table = ScreenTable("prediction", "probability", "truth", title="some test queries")
    for item in chosen:
        table.add_texts([item.atom, f"{item.probability:.3f}", "true" if truth[item.atom] else "false"])
    screen().print(table)


def evaluate(
    run: RunArgument,
    split: Annotated[str, typer.Option(help="Which queries.")] = "test",
    sample: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Rank so many of the queries, drawn at random.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Which sample.")] = 0,
    constraints: Annotated[
        bool, typer.Option("--constraints", help="Rank once more, with constraints mined from the training facts.")
    ] = False,
    kinds: Annotated[
        list[str] | None, typer.Option("--kind", help="Constraints of this kind alone; may be repeated.")
    ] = None,
    jobs: JobsOption = None,
    memory: MemoryOption = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Report on a run's queries."""
    from r2n.model.evaluation import RANKED_KINDS
    from r2n.model.trained import EvaluationOfRun, evaluate_run

    limit = None if memory is None else parse_size(memory)
    ranked = tuple(kinds or (RANKED_KINDS if constraints else ()))
    asked = EvaluationOfRun(run, split, sample, seed, ranked, device, limit)
    with progress(str(run)) as shown:
        loaded, found = evaluate_run(asked, jobs=jobs, progress=shown)
    reports = [report.to_dict() for report in found]
    report = reports[0] if len(reports) == 1 else {**reports[0], "with_constraints": reports[1]}
    _tell_beside(report)
    if as_json:
        print_json(report)
        return
    _print_reports(reports, loaded.problem.name)
