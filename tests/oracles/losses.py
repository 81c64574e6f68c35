"""Losses by hand loops over Python numbers, each as its definition says it."""

from math import exp, log

from r2n.logic.formula import Formula
from tests.oracles.formula import atoms, holds


def probability(logit: float) -> float:
    return 1 / (1 + exp(-logit))


def cross_entropy(logits: list[float], truth: list[bool]) -> float:
    """The mean of -log p for what is true and -log(1 - p) for what is false; nothing costs nothing."""
    if not logits:
        return 0.0
    total = 0.0
    for logit, is_true in zip(logits, truth, strict=True):
        p = probability(logit)
        total -= log(p) if is_true else log(1 - p)
    return total / len(logits)


def negative_softmax(true: list[float], corrupted: list[list[float | None]]) -> float:
    """The mean of -log(e^t / (e^t + sum of e^c)) over facts and their corruptions (None: no corruption)."""
    if not true:
        return 0.0
    total = 0.0
    for fact, row in zip(true, corrupted, strict=True):
        full = exp(fact) + sum(exp(other) for other in row if other is not None)
        total -= log(exp(fact) / full)
    return total / len(true)


def n3(vectors: list[list[float]]) -> float:
    """The mean over vectors of the sum of |component|^3."""
    return sum(abs(x) ** 3 for vector in vectors for x in vector) / len(vectors)


def labelled_rules(
    formula: Formula | None, rows: list[tuple[int, ...]], labels: list[int]
) -> tuple[list[int], list[bool]]:
    """R_j^E, the ground rules whose atoms all have a label, with the truth of the rule on the labels; (eq. 7)."""
    found: list[int] = []
    truths: list[bool] = []
    for g, row in enumerate(rows):
        if formula is None or any(labels[a] < 0 for a in row):
            continue
        truth = {atom: labels[a] == 1 for atom, a in zip(atoms(formula), row, strict=True)}
        found.append(g)
        truths.append(holds(formula, truth))
    return found, truths
