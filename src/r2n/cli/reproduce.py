"""The command line: r2n reproduce."""

import os
from typing import Annotated, Any

import typer

from r2n.cli.screen import JsonOption, ScreenTable, print_json, progress, screen
from r2n.errors import ConfigError

WIDEST = 1000


def reproduce(
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="countries | ablation | kgc | cora | wn18rr | fb15k237")
    ],
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, from 0 on.")] = 5,
    dataset: Annotated[list[str] | None, typer.Option(help="Only this dataset (may be repeated).")] = None,
    model: Annotated[list[str] | None, typer.Option(help="Only this row (may be repeated).")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes at once (default: one a core).")] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure a table of the paper again, ours beside theirs."""
    from r2n.reproduction.reproduce import cells, summarise
    from r2n.reproduction.reproduce import reproduce as measure_all

    chosen = cells(table, range(seeds), datasets=dataset or (), models=model or ())
    if not chosen:
        raise ConfigError(f"table '{table}' has no such dataset or model", hint="leave --dataset and --model away")
    measured = []
    with progress(table) as shown:
        shown("measure", 0, len(chosen))
        for item in measure_all(chosen, jobs=jobs or os.cpu_count() or 1):
            measured.append(item)
            shown("measure", len(measured), len(chosen))
    records = summarise(measured)
    if as_json:
        print_json(records)
    else:
        _print_table(table, records)


def _print_table(table: str, records: list[dict[str, Any]]) -> None:
    """A line for each model and dataset, a column for each metric."""
    metrics = list(dict.fromkeys(record["metric"] for record in records))
    shown = ScreenTable("dataset", "model", title=f"{table}: mean ± deviation over seeds")
    for name in (*metrics, "the paper", "seeds", "CPU-seconds"):
        shown.add_column(name, justify="right", no_wrap=True)
    cells: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for record in records:
        cells.setdefault((record["dataset"], record["model"]), {})[record["metric"]] = record
    for (dataset, model), by_metric in sorted(cells.items(), key=lambda cell: cell[0][0]):
        any_record = next(iter(by_metric.values()))
        values = [_shown(by_metric[m]) if m in by_metric else "" for m in metrics]
        headline = by_metric.get("mrr", any_record)
        paper = "" if headline["paper"] is None else f"{headline['paper']:.3f}"
        seconds = f"{any_record['cpu_seconds']:.1f}" if any_record["seeds"] else ""
        shown.add_texts([dataset, model, *values, paper, str(any_record["seeds"] or "published"), seconds])
    console = screen()
    wanted = console.measure(shown, options=console.options.update(width=WIDEST)).maximum
    console.width = max(wanted, console.width)  # a line that the terminal wraps beats one that is cut
    console.print(shown)


def _shown(record: dict[str, Any]) -> str:
    """Mean and deviation, or what was published."""
    if record["mean"] is None:
        return f"{record['paper']:.3f}"
    return f"{record['mean']:.3f} ± {record['std']:.3f}"
