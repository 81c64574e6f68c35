"""The command line: r2n train, evaluate, predict."""

import json
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as ScreenTable

from r2n.cli.screen import SILENT_SECONDS, JsonOption, ProblemArgument, print_json, screen
from r2n.datasets.benchmarks import load
from r2n.errors import ConfigError, nearest
from r2n.reproduction.paper import PAPER_COUNTRIES

if TYPE_CHECKING:  # torch takes seconds to import: these come in where they are used
    from r2n.evaluation.evaluate import Report
    from r2n.prediction.predictor import Predictor
    from r2n.runs.run import Run
    from r2n.training.fit import Epoch

SHOWN_METRICS = ("ap", "roc_auc_macro", "accuracy", "brier", "ece", "mrr", "hits@1", "hits@3", "hits@10")
EXAMPLES = 5

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
SetOption = Annotated[list[str] | None, typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Change an option.")]


def train(
    problem: ProblemArgument,
    out: Annotated[Path | None, typer.Option(help="The run's folder (default: runs/NAME-SEED).")] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    changes: SetOption = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the folder's checkpoint.")] = False,
    checkpoint_seconds: Annotated[float, typer.Option(min=0, help="Seconds between checkpoints.")] = 2.0,
    as_json: JsonOption = False,
) -> None:
    """Train a network on a problem, keep it as a run, and report on its queries."""
    from r2n.runs.run import REPORT, prepare_run, train_in, write_atomically

    loaded = load(problem)
    run = prepare_run(loaded, loaded.options.changed(changes or ()), seed)
    folder = out or Path("runs") / f"{loaded.name}-{seed}"
    with _Bar(loaded.name, run.trainer.epochs) as bar:
        for epoch in train_in(folder, run, resume=resume, checkpoint_seconds=checkpoint_seconds):
            bar.tell(epoch)
    reports = [run.evaluate(split) for split in run.problem.queries]
    document = {"run": str(folder), "epochs": run.trainer.epoch, "reports": [report.to_dict() for report in reports]}
    write_atomically(folder / REPORT, json.dumps(document, indent=1).encode())
    _draw(folder, run)
    if as_json:
        print_json(document)
        return
    for report in reports:
        _print_report(report, loaded.name)
    _print_examples(run)
    typer.echo(f"the run is in {folder}", err=True)


class _Bar:
    """Progress of a training on standard error: loss, validation metric, time left."""

    def __init__(self, title: str, epochs: int) -> None:
        console = Console(stderr=True)
        text = TextColumn("loss {task.fields[loss]:.4f}{task.fields[valid]}")
        columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), text, TimeRemainingColumn())
        self.bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self.task = self.bar.add_task(title, total=epochs, visible=False, loss=0.0, valid="")
        self.start = monotonic()

    def __enter__(self) -> "_Bar":
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def tell(self, epoch: "Epoch") -> None:
        fields: dict[str, Any] = {"loss": epoch.loss}
        if epoch.valid is not None:
            fields["valid"] = f", valid {epoch.valid:.4f}"
        is_late = monotonic() - self.start > SILENT_SECONDS
        self.bar.update(self.task, completed=epoch.number, visible=is_late, **fields)


def _print_report(report: "Report", name: str) -> None:
    table = ScreenTable("metric", title=f"{name}, {report.split}", title_justify="left")
    table.add_column("value", justify="right")
    is_paper = report.split == "test" and name in PAPER_COUNTRIES and "ap" in report.metrics
    if is_paper:
        table.add_column("the paper's R2NS", justify="right")
    for metric in SHOWN_METRICS:
        if metric in report.metrics:
            paper = [f"{PAPER_COUNTRIES[name]:.3f}" if metric in ("ap", "roc_auc_macro") else ""] if is_paper else []
            table.add_row(metric, f"{report.metrics[metric]:.4f}", *paper)
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
    table = ScreenTable("prediction", "probability", "truth", title="some test queries", title_justify="left")
    for item in chosen:
        table.add_row(item.atom, f"{item.probability:.3f}", "true" if truth[item.atom] else "false")
    screen().print(table)


def _draw(folder: Path, run: "Run") -> None:
    """The training curves and the calibration, beside the trace."""
    from r2n.evaluation.plots import Curve, plot_reliability, plot_training
    from r2n.runs.run import TRACE

    records = [json.loads(line) for line in (folder / TRACE).read_text("utf-8").splitlines()]
    epochs = tuple(record["number"] for record in records)
    names = ["loss", "supervised", "semantic"]
    names += ["regularisation"] * any(record["regularisation"] for record in records)
    curves = [Curve(name, epochs, tuple(r[name] for r in records)) for name in names]
    validated = [record for record in records if record["valid"] is not None]
    if validated:
        numbers, values = zip(*((record["number"], record["valid"]) for record in validated), strict=True)
        curves.append(Curve("valid", numbers, values, panel="validation"))
    plot_training(curves, folder / "training.png")
    for split in run.problem.queries:
        calibration = run.evaluate(split).calibration
        if calibration is not None:
            plot_reliability(calibration, folder / f"reliability-{split}.png", title=f"{run.problem.name}, {split}")


def evaluate(
    run: RunArgument,
    split: Annotated[str, typer.Option(help="Which queries.")] = "test",
    as_json: JsonOption = False,
) -> None:
    """Report on a run's queries."""
    from r2n.runs.run import load_run

    loaded = load_run(run)
    report = loaded.evaluate(split)
    if as_json:
        print_json(report.to_dict())
    else:
        _print_report(report, loaded.problem.name)


def predict(
    run: RunArgument,
    question: Annotated[str, typer.Argument(help='An atom; ? stands for what is asked: "locatedIn(italy, ?)".')],
    more: Annotated[
        list[str] | None, typer.Option("--with", metavar="FACT|FILE", help='Told too: "near(a, b)", or a table.')
    ] = None,
    fewer: Annotated[
        list[str] | None, typer.Option("--without", metavar="FACT|FILE", help="No longer told; goes before --with.")
    ] = None,
    constants: Annotated[
        list[str] | None, typer.Option("--constant", metavar="DOMAIN=NAME", help="A new constant and its domain.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="How many answers.")] = 10,
    show_all: Annotated[bool, typer.Option("--all", help="Also atoms that no ground rule reaches.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Ask a trained network."""
    from r2n.prediction.answers import parse_question
    from r2n.prediction.predictor import Predictor

    predictor = Predictor.load(run)
    if fewer:
        predictor = predictor.without_facts(fewer)
    if more or constants:
        predictor = predictor.with_facts(more or [], domains=_by_domain(constants or []))
    _tell_of_changes(predictor, changed=bool(more or fewer))
    asked = len(parse_question(predictor.base, question))
    answers = predictor.predict(question)
    shown = [item for item in answers if item.reached or show_all or asked == 1]
    left_out, refused = len(answers) - len(shown), asked - len(answers)
    if as_json:
        found = [asdict(item) for item in shown[:top]]
        print_json({"question": question, "answers": found, "left_out": left_out, "refused": refused})
        return
    table = ScreenTable("atom", "probability", "known")
    for item in shown[:top]:
        known = {None: "", True: "true", False: "false"}[item.known]
        table.add_row(item.atom, f"{item.probability:.4f}", known if item.reached else f"{known} (no ground rule)")
    screen().print(table)
    if left_out:
        typer.echo(f"{left_out:,} atoms that no ground rule reaches are left out: --all shows them", err=True)
    if refused:
        typer.echo(f"{refused:,} atoms of new constants cannot be answered: ask for one to be told why", err=True)


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
    for name in predictor.told.new_constants:
        near = nearest(name, predictor.told.trained.constants)
        typer.echo(f"new constant: {name}" + (f" ({near})" if near else ""), err=True)
    if changed and predictor.model.evidence_input == "off":
        typer.echo(
            "this network does not read facts (model.evidence_input = off): they act through the grounding alone",
            err=True,
        )
