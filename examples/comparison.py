"""What the examples share: a problem made for a seed, measurements with several seeds, and the claim they support."""

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from shutil import copy
from statistics import mean, stdev
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import torch
from torch import nn

import r2n
from r2n.data.problem import Problem
from r2n.evaluation.ranking import EvaluationOptions, Filter, rank
from r2n.model.run import Run, prepare_run

SEEDS = range(5)
SEARCH_SEEDS = range(10, 13)  # settings are chosen on other data than the claims are measured on
MOST_SECONDS = 120.0  # of one core, for all seeds and models of an example; its test asserts it

MakeData = Callable[[Path, int], None]
"""Writes the tables of an example into a folder, for a seed."""
Measure = Callable[[int], Mapping[str, float]]
"""The test figure of every model, for a seed."""


def make_problem(example: Path, make_data: MakeData, seed: int) -> Problem:
    """The example's problem on data of its own: problem.toml and theory as they are, the tables made for the seed."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        for file in (*example.glob("*.toml"), *example.glob("*.r2n")):
            copy(file, folder)
        make_data(folder / "data", seed)
        return r2n.load(folder)


def trained(
    problem: Problem,
    seed: int,
    changes: Sequence[str] = (),
    encoders: Mapping[str, Callable[[], nn.Module]] | None = None,
) -> Run:
    """A network trained on the problem, with some options changed, and encoders made for some domains' features."""
    torch.manual_seed(seed)
    made = {domain: make() for domain, make in (encoders or {}).items()}
    run = prepare_run(problem, problem.options.changed(changes), seed, encoders=made)
    for _ in run.trainer:
        pass
    return run


def accuracy(run: Run, split: str) -> float:
    """The share of true queries whose last constant is the most probable of all in its position."""
    problem = run.problem
    report = rank(
        run.logits(),
        problem.queries[split],
        problem.knowledge.base,
        Filter.from_problem(problem),
        EvaluationOptions(positions=(1,)),
    )
    return report.metrics["hits@1"]


@dataclass(frozen=True)
class Comparison:
    """One figure a model and seed; `claims` are pairs of models of which the first is said to be better."""

    metric: str
    figures: Mapping[str, Sequence[float]]
    claims: Sequence[tuple[str, str]]

    def lift(self, better: str, other: str) -> tuple[float, float]:
        """The mean of the differences, seed by seed, and its standard error."""
        return mean_and_error([a - b for a, b in zip(self.figures[better], self.figures[other], strict=True)])

    def holds(self) -> bool:
        """Whether every lift is beyond two standard errors."""
        return all(lift > 2 * error for lift, error in (self.lift(*claim) for claim in self.claims))

    def lines(self) -> list[str]:
        """The comparison as text."""
        names = [*self.figures, *(f"{better} minus {other}" for better, other in self.claims)]
        pairs = [*map(mean_and_error, self.figures.values()), *(self.lift(*claim) for claim in self.claims)]
        width = max(map(len, names))
        rows = [
            f"  {name:{width}}  {value:6.3f} ± {error:.3f}" for name, (value, error) in zip(names, pairs, strict=True)
        ]
        verdict = "every lift is" if self.holds() else "NOT every lift is"
        return [f"{self.metric}: mean and standard error", *rows, f"  {verdict} beyond two standard errors"]


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and its standard error."""
    return mean(values), stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0


def compare(
    metric: str, measure: Measure, claims: Sequence[tuple[str, str]], seeds: Sequence[int] = SEEDS
) -> Comparison:
    """Measure every model with every seed."""
    measured = [measure(seed) for seed in seeds]
    return Comparison(metric, {name: [figures[name] for figures in measured] for name in measured[0]}, claims)


def search(validate: Callable[[int, Sequence[str]], float], grid: Mapping[str, Sequence[object]]) -> list[str]:
    """The setting with the best mean validation figure over the search seeds; every one is printed."""
    best: tuple[float, list[str]] = (float("-inf"), [])
    for values in product(*grid.values()):
        changes = [f"{key}={value}" for key, value in zip(grid, values, strict=True)]
        figure, error = mean_and_error([validate(seed, changes) for seed in SEARCH_SEEDS])
        print(f"  {figure:.4f} ± {error:.4f}  {' '.join(changes)}", flush=True)
        best = max(best, (figure, changes))
    return best[1]


def main(example: Path, make_data: MakeData, comparison: Callable[[], Comparison], tune: Callable[[], None]) -> None:
    """The command of an example: make the data of seed 0 to look at, measure and print; or look for settings.

    The exit code is 1 where the claim does not hold.
    """
    parser = ArgumentParser(prog=f"python -m examples.{example.name}")
    parser.add_argument("--search", action="store_true", help="choose settings again, on validation queries alone")
    if parser.parse_args().search:
        tune()
        return
    make_data(example / "data", 0)
    start, cpu = perf_counter(), process_time()
    found = comparison()
    print("\n".join(found.lines()))
    print(f"  {perf_counter() - start:.0f} seconds, {process_time() - cpu:.0f} of them computing")
    sys.exit(0 if found.holds() else 1)
