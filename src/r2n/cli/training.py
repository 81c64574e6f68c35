"""The command line: r2n train, evaluate, predict."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from r2n.cli.screen import JsonOption, PhaseProgress, ProblemArgument, ScreenTable, print_json, progress, screen
from r2n.datasets.benchmarks import load
from r2n.errors import ConfigError, nearest
from r2n.reproduction.paper import PAPER_COUNTRIES
from r2n.runs.memory import parse_size

if TYPE_CHECKING:  # torch takes seconds to import: these come in where they are used
    from r2n.prediction.answers import Answer, Answers
    from r2n.prediction.predictor import Predictor
    from r2n.runs.run import Run
    from r2n.training.fit import Epoch

SHOWN_METRICS = ("ap", "roc_auc_macro", "accuracy", "brier", "ece", "mrr", "hits@1", "hits@3", "hits@10")
EXAMPLES = 5

MemoryOption = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="Refuse what needs more: 8GB, or 0.5 of what is free (default: 0.8 of it)."),
]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
SetOption = Annotated[list[str] | None, typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Change an option.")]


def train(
    problem: ProblemArgument,
    out: Annotated[Path | None, typer.Option(help="The run's folder (default: runs/NAME-SEED).")] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    changes: SetOption = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the folder's checkpoint.")] = False,
    checkpoint_seconds: Annotated[float, typer.Option(min=0, help="Seconds between checkpoints.")] = 2.0,
    memory: MemoryOption = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Train a network on a problem, keep it as a run, and report on its queries."""
    from r2n.runs.reports import write_reports
    from r2n.runs.run import prepare_run
    from r2n.runs.training import check_folder, train_in

    limit = None if memory is None else parse_size(memory)
    wanted = [*(changes or ()), *([] if device is None else [f"training.device={device}"])]
    with progress(problem) as shown:
        shown("read", 0, 0)
        loaded = load(problem)
        folder = out or Path("runs") / f"{loaded.name}-{seed}"
        check_folder(folder, resume=resume)
        run = prepare_run(loaded, loaded.options.changed(wanted), seed, memory=limit, progress=shown)
        for note in run.notes():
            typer.echo(f"note: {note}", err=True)
        for epoch in train_in(folder, run, resume=resume, checkpoint_seconds=checkpoint_seconds, progress=shown):
            _show_epoch(shown, epoch)
        document = write_reports(folder, loaded.name, run.reports(shown), run.trainer.epoch)
    if as_json:
        print_json(document)
        return
    for report in document["reports"]:
        _print_report(report, loaded.name)
    _print_examples(run)
    typer.echo(f"the run is in {folder}", err=True)


def _show_epoch(shown: PhaseProgress, epoch: "Epoch") -> None:
    """An epoch's loss and, where there is one, the validation metric."""
    shown.detail(loss=f"{epoch.loss:.4f}")
    if epoch.valid is not None:
        shown.detail(valid=f"{epoch.valid:.4f}")


def _print_report(report: dict[str, Any], name: str) -> None:
    """The metrics of one split; what nothing defines is left empty."""
    table = ScreenTable("metric", title=f"{name}, {report['split']}")
    table.add_column("value", justify="right")
    metrics = {metric: report["metrics"][metric] for metric in SHOWN_METRICS if metric in report["metrics"]}
    is_paper = report["split"] == "test" and name in PAPER_COUNTRIES and "ap" in metrics
    if is_paper:
        table.add_column("the paper's R2NS", justify="right")
    for metric, value in metrics.items():
        paper = [f"{PAPER_COUNTRIES[name]:.3f}" if metric in ("ap", "roc_auc_macro") else ""] if is_paper else []
        table.add_texts([metric, "" if value is None else f"{value:.4f}", *paper])
    screen().print(table)


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
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Report on a run's queries."""
    from r2n.prediction.trained import Trained

    with progress(str(run)) as shown:
        loaded = Trained.load(run, device=device, progress=shown)
        report = loaded.evaluate(split, shown).to_dict()
    if as_json:
        print_json(report)
    else:
        _print_report(report, loaded.problem.name)


def predict(
    run: RunArgument,
    question: Annotated[str, typer.Argument(help='An atom; ? stands for what is asked: "locatedIn(italy, ?)".')],
    more: Annotated[
        list[str] | None, typer.Option("--with", metavar="FACT|FILE", help='Known too: "near(a, b)", or a table.')
    ] = None,
    fewer: Annotated[
        list[str] | None, typer.Option("--without", metavar="FACT|FILE", help="No longer known; goes before --with.")
    ] = None,
    constants: Annotated[
        list[str] | None, typer.Option("--constant", metavar="DOMAIN=NAME", help="A new constant and its domain.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="How many answers.")] = 10,
    show_all: Annotated[bool, typer.Option("--all", help="Also atoms that no ground rule reaches.")] = False,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Ask a trained network."""
    from r2n.prediction.predictor import Predictor

    with progress(str(run)) as shown:
        predictor = Predictor.load(run, device=device, progress=shown)
        if fewer:
            predictor = predictor.without_facts(fewer)
        if more or constants:
            predictor = predictor.with_facts(more or [], domains=_by_domain(constants or []))
        answers = predictor.predict(question, everything=show_all, top=top)
    _tell_of_changes(predictor, changed=bool(more or fewer))
    if as_json:
        found = [asdict(item) for item in answers]
        counts = {"asked": answers.asked, "refused": answers.refused, "left_out": answers.left_out}
        print_json({"question": question, "answers": found, **counts})
        return
    _print_answers(answers)


def _print_answers(answers: "Answers") -> None:
    table = ScreenTable("atom", "probability", "known", "network alone")
    for item in answers:
        table.add_texts([item.atom, f"{item.probability:.4f}", _known(item), f"{item.network:.4f}"])
    screen().print(table)
    if answers.left_out:
        why = "nothing is known of them, and no ground rule reaches them: --all asks the network alone"
        typer.echo(f"{answers.left_out:,} atoms are left out: {why}", err=True)
    if answers.refused:
        why = "atoms of new constants cannot be answered: ask for one, and see why"
        typer.echo(f"{answers.refused:,} {why}", err=True)


def _known(item: "Answer") -> str:
    """What is known of an atom, and whether rules speak of it: an atom of a closed predicate that is no fact is false.

    What is known needs no rule, so that only an unknown atom says that it has none.
    """
    if item.closed and not item.known:
        return "closed"
    if item.known is not None:
        return "true" if item.known else "false"
    return "" if item.reached else "(no ground rule)"


def _by_domain(constants: list[str]) -> dict[str, list[str]]:
    """`country=atlantis` as {"country": ["atlantis"]}."""
    found: dict[str, list[str]] = {}
    for text in constants:
        domain, equals, name = text.partition("=")
        if not equals or not domain.strip() or not name.strip():
            raise ConfigError(f"'{text}' names no domain and constant", hint="write --constant DOMAIN=NAME")
        found.setdefault(domain.strip(), []).append(name.strip())
    return found


def _tell_of_changes(predictor: "Predictor", *, changed: bool) -> None:
    """What a person who changes facts should know, on standard error."""
    for name in predictor.changed.new_constants:
        near = nearest(name, predictor.changed.trained.constants)
        typer.echo(f"new constant: {name}" + (f" ({near})" if near else ""), err=True)
    if changed and predictor.model.evidence_input == "off":
        typer.echo(
            "this network does not read facts (model.evidence_input = off): they act through the grounding alone",
            err=True,
        )
