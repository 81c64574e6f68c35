"""The command line: r2n train, evaluate, report, compare, reproduce, serve."""

import os
from importlib.util import find_spec
from math import isnan
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from r2n.cli import screen as ui
from r2n.datasets.benchmarks import load
from r2n.errors import ConfigError
from r2n.model.memory import parse_size

if TYPE_CHECKING:
    from r2n.evaluation.report import Report
    from r2n.model.model import Model
    from r2n.reporting.compare import Comparison
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
    from r2n.model.run import has_weaker_filter
    from r2n.model.training import follow_elsewhere
    from r2n.reporting.pages import write_page, write_results
    from r2n.reporting.run_report import Profiler, Training, read_training
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
    code = next((part.facts[:1] for part in every if part.truth.any()), None)
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
    on: ui.OnOption = None,
    jobs: ui.JobsOption = None,
    memory: ui.MemoryOption = None,
    device: ui.DeviceOption = "auto",
    as_json: ui.JsonOption = False,
) -> None:
    """Report on a run's queries."""
    from r2n.mining.mine import KINDS
    from r2n.model.questions import EvaluationJob, evaluate_run

    limit = None if memory is None else parse_size(memory)
    ranked = tuple(kinds or (KINDS if constraints else ()))
    asked = EvaluationJob(run, split, sample, seed, ranked, device, limit, on)
    with ui.progress(str(run)) as shown:
        model, found = evaluate_run(asked, jobs=jobs, progress=shown)
    ui.note(*ui.baseline_notes(found[0]), prefix="note: ")
    if as_json:
        report, *others = (part.to_dict() for part in found)
        ui.print_json({**report, "with_constraints": others[0]} if others else report)
        return
    for report in found:
        ui.print_report(report, model.problem.name)


LONGEST_NAME = 40


def report(
    run: ui.RunArgument,
    out: Annotated[Path | None, Option(metavar="FILE", help="Where to write it (default: in the run).")] = None,
    device: ui.DeviceOption = "auto",
    as_json: ui.JsonOption = False,
) -> None:
    """Write the report of a run again, as a page."""
    from r2n.model.model import Model
    from r2n.reporting.pages import PAGE, check_writable, run_page, write_file
    from r2n.reporting.run_report import build_report, read_training

    if out is not None:
        check_writable(out, "--out")
    with ui.progress(str(run)) as shown:
        trained = Model.load(run, device=device, progress=shown)
        reports = [trained.evaluate(split, shown, baselines=True) for split in trained.problem.queries]
        shown("report", 0, 0)
        path = run / PAGE if out is None else out
        write_file(path, run_page(build_report(run, trained, reports, read_training(run))), "--out")
    if as_json:
        ui.print_json({"run": str(run), "report": str(path), "reports": [part.to_dict() for part in reports]})
    else:
        ui.note(f"the report is in {path}")


def compare(
    runs: Annotated[list[Path], Argument(metavar="RUN RUN ...", help="The folders of two runs or more.")],
    splits: Annotated[ui.Texts, Option("--split", help="These queries alone; may be repeated (default: all).")] = None,
    sample: ui.SampleOption = None,
    seed: ui.SampleSeedOption = 0,
    html: Annotated[Path | None, Option(metavar="FILE", help="Write it as a page too.")] = None,
    device: ui.DeviceOption = "auto",
    as_json: ui.JsonOption = False,
) -> None:
    """Compare runs on the same queries, and test whether they differ by more than chance."""
    from r2n.reporting.compare import check_runs
    from r2n.reporting.compare import compare as compare_runs
    from r2n.reporting.pages import check_writable, compare_page, write_file

    check_runs(runs)
    if html is not None:
        check_writable(html, "--html")
    with ui.progress("compare") as shown:
        found = compare_runs(runs, splits=splits, sample=sample, seed=seed, device=device, progress=shown)
    if html is not None:
        write_file(html, compare_page(found), "--html")
        ui.note(f"the comparison is in {html}")
    if as_json:
        ui.print_json(found.to_dict())
    else:
        _print_comparison(found)


def _print_comparison(found: "Comparison") -> None:
    names = [ui.shortened(name, LONGEST_NAME) for name in found.runs]
    rows = [[key, *(ui.shortened(value, LONGEST_NAME) for value in values)] for key, values in found.differences]
    if rows:
        ui.print_table(["what differs", *names], [], rows, "the runs")
    else:
        ui.note("the runs differ in nothing that a result depends on")
    for split in found.splits:
        rows = [[metric, *map(ui.number_text, values)] for metric, values in split.metrics]
        ui.print_table(["metric"], names, rows, f"{split.split}: {split.protocol}")
        rows = []
        for name, other in zip(names[1:], split.tested, strict=True):
            for test in other.tests:
                interval = "" if isnan(test.low) else f"{test.low:+.4f} to {test.high:+.4f}"  # of one query alone: none
                numbers = (f"{test.difference:+.4f}", interval, f"{test.p:.4f}", f"{test.queries:,}")
                rows.append([name, test.metric, *numbers])
            if other.why_not:
                ui.note(f"{split.split}: {name} is not tested against {names[0]}: {other.why_not}")
        if rows:
            title = f"{split.split}: minus {names[0]}, query by query"
            ui.print_table(["run", "metric"], ["difference", "at 95 %", "p", "queries"], rows, title)
    if found.tests > 1:
        ui.note(f"{found.tests} tests were made, and each p is for one of them alone")


def reproduce(
    table: Annotated[str, Argument(metavar="TABLE", help="countries | ablation | kgc | cora | wn18rr | fb15k237")],
    seeds: Annotated[int, Option(min=1, help="How many seeds, from 0 on.")] = 5,
    dataset: Annotated[ui.Texts, Option(help="Only this dataset (may be repeated).")] = None,
    model: Annotated[ui.Texts, Option(help="Only this row (may be repeated).")] = None,
    jobs: Annotated[int | None, Option(min=1, help="Processes at once (default: one a core).")] = None,
    as_json: ui.JsonOption = False,
) -> None:
    """Measure a table of the paper again, next to the paper's numbers."""
    from r2n.reproduction.reproduce import cells, summarise
    from r2n.reproduction.reproduce import reproduce as measure_all

    chosen = cells(table, range(seeds), datasets=dataset or (), models=model or ())
    if not chosen:
        raise ConfigError(f"table '{table}' has no such dataset or model", hint="leave --dataset and --model away")
    measured = []
    with ui.progress(table) as shown:
        shown("measure", 0, len(chosen))
        for item in measure_all(chosen, jobs=jobs or os.cpu_count() or 1):
            measured.append(item)
            shown("measure", len(measured), len(chosen))
    records = summarise(measured)
    if as_json:
        ui.print_json(records)
        return
    metrics, rows = list(dict.fromkeys(record["metric"] for record in records)), []
    by_cell: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for record in records:
        by_cell.setdefault((record["dataset"], record["model"]), {})[record["metric"]] = record
    for names, by_metric in sorted(by_cell.items(), key=lambda cell: cell[0][0]):
        values = dict.fromkeys(metrics, "")
        for metric, record in by_metric.items():  # without a mean: as published
            mean = record["mean"]
            values[metric] = f"{record['paper']:.3f}" if mean is None else f"{mean:.3f} ± {record['std']:.3f}"
        first = next(iter(by_metric.values()))
        paper, seeds = by_metric.get("mrr", first)["paper"], first["seeds"]
        last = ["" if paper is None else f"{paper:.3f}", str(seeds or "published")]
        rows.append([*names, *values.values(), *last, f"{first['cpu_seconds']:.1f}" if seeds else ""])
    right = [*metrics, "the paper", "seeds", "CPU-seconds"]
    ui.print_table(["dataset", "model"], right, rows, f"{table}: mean ± deviation over seeds")


def serve(
    run: ui.RunArgument,
    host: Annotated[str, Option(help="Where to listen; any other than a loopback needs a token.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65_535, help="0: any that is free.")] = 8000,
    token_file: Annotated[Path | None, Option(metavar="FILE", help="A file with the token that clients send.")] = None,
    public_name: Annotated[ui.Texts, Option(metavar="NAME", help="Another name of the server, as a proxy's.")] = None,
    workers: Annotated[int | None, Option(min=1, max=64, help="Processes that answer.", show_default="cores")] = None,
    seconds: Annotated[float, Option(min=0.1, help="A request that takes longer is stopped.")] = 10.0,
    client_seconds: Annotated[float, Option(min=0.1, help="The time of a client to send a request.")] = 20.0,
) -> None:
    """Serve a run: a page for people, and an API for programs."""
    if not all(map(find_spec, ("fastapi", "uvicorn"))):
        raise ConfigError("r2n serve needs more than r2n alone", hint="pip install 'r2n[serve]'")
    if not hasattr(os, "fork"):
        raise ConfigError("a run is served by forks of one process, which this system has not", hint="take Linux")
    from r2n.serving.app import access_to, address, create_app, listening, make_server, preload
    from r2n.serving.session import Limits

    access = access_to(host, token_file, public_name or [])
    limits = Limits(seconds=seconds, client_seconds=client_seconds)
    with listening(host, port) as own:
        with ui.progress(str(run)) as shown:
            shown("read", 0, 0)
            session = preload(run, limits)
        server = make_server(create_app(session, access, workers or os.cpu_count() or 1), limits)
        ui.note(f"{run} is served at {address(own)}; Ctrl-C ends it")
        server.run(sockets=[own])
