"""The command line: r2n train, evaluate."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from r2n.cli.report_table import notes_beside, print_report
from r2n.cli.screen import (
    DeviceOption,
    JsonOption,
    PhaseProgress,
    ProblemArgument,
    RunArgument,
    ScreenTable,
    SetOption,
    print_json,
    progress,
    screen,
)
from r2n.datasets.benchmarks import load
from r2n.knowledge.options import Options
from r2n.knowledge.problem import Problem
from r2n.runs.chosen import choose_options
from r2n.runs.memory import parse_size

if TYPE_CHECKING:  # torch takes seconds to import: these come in where they are used
    from r2n.runs.run import Run
    from r2n.training.fit import Epoch

EXAMPLES = 5

MemoryOption = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="Refuse what needs more: 8GB, or 0.5 of what is free (default: 0.8 of it)."),
]


def train(
    problem: ProblemArgument,
    out: Annotated[Path | None, typer.Option(help="The run's folder (default: runs/NAME-SEED).")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="By default 0, or that of the resumed run.")] = None,
    changes: SetOption = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the folder's checkpoint, with its options.")
    ] = False,
    checkpoint_seconds: Annotated[float, typer.Option(min=0, help="Seconds between checkpoints.")] = 2.0,
    memory: MemoryOption = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Train a network on a problem, keep it as a run, and report on its queries."""
    from r2n.runs.reports import write_reports
    from r2n.runs.run import prepare_run
    from r2n.runs.training import check_folder, settings_of, train_in

    limit = None if memory is None else parse_size(memory)
    wanted = [*(changes or ()), *([] if device is None else [f"training.device={device}"])]
    with progress(problem) as shown:
        shown("read", 0, 0)
        loaded = load(problem)
        folder = out or Path("runs") / f"{loaded.name}-{seed or 0}"
        check_folder(folder, resume=resume)
        settings = settings_of(folder, loaded.options, wanted, seed, resume=resume)
        options = _chosen(loaded, settings.options) if settings.begins else settings.options
        run = prepare_run(loaded, options, settings.seed, memory=limit, progress=shown)
        for note in (*settings.notes, *run.notes()):
            typer.echo(f"note: {note}", err=True)
        for epoch in train_in(folder, run, resume=resume, checkpoint_seconds=checkpoint_seconds, progress=shown):
            _show_epoch(shown, epoch)
        document = write_reports(folder, loaded.name, run.reports(shown), run.trainer.epoch)
    _tell_beside(*document["reports"])
    if as_json:
        print_json(document)
        return
    for report in document["reports"]:
        print_report(report, loaded.name)
    _print_examples(run)
    typer.echo(f"the run is in {folder}", err=True)


def _chosen(problem: Problem, options: Options) -> Options:
    """The options, with what nobody set chosen, and told."""
    options, choices = choose_options(problem, options)
    for choice in choices:
        typer.echo(f"chosen: {choice}", err=True)
    return options


def _tell_beside(*reports: dict[str, Any]) -> None:
    for note in (note for report in reports for note in notes_beside(report)):
        typer.echo(f"note: {note}", err=True)


def _show_epoch(shown: PhaseProgress, epoch: "Epoch") -> None:
    """An epoch's loss and, where there is one, the validation metric."""
    shown.detail(loss=f"{epoch.loss:.4f}")
    if epoch.valid is not None:
        shown.detail(valid=f"{epoch.valid:.4f}")


def _print_examples(run: "Run") -> None:
    """A few test queries with their probabilities, evenly from the most to the least probable."""
    from r2n.prediction.predictor import Predictor

    if "test" not in run.problem.queries:
        return
    queries = run.problem.test
    truth = dict(zip(run.problem.knowledge.base.names(queries.atoms), queries.truth, strict=True))
    answers = Predictor.of(run).answers(queries.atoms)
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
    memory: MemoryOption = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Report on a run's queries."""
    from r2n.prediction.trained import Trained
    from r2n.runs.constrained import RANKED_KINDS, Constrained

    limit = None if memory is None else parse_size(memory)
    with progress(str(run)) as shown:
        loaded = Trained.load(run, device=device, memory=limit, progress=shown)
        constrained = None
        if constraints or kinds:
            constrained = Constrained.of(loaded.problem.knowledge, kinds or RANKED_KINDS)
        report = loaded.evaluate(split, shown, sample=sample, seed=seed, mirror=True).to_dict()
        if constrained is not None:
            again = loaded.evaluate(split, shown, sample=sample, seed=seed, mirror=True, constrained=constrained)
            report["with_constraints"] = again.to_dict()
    _tell_beside(report)
    if as_json:
        print_json(report)
        return
    print_report(report, loaded.problem.name)
    if constrained is not None:
        print_report(report["with_constraints"], loaded.problem.name)
