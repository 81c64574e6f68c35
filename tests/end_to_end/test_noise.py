"""Where labels are pure noise every network is at chance, however it is grounded, trained and asked.

And where they are not, leave-one-out lets a network learn what it would miss if the graph told the answer.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from r2n.data.problem import Problem
from r2n.model.run import Run, prepare_run
from tests.noise_chance import chance, chance_ap, truth_of
from tests.noise_problem import noise_problem
from tests.one_way import STRATEGIES

HEADS = {"train": 15, "test": 20, "mixed": 20}
TAILS = tuple(f"t{i}" for i in range(8))
GROUNDED = ("full", "known-body", "backward(1,2)")
NETWORKS = {
    "r2n": (),
    "r2n that reads evidence too": ("model.evidence_input=add",),
    "r2n that reads evidence only": ("model.evidence_input=only",),
    "fgnn": ("model.reasoner=fgnn",),
    "none": ("model.reasoner=none",),
}
SAMPLING = {
    "all corruptions": (),
    "3 corruptions": ("training.negatives=3",),
    "batches": ("training.batch_size=4", "training.negatives=3", "training.loss=softmax"),
}
SMALL = ("model.dim=4", "training.epochs=5", "training.learning_rate=0.05")
COMBINATIONS = [
    (strategy, network) for strategy in GROUNDED for network in NETWORKS if network != "none" or strategy == "full"
]


@dataclass(frozen=True)
class Above:
    """How far a run is above chance: in ranking, and in classification."""

    mrr: float
    ap: float


def trained(problem: Problem, seed: int) -> tuple[Run, float]:
    """The run, and its last loss."""
    run = prepare_run(problem, problem.options, seed)
    return run, [epoch.supervised for epoch in run.trainer][-1]


def above_chance(run: Run) -> Above:
    """What is found, less what the same logits give where truth is drawn again and again."""
    problem, logits = run.problem, run.logits()
    base, index = problem.knowledge.base, problem.knowledge.language.predicate_index("p")
    table = logits(np.arange(base.offsets[index], base.offsets[index + 1])).reshape(-1, len(TAILS))
    mixed = problem.queries["mixed"]
    train, test, others = (truth_of(problem, part) for part in (problem.train, problem.test, mixed))
    by_head = np.lexsort((~mixed.truth, base.decode(mixed.atoms)[1][:, 0]))
    own, other = logits(mixed.atoms[by_head]).reshape(-1, 2).T
    return Above(
        run.evaluate("test").metrics["mrr"] - chance(table, test, (train, others))[0],
        run.evaluate("mixed").metrics["ap"] - chance_ap(own, other),
    )


def noise(strategy: str, network: str, sampling: str, seed: int) -> Above:
    """How far above chance a network is on labels that nothing tells, asked in a body of a rule and in a head."""
    changes = (*STRATEGIES[strategy].options, *NETWORKS[network], *SAMPLING[sampling], *SMALL)
    problem = noise_problem("spread", *changes, seed=seed, heads=HEADS, tails=TAILS)
    return above_chance(trained(problem, seed + 1000)[0])  # what the network draws is not what the problem draws


def standard_errors(values: list[float]) -> float:
    """How many standard errors the mean is from 0."""
    return float(np.mean(values) / (np.std(values, ddof=1) / np.sqrt(len(values))))


@pytest.mark.slow
@pytest.mark.parametrize(("strategy", "network"), COMBINATIONS)
def test_noise_is_at_chance(strategy: str, network: str) -> None:
    """Over 20 seeds, in ranking and in classification: a standard error is about 0.01.

    Of 78 numbers some five are beyond two standard errors by chance itself, and hardly ever one beyond four.
    """
    for sampling in SAMPLING:
        runs = [noise(strategy, network, sampling, seed) for seed in range(20)]
        found = [standard_errors([run.mrr for run in runs]), standard_errors([run.ap for run in runs])]
        assert max(map(abs, found)) < 4, (sampling, found)


@pytest.mark.parametrize("strategy", GROUNDED)
def test_noise_is_near_chance_in_batches(strategy: str) -> None:
    """Two seeds, as far as they tell: a leak would be worth several tenths."""
    found = [noise(strategy, "r2n", "batches", seed) for seed in range(2)]
    assert abs(np.mean([each.mrr for each in found])) < 0.15
    assert abs(np.mean([each.ap for each in found])) < 0.25


def test_what_the_graph_tells_of_known_facts_is_not_learned_where_they_are_left_out() -> None:
    """Every true fact of the training, and no other atom, stands in the body of a rule that means nothing."""
    heads = {"train": 60, "test": 1, "mixed": 30}
    found = {}
    for leave_one_out in ("false", "true"):
        options = (
            "grounding.strategy=known-body",
            "model.evidence_input=only",
            "training.batch_size=10",
            "training.epochs=25",
            "training.learning_rate=0.02",
            f"training.leave_one_out={leave_one_out}",
        )
        problem = noise_problem("hinted", *options, heads=heads, tails=TAILS[:6])
        run, loss = trained(problem, 0)
        found[leave_one_out] = loss, run.evaluate("mixed").metrics["ap"]
    (told, chance_or_less), (loss, good) = found["false"], found["true"]
    assert told < 0.01 < 0.1 < loss
    assert chance_or_less < 0.55
    assert good > 0.7
