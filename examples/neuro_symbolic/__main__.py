"""Neuro-symbolic: digits with known sums. The classifier and the rule together, against the classifier alone."""

from collections.abc import Sequence
from pathlib import Path

from examples.comparison import SEARCH_SEEDS, SEEDS, Comparison, accuracy, compare, main, make_problem, search, trained
from examples.neuro_symbolic.make_data import make_data

EXAMPLE = Path(__file__).parent
ALONE = ["model.layers=0", "training.hiding=0"]  # the input layer's own score: a softmax classifier
CLASSIFIER = [*ALONE, "training.epochs=120", "training.learning_rate=0.01", "model.encoder_dropout=0"]
GRIDS = {
    "classifier": {
        "training.epochs": [60, 120],
        "training.learning_rate": [0.003, 0.01],
        "model.encoder_dropout": [0, 0.3],
    },
    "R2N": {"model.residual": ["false", "true"], "model.encoder_dropout": [0, 0.3]},
}


def measure(seed: int) -> dict[str, float]:
    """The test accuracy of each model."""
    problem = make_problem(EXAMPLE, make_data, seed)
    return {
        "classifier alone": accuracy(trained(problem, seed, CLASSIFIER), "test"),
        "classifier and rule": accuracy(trained(problem, seed), "test"),
    }


def comparison(seeds: Sequence[int] = SEEDS) -> Comparison:
    """The rule lifts the classifier at few labels."""
    return compare("accuracy on test images", measure, [("classifier and rule", "classifier alone")], seeds)


def tune() -> None:
    """A grid for each."""
    problems = {seed: make_problem(EXAMPLE, make_data, seed) for seed in SEARCH_SEEDS}
    for name, grid in GRIDS.items():
        fixed = ALONE if name == "classifier" else []

        def validate(seed: int, changes: Sequence[str], fixed: Sequence[str] = fixed) -> float:
            return accuracy(trained(problems[seed], seed, [*fixed, *changes]), "valid")

        print(f"{name}: best {search(validate, grid)}")


if __name__ == "__main__":
    main(EXAMPLE, make_data, comparison, tune)
