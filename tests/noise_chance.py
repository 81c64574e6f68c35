"""What chance gives on a problem of noise: the same logits, with true tails that are drawn again and again."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from r2n.data.knowledge_base import Evidence
from r2n.data.problem import Problem
from r2n.evaluation.metrics import average_precision

Logits = NDArray[np.float64]
"""Of all p(head, tail): a row for each head, a column for each tail."""
Truth = dict[int, int]
"""Heads (rows) and the tail (column) of each that is true."""
SLACK = 0.01  # equal logits may differ in the last bit, and then do not tie
DRAWS = 100


def tails_of(problem: Problem) -> int:
    """How many tails there are."""
    return problem.knowledge.base.shapes[problem.knowledge.language.predicate_index("p")][1]


def truth_of(problem: Problem, split: Evidence) -> Truth:
    """The true atoms of p in a split."""
    base, index = problem.knowledge.base, problem.knowledge.language.predicate_index("p")
    true = split.atoms[split.truth]
    codes = true[base.decode(true)[0] == index] - base.offsets[index]
    return dict(divmod(code, tails_of(problem)) for code in codes.tolist())


def mrr(logits: Logits, asked: Truth, filtered: Iterable[Truth]) -> float:
    """The mean reciprocal rank over heads and tails, ties in the middle; other true atoms are no rivals."""
    is_rival = np.ones(logits.shape, bool)
    for pairs in (asked, *filtered):
        is_rival[list(pairs), list(pairs.values())] = False
    heads, tails = np.array(list(asked.items())).T
    found = []
    for lines, rivals in ((logits[heads], is_rival[heads]), (logits[:, tails].T, is_rival[:, tails].T)):
        own = logits[heads, tails][:, None]
        better, equal = ((lines > own) & rivals).sum(1), ((lines == own) & rivals).sum(1)
        found.append(np.mean(1 / (1 + better + equal / 2)))
    return float(np.mean(found))


def chance(logits: Logits, asked: Truth, filtered: Iterable[Truth]) -> tuple[float, float]:
    """What these logits give to true tails that are drawn again and again: mean and deviation of the MRR."""
    generator = np.random.default_rng(0)
    redrawn = [
        dict(zip(asked, generator.integers(logits.shape[1], size=len(asked)).tolist(), strict=True))
        for _ in range(DRAWS)
    ]
    found = [mrr(logits, truth, filtered) for truth in redrawn]
    return float(np.mean(found)), float(np.std(found))


def chance_ap(own: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The mean AP where it is drawn again and again which of a head's two atoms, with these logits, is the true one."""
    generator = np.random.default_rng(0)
    found = []
    for _ in range(DRAWS):
        swapped = generator.random(len(own)) < 0.5
        found.append(average_precision(np.concatenate([own, other]), np.concatenate([~swapped, swapped])))
    return float(np.mean(found))
