"""The command line: r2n report, compare."""

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2n.cli.screen import (
    DeviceOption,
    JsonOption,
    RunArgument,
    ScreenTable,
    print_json,
    progress,
    screen,
    shortened,
)

if TYPE_CHECKING:  # torch takes seconds to import: these come in where they are used
    from r2n.reporting.compare import ComparedSplit, Comparison

LONGEST_NAME = 40

RunsArgument = Annotated[list[Path], typer.Argument(metavar="RUN RUN ...", help="The folders of two runs or more.")]


def report(
    run: RunArgument,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write it (default: report.html in the run).")
    ] = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Write the report of a run again, as a page."""
    from r2n.prediction.trained import Trained
    from r2n.reporting.files import check_writable
    from r2n.reporting.gather import gather
    from r2n.reporting.write import training_of, write_run_page

    if out is not None:
        check_writable(out, "--out")
    with progress(str(run)) as shown:
        trained = Trained.load(run, device=device, progress=shown)
        reports = [trained.evaluate(split, shown, mirror=True) for split in trained.problem.queries]
        shown("report", 0, 0)
        path = write_run_page(run, gather(run, trained, reports, training_of(run)), out)
    if as_json:
        print_json({"run": str(run), "report": str(path), "reports": [part.to_dict() for part in reports]})
        return
    typer.echo(f"the report is in {path}", err=True)


def compare(
    runs: RunsArgument,
    splits: Annotated[
        list[str] | None, typer.Option("--split", help="These queries alone; may be repeated (default: all).")
    ] = None,
    sample: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Rank so many of the queries, the same for all runs.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Which sample.")] = 0,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write it as a page too.")] = None,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Put runs side by side, and test whether they differ by more than chance."""
    from r2n.reporting.compare import check_runs
    from r2n.reporting.compare import compare as compare_runs
    from r2n.reporting.compare_page import compare_page
    from r2n.reporting.files import check_writable, write_file

    check_runs(runs)
    if html is not None:
        check_writable(html, "--html")
    with progress("compare") as shown:
        found = compare_runs(runs, splits=splits, sample=sample, seed=seed, device=device, progress=shown)
    if html is not None:
        write_file(html, compare_page(found), "--html")
        typer.echo(f"the comparison is in {html}", err=True)
    if as_json:
        print_json(found.to_dict())
        return
    _print_comparison(found)


def _print_comparison(found: "Comparison") -> None:
    names = [shortened(name, LONGEST_NAME) for name in found.runs]
    table = ScreenTable("what differs", *names, title="the runs")
    for key, values in found.differences:
        table.add_texts([key, *(shortened(value, LONGEST_NAME) for value in values)])
    if found.differences:
        screen().print(table)
    else:
        typer.echo("the runs differ in nothing that a result depends on", err=True)
    for split in found.splits:
        _print_split(split, names)
    if found.tests > 1:
        typer.echo(f"{found.tests} tests were made, and each p is for one of them alone", err=True)


def _print_split(split: "ComparedSplit", names: list[str]) -> None:
    table = ScreenTable("metric", title=f"{split.split}: {split.asked}")
    for name in names:
        table.add_column(name, justify="right")
    for metric, values in split.metrics:
        table.add_texts([metric, *("" if value is None else f"{value:.4f}" for value in values)])
    screen().print(table)
    tests = ScreenTable("run", "metric", title=f"{split.split}: minus {names[0]}, query by query")
    for heading in ("difference", "at 95 %", "p", "queries"):
        tests.add_column(heading, justify="right")
    for name, other in zip(names[1:], split.against, strict=True):
        for test in other.tests:
            interval = "" if isnan(test.low) else f"{test.low:+.4f} to {test.high:+.4f}"  # of one query alone: none
            tests.add_texts(
                [name, test.metric, f"{test.difference:+.4f}", interval, f"{test.p:.4f}", f"{test.queries:,}"]
            )
        if other.why_not:
            typer.echo(f"{split.split}: {name} is not tested against {names[0]}: {other.why_not}", err=True)
    if tests.rows:
        screen().print(tests)
