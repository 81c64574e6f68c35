"""Logical reasoning with rules that contradict each other: R2N against the rules alone, and against no rules."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import mean

from examples.comparison import SEARCH_SEEDS, SEEDS, Comparison, compare, main, make_problem, search, trained
from examples.logical_reasoning.make_data import make_data
from r2n.data.problem import Problem
from r2n.evaluation.metrics import average_precision
from r2n.model.infer import believe

EXAMPLE = Path(__file__).parent
RULES_ALONE = {"prior": 0.5, "weight": 0.5, "iterations": 2}
BARE = ["model.layers=0", "model.evidence_input=off", "training.hiding=0", "training.ask_closed=true"]
NO_RULES = [*BARE, "model.dim=16", "training.epochs=1200", "training.n3=0.1"]  # ComplEx over all predicates
INFERENCE_GRID = {"prior": [0.02, 0.1, 0.2, 0.5], "weight": [0.1, 0.5, 1.0, 2.0, 4.0], "iterations": [1, 2, 3, 10]}
GRIDS = {
    "no rules": {"model.dim": [16, 32], "training.epochs": [300, 600, 1200], "training.n3": [0.05, 0.1, 0.2, 0.3]},
    "R2N": {"model.layers": [2, 3], "model.aggregation": ["mean", "max"], "training.hiding": [0.3, 0.6]},
}


def inferred(problem: Problem, split: str, *, prior: float, weight: float, iterations: int) -> float:
    """The average precision of belief propagation on the rules, all of one weight."""
    knowledge, queries = problem.knowledge, problem.queries[split]
    rules = tuple(replace(rule, weight=weight) for rule in knowledge.theory.rules)
    weighted = replace(problem, knowledge=replace(knowledge, theory=replace(knowledge.theory, rules=rules)))
    found = believe(
        weighted,
        problem.options,
        queries.atoms,
        method="sum-product",
        iterations=iterations,
        damping=0.5,
        prior=prior,
    )
    return average_precision(found.probability, queries.truth)


def measure(seed: int) -> dict[str, float]:
    """The average precision of the test queries, of each model."""
    problem = make_problem(EXAMPLE, make_data, seed)
    return {
        "no rules": trained(problem, seed, NO_RULES).evaluate("test").metrics["ap"],
        "rules alone": inferred(problem, "test", **RULES_ALONE),
        "R2N": trained(problem, seed).evaluate("test").metrics["ap"],
    }


def comparison(seeds: Sequence[int] = SEEDS) -> Comparison:
    """R2N, which learns how far to trust each rule, is better than the rules alone, and than facts alone."""
    claims = [("R2N", "rules alone"), ("R2N", "no rules")]
    return compare("average precision of test queries", measure, claims, seeds)


def tune() -> None:
    """A grid for each."""
    problems = [make_problem(EXAMPLE, make_data, seed) for seed in SEARCH_SEEDS]
    for values in product(*INFERENCE_GRID.values()):
        options = dict(zip(INFERENCE_GRID, values, strict=True))
        print(f"  {mean(inferred(problem, 'valid', **options) for problem in problems):.4f}  {options}", flush=True)
    for name, grid in GRIDS.items():

        def validate(seed: int, changes: Sequence[str], name: str = name) -> float:
            problem = make_problem(EXAMPLE, make_data, seed)
            fixed = BARE if name == "no rules" else []
            return trained(problem, seed, [*fixed, *changes]).evaluate("valid").metrics["ap"]

        print(f"{name}: best {search(validate, grid)}")


if __name__ == "__main__":
    main(EXAMPLE, make_data, comparison, tune)
