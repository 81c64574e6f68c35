"""The command line: r2n report, compare, reproduce, serve."""

import os
from importlib.util import find_spec
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from r2n.cli import screen as ui
from r2n.errors import ConfigError

if TYPE_CHECKING:
    from r2n.reporting.compare import Comparison

LONGEST_NAME = 40


def report(
    run: ui.RunArgument,
    out: Annotated[Path | None, Option(metavar="FILE", help="Where to write it (default: in the run).")] = None,
    device: ui.DeviceOption = "auto",
    as_json: ui.JsonOption = False,
) -> None:
    """Write the report of a run again, as a page."""
    from r2n.model.model import Model
    from r2n.reporting.pages import run_page
    from r2n.reporting.run_report import build_report, read_training
    from r2n.reporting.write import PAGE, check_writable, write_file

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
    from r2n.reporting.pages import compare_page
    from r2n.reporting.write import check_writable, write_file

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
    from r2n.serving.requests import Limits

    access = access_to(host, token_file, public_name or [])
    limits = Limits(seconds=seconds, client_seconds=client_seconds)
    with listening(host, port) as own:
        with ui.progress(str(run)) as shown:
            shown("read", 0, 0)
            session = preload(run, limits)
        server = make_server(create_app(session, access, workers or os.cpu_count() or 1), limits)
        ui.note(f"{run} is served at {address(own)}; Ctrl-C ends it")
        server.run(sockets=[own])
