"""Random search of options on the validation queries: GRID DATASET... -> one JSON line a draw, data set and seed.

The grid is a TOML file: for each option the values to draw from. Draw number t is drawn with the seed t, so every data
set gets the same draws. The best draws of a data set, the finalists, may be trained again with further seeds; best.py
then compares the finalists alone, by all their trainings. The measures are those of the validation queries alone: the
mean reciprocal rank, filtered by training and validation facts, or the average precision and the mean cross-entropy.
The test queries are never seen.
"""

import json
import tomllib
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from statistics import fmean
from time import process_time
from typing import Annotated, Any

import numpy as np
import typer
from torch import from_numpy
from torch.nn.functional import binary_cross_entropy_with_logits

import r2n
from r2n.model.run import Run, prepare_run, validation
from r2n.reproduction.reproduce import table_rows, with_rules


class Measure(StrEnum):
    """What is measured on the validation queries."""

    valid = "valid"
    cross_entropy = "cross_entropy"


def main(
    grid: Path,
    datasets: list[str],
    draws: Annotated[int, typer.Option(help="how many draws")] = 20,
    first: Annotated[int, typer.Option(help="number of the first draw")] = 0,
    seed: Annotated[int, typer.Option(help="first seed of the trainings")] = 0,
    seeds: Annotated[int, typer.Option(help="trainings of each draw")] = 1,
    finalists: Annotated[int, typer.Option(help="so many of the best draws go on to further seeds")] = 0,
    finalist_seeds: Annotated[int, typer.Option(help="further trainings of each finalist")] = 3,
    measure: Annotated[Measure, typer.Option(help="what makes a finalist")] = Measure.valid,
    fixed: Annotated[list[str] | None, typer.Option("--set", help="SECTION.KEY=VALUE in all draws")] = None,
    row: Annotated[str | None, typer.Option(help="TABLE:ROW whose rules and options are the start")] = None,
) -> None:
    """Print one JSON line a draw, data set and seed."""
    options = tomllib.loads(grid.read_text("utf-8"))
    settings = {draw: drawn(options, draw) + (fixed or []) for draw in range(first, first + draws)}
    for problem in [started(r2n.load(dataset), row) for dataset in datasets]:
        found = {draw: printed(problem, settings, draw, range(seed, seed + seeds), measure) for draw in settings}
        best = sorted(found, key=lambda draw: found[draw], reverse=measure is Measure.valid)[:finalists]
        for draw in best:
            printed(problem, settings, draw, range(seed + seeds, seed + seeds + finalist_seeds), measure)


def drawn(options: dict[str, list[Any]], draw: int) -> list[str]:
    """The options of a draw, each drawn from its values."""
    generator = np.random.default_rng(draw)
    values = {key: values[int(generator.integers(len(values)))] for key, values in sorted(options.items())}
    return [f"{key}={json.dumps(value)}" for key, value in values.items()]


def printed(problem: r2n.Problem, settings: dict[int, list[str]], draw: int, seeds: range, measure: Measure) -> float:
    """The mean of the measure over trainings with these seeds, each printed as a line."""
    values = []
    for seed in seeds:
        found = measured(problem, settings[draw], seed)
        values.append(found[measure])
        record = {"draw": draw, "dataset": problem.name, "seed": seed}
        typer.echo(json.dumps(record | found | {"options": settings[draw]}))
    return fmean(values)


def started(problem: r2n.Problem, row: str | None) -> r2n.Problem:
    """The problem with the rules and options of a table's row, trained without the validation queries."""
    if row is None:
        return problem
    table, _, name = row.partition(":")
    (chosen,) = (found for found in table_rows(table) if found.row == name)
    options = chosen.options(problem.options).changed(["training.with_valid=false"])
    return replace(with_rules(problem, chosen.rules), options=options)


def measured(problem: r2n.Problem, settings: list[str], seed: int) -> dict[str, Any]:
    """What one training with the settings shows on the validation queries."""
    start = process_time()
    run = prepare_run(problem, problem.options.changed(settings), seed)
    try:
        for _ in run.trainer:
            pass
    except r2n.R2NError as error:
        return {"valid": 0.0, "cross_entropy": float("inf"), "error": str(error)}
    return {
        "valid": validation(run.problem, run.model, run.source, run.knowledge)(run.model),
        "cross_entropy": cross_entropy(run),
        "cpu_seconds": round(process_time() - start, 1),
    }


def cross_entropy(run: Run) -> float:
    """The mean cross-entropy of the validation queries: it tells settings apart whose average precision is 1."""
    valid = run.problem.valid
    logits = from_numpy(run.logits()(valid.atoms))
    return float(binary_cross_entropy_with_logits(logits, from_numpy(valid.truth.astype(np.float64))))


if __name__ == "__main__":
    typer.run(main)
