"""Random search of options on the validation queries: GRID DATASET -> one JSON line a trial.

The grid is a TOML file: for each option the values to draw from. Trial number t draws with the seed t. The measure is
the mean reciprocal rank (or the average precision) of the validation queries, filtered by training and validation facts
alone; the test queries are never looked at.
"""

import json
import tomllib
from pathlib import Path
from time import process_time
from typing import Annotated

import numpy as np
import typer

import r2n
from r2n.experiments.run import prepare_run, validation


def main(
    grid: Path,
    dataset: str,
    trials: Annotated[int, typer.Option(help="how many draws")] = 20,
    first: Annotated[int, typer.Option(help="number of the first trial")] = 0,
    seed: Annotated[int, typer.Option(help="seed of the trainings")] = 0,
) -> None:
    """Print one JSON line a trial."""
    options = tomllib.loads(grid.read_text("utf-8"))
    problem = r2n.load(dataset)
    for trial in range(first, first + trials):
        generator = np.random.default_rng(trial)
        drawn = {key: values[int(generator.integers(len(values)))] for key, values in sorted(options.items())}
        start = process_time()
        run = prepare_run(problem, problem.options.changed(f"{k}={json.dumps(v)}" for k, v in drawn.items()), seed)
        try:
            for _ in run.trainer:
                pass
            valid = validation(problem, run.graph, run.trainer.evidence)(run.model)
        except r2n.R2NError as error:
            drawn, valid = drawn | {"error": str(error)}, 0.0
        record = {"trial": trial, "valid": valid, "cpu_seconds": round(process_time() - start, 1), "options": drawn}
        typer.echo(json.dumps(record))


if __name__ == "__main__":
    typer.run(main)
