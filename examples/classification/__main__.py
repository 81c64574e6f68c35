"""Classification without rules: images through a CNN that is passed in, against the built-in MLP and a linear model."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from examples.classification.make_data import SIDE, make_data
from examples.comparison import SEARCH_SEEDS, SEEDS, Comparison, accuracy, compare, main, make_problem, search, trained
from examples.digits import small_cnn
from r2n.data.problem import Problem

EXAMPLE = Path(__file__).parent
CNN = {"image": partial(small_cnn, SIDE)}
MLP_OPTIONS = ["training.epochs=80", "model.encoder_dropout=0.3"]
INVERSE_PENALTY = 1.0
MLP_GRID = {"training.epochs": [40, 80], "model.encoder_dropout": [0.3, 0.6]}


def logistic_regression(problem: Problem, split: str, inverse_penalty: float) -> float:
    """The accuracy of scikit-learn's linear model on the same images."""
    images, digits = _arrays(problem, "train")
    model = LogisticRegression(C=inverse_penalty, max_iter=1000).fit(images, digits)
    return float(model.score(*_arrays(problem, split)))


def _arrays(problem: Problem, split: str) -> tuple[np.ndarray, np.ndarray]:
    """The images of a split and the constants that are their digits."""
    facts = problem.train if split == "train" else problem.queries[split]
    _, constants = problem.knowledge.base.decode(facts.atoms)
    features = problem.knowledge.features["image"]
    assert features.vectors is not None
    return features.vectors[np.searchsorted(features.constants, constants[:, 0])], constants[:, 1]


def measure(seed: int) -> dict[str, float]:
    """The test accuracy of each model."""
    problem = make_problem(EXAMPLE, make_data, seed)
    return {
        "logistic regression": logistic_regression(problem, "test", INVERSE_PENALTY),
        "MLP": accuracy(trained(problem, seed, MLP_OPTIONS), "test"),
        "CNN": accuracy(trained(problem, seed, (), CNN), "test"),
    }


def comparison(seeds: Sequence[int] = SEEDS) -> Comparison:
    """An encoder that knows what an image is sees more than those that read grey values alone."""
    claims = [("CNN", "MLP"), ("CNN", "logistic regression")]
    return compare("accuracy on test images", measure, claims, seeds)


def tune() -> None:
    """Settings of the two baselines; the CNN has those of the problem file."""
    problems = {seed: make_problem(EXAMPLE, make_data, seed) for seed in SEARCH_SEEDS}
    for inverse_penalty in (0.1, 0.3, 1.0, 3.0, 10.0):
        found = [logistic_regression(problem, "valid", inverse_penalty) for problem in problems.values()]
        print(f"  {np.mean(found):.4f}  C={inverse_penalty}")

    def validate(seed: int, changes: Sequence[str]) -> float:
        return accuracy(trained(problems[seed], seed, changes), "valid")

    print(f"MLP: best {search(validate, MLP_GRID)}")


if __name__ == "__main__":
    main(EXAMPLE, make_data, comparison, tune)
