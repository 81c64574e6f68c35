"""Link prediction without rules and features: ComplEx against DistMult and against counting."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from examples.comparison import SEEDS, Comparison, compare, main, make_problem, search, trained
from examples.link_prediction.make_data import make_data
from r2n.data.herbrand import Codes
from r2n.data.problem import Problem
from r2n.evaluation.ranking import Filter, rank
from r2n.evaluation.report import Score

EXAMPLE = Path(__file__).parent
DISTMULT = ["model.input=distmult", "model.dim=8", "training.learning_rate=0.01", "training.n3=1.0"]
GRID = {
    "model.dim": [8, 16],
    "training.learning_rate": [0.01, 0.03],
    "training.n3": [0.01, 0.1, 0.3, 1.0],
}


@dataclass(frozen=True)
class Counts:
    """A firm is the likelier at a position, the more links of the relation it has there."""

    problem: Problem

    def at_position(self, position: int) -> Score:
        """The scores of atoms as answers to what stands at this position."""
        base = self.problem.knowledge.base
        counts = np.zeros((len(base.language.predicates), len(base.language.constants)))
        relations, firms = base.decode(self.problem.train.atoms)
        np.add.at(counts, (relations, firms[:, position]), 1)

        def score(codes: Codes) -> np.ndarray:
            relation, firms = base.decode(codes)
            return counts[relation, firms[:, position]]

        return score

    def __call__(self, codes: Codes) -> np.ndarray:
        """The scores of atoms as such: of what stands at their last position."""
        return self.at_position(1)(codes)


def measure(seed: int) -> dict[str, float]:
    """The test MRR of each model."""
    problem = make_problem(EXAMPLE, make_data, seed)
    base = problem.knowledge.base
    return {
        "counting links": rank(Counts(problem), problem.test, base, Filter.from_problem(problem)).metrics["mrr"],
        "DistMult": trained(problem, seed, DISTMULT).evaluate("test").metrics["mrr"],
        "ComplEx": trained(problem, seed).evaluate("test").metrics["mrr"],
    }


def comparison(seeds: Sequence[int] = SEEDS) -> Comparison:
    """ComplEx, which distinguishes the supplier from its customer, is better than scores that do not."""
    claims = [("ComplEx", "DistMult"), ("ComplEx", "counting links")]
    return compare("filtered MRR of test links", measure, claims, seeds)


def tune() -> None:
    """The same grid for both."""
    for name in ("complex", "distmult"):

        def validate(seed: int, changes: Sequence[str], name: str = name) -> float:
            problem = make_problem(EXAMPLE, make_data, seed)
            return trained(problem, seed, [f"model.input={name}", *changes]).evaluate("valid").metrics["mrr"]

        print(f"{name}: best {search(validate, GRID)}")


if __name__ == "__main__":
    main(EXAMPLE, make_data, comparison, tune)
