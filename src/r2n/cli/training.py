"""The command line: r2n train, evaluate."""

from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

from typer import Option

from r2n.cli import screen as ui
from r2n.datasets.benchmarks import load
from r2n.model.memory import parse_size

if TYPE_CHECKING:  # torch takes seconds to import: these come in where they are used
    from r2n.evaluation.report import Report
    from r2n.model.model import Model
    from r2n.training.fit import Epoch

EXAMPLES = 5
EnsembleOption = Annotated[int | None, Option(min=1, metavar="K", help="Train K networks; their mean answers.")]
DevicesOption = Annotated[int | None, Option(min=1, metavar="N", help="N processes with a device each share batches.")]
BaselineOption = Annotated[bool, Option("--baseline/--no-baseline", help="Train the input layer without rules too.")]


def train(
    problem: ui.ProblemArgument,
    out: Annotated[Path | None, Option(parser=ui.new_path, help="The run's folder (default: runs/NAME-SEED).")] = None,
    seed: Annotated[int | None, Option(min=0, help="By default 0, or that of the resumed run.")] = None,
    ensemble: EnsembleOption = None,
    changes: ui.SetOption = None,
    resume: Annotated[bool, Option("--resume", help="Go on from the folder's checkpoint, with its options.")] = False,
    seconds: Annotated[float, Option("--checkpoint-seconds", min=0, help="Seconds between checkpoints.")] = 2.0,
    memory: ui.MemoryOption = None,
    device: Annotated[str | None, Option(help="auto, cpu, cuda or mps.")] = None,
    devices: DevicesOption = None,
    with_baseline: BaselineOption = True,
    with_report: Annotated[bool, Option("--report/--no-report", help="Write report.html at the end.")] = True,
    as_json: ui.JsonOption = False,
) -> None:
    """Train a network on a problem, keep it as a run, and report on its queries."""
    import r2n
    from r2n.model.evaluation import has_weaker_filter
    from r2n.model.training import follow_elsewhere
    from r2n.reporting.run_report import Profiler, Training, read_training
    from r2n.reporting.write import write_page, write_results
    from r2n.store.checkpoint import read_trace
    from r2n.store.folder import RunFolder, usual_folder

    limit = None if memory is None else parse_size(memory)
    wanted = [*(changes or ()), *([] if device is None else [f"training.device={device}"])]
    if follow_elsewhere(problem, out, wanted, seed, ensemble, resume=resume, devices=devices, memory=limit):
        return
    with ui.progress(problem) as shown:
        meter = Profiler(shown)
        meter("read", 0, 0)
        loaded = load(problem)
        ui.print_rejected(loaded.report.rejected, more="r2n check P --all")
        folder = out or usual_folder(loaded.name, seed or 0)
        valid = "valid (other splits not filtered)" if has_weaker_filter(loaded) else "valid"

        def show_epoch(epoch: "Epoch") -> None:
            shown.detail(loss=f"{epoch.loss:.4f}", **({} if epoch.valid is None else {valid: f"{epoch.valid:.4f}"}))

        model = r2n.train(
            problem if devices else loaded,
            options=wanted,
            seed=seed,
            ensemble=ensemble,
            out=folder,
            resume=resume,
            devices=devices,
            memory=limit,
            baseline=with_baseline,
            callback=show_epoch,
            progress=meter,
            notify=lambda kind, text: ui.note(f"{kind}: {text}"),
            checkpoint_seconds=seconds,
        )
        reports = [model.evaluate(split, meter, baselines=True) for split in model.problem.queries]
        meter.end()
    epochs = sum(len(list(read_trace(trace))) for trace in RunFolder(folder).traces)
    training, kept = Training(epochs, meter.costs, model.chosen), read_training(folder)
    if model.chosen is None:  # resumed: the reasons for its options stay, and its costs if it was over already
        costs = kept.phases if kept.phases and kept.epochs == epochs else meter.costs
        training = Training(epochs, costs, kept.chosen)
    document, failures = write_results(folder, reports, training)
    calibration = model.calibration
    for report in reports:
        ui.note(*ui.baseline_notes(report), prefix="note: ")
    ui.note(*failures, prefix="note: ")
    if calibration and calibration.why_not:
        ui.note(f"note: probabilities are {calibration}")
    if as_json:
        ui.print_json(document)
    else:
        _print_training(folder, model, reports)
    if with_report:  # the run is complete already: the page may take long, and nothing is lost with it
        with ui.progress(str(folder)) as shown:
            shown("report", 0, 0)
            failures = write_page(folder, model, reports, training)
        ui.note(*([f"note: {text}" for text in failures] or [f"its report is in {folder / 'report.html'}"]))


def _print_training(folder: Path, model: "Model", reports: "list[Report]") -> None:
    """The reports, a few test queries, and commands to go on with."""
    from r2n.model.answers import question_text

    problem, base = model.problem, model.problem.knowledge.base
    for report in reports:
        ui.print_report(report, problem.name)
    if "test" in problem.queries:  # evenly from the most to the least probable
        truth = dict(zip(base.names(problem.test.atoms), problem.test.truth, strict=True))
        answers = model.answers(problem.test.atoms)
        chosen = answers[:: max(1, len(answers) // EXAMPLES)][:EXAMPLES]
        rows = [[item.atom, f"{item.probability:.3f}", str(bool(truth[item.atom])).lower()] for item in chosen]
        ui.print_table(["prediction", "probability", "truth"], [], rows, "some test queries")
    ui.note(f"the run is in {folder}")
    run, steps = quote(str(folder)), []
    every = (problem.test, *problem.queries.values(), problem.train)
    code = next((part.atoms[part.truth][:1] for part in every if part.truth.any()), None)
    if code is not None:  # the first true query, or a fact where there is none
        steps = [f"predict {run} {quote(question_text(base, code))}", f"explain {run} {quote(base.names(code)[0])}"]
    missing = "" if find_spec("fastapi") and find_spec("uvicorn") else "  (needs pip install 'r2n[serve]')"
    ui.note(*steps, f"serve {run}{missing}", prefix="next: r2n ")


def evaluate(
    run: ui.RunArgument,
    split: Annotated[str, Option(help="Which queries.")] = "test",
    sample: ui.SampleOption = None,
    seed: ui.SampleSeedOption = 0,
    constraints: Annotated[bool, Option("--constraints", help="Rank once more, with mined constraints.")] = False,
    kinds: Annotated[ui.Texts, Option("--kind", help="Constraints of this kind alone; may be repeated.")] = None,
    jobs: ui.JobsOption = None,
    memory: ui.MemoryOption = None,
    device: ui.DeviceOption = "auto",
    as_json: ui.JsonOption = False,
) -> None:
    """Report on a run's queries."""
    from r2n.mining.constraints import KINDS
    from r2n.model.jobs import EvaluationJob, evaluate_run

    limit = None if memory is None else parse_size(memory)
    ranked = tuple(kinds or (KINDS if constraints else ()))
    asked = EvaluationJob(run, split, sample, seed, ranked, device, limit)
    with ui.progress(str(run)) as shown:
        model, found = evaluate_run(asked, jobs=jobs, progress=shown)
    ui.note(*ui.baseline_notes(found[0]), prefix="note: ")
    if as_json:
        report, *others = (part.to_dict() for part in found)
        ui.print_json({**report, "with_constraints": others[0]} if others else report)
        return
    for report in found:
        ui.print_report(report, model.problem.name)
