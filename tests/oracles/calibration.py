"""Calibration by plain loops: each temperature of a list is tried, atom by atom."""

from collections.abc import Sequence
from math import exp, log1p, prod


def sigmoid(logit: float) -> float:
    return 1 / (1 + exp(-logit)) if logit > 0 else exp(logit) / (1 + exp(logit))


def log_loss(logit: float, truth: bool) -> float:
    """Minus the log of the probability of what is so."""
    margin = logit if truth else -logit
    return log1p(exp(-margin)) if margin > 0 else -margin + log1p(exp(margin))


def scores_by_group(
    logits: Sequence[float], truth: Sequence[bool], groups: Sequence[int], temperature: float
) -> dict[int, float]:
    """The sum of the Brier scores of each group."""
    found: dict[int, float] = {}
    for logit, is_true, group in zip(logits, truth, groups, strict=True):
        found[group] = found.get(group, 0.0) + (sigmoid(logit / temperature) - is_true) ** 2
    return found


def least_change(
    logits: Sequence[float],
    truth: Sequence[bool],
    groups: Sequence[int],
    temperatures: Sequence[float],
    standard_errors: float,
) -> float:
    """The first temperature whose score is not above the best by so many standard errors of the difference."""
    scores = [scores_by_group(logits, truth, groups, temperature) for temperature in temperatures]
    best = min(scores, key=lambda found: sum(found.values()))
    for temperature, found in zip(temperatures, scores, strict=True):
        worse = [found[group] - best[group] for group in best]
        if sum(worse) <= standard_errors * sum(difference**2 for difference in worse) ** 0.5:
            return temperature
    raise AssertionError("the best is not worse than itself")


def most_careful(logits: Sequence[float], truth: Sequence[bool], temperatures: Sequence[float], chance: float) -> float:
    """The last temperature at which the answers that are right are all right with such a chance, or 1."""
    right = [logit if is_true else -logit for logit, is_true in zip(logits, truth, strict=True)]
    found = 1.0
    for temperature in temperatures:
        if prod(sigmoid(margin / temperature) for margin in right if margin > 0) >= chance:
            found = temperature
    return found


def total_loss(
    logits: Sequence[float], truth: Sequence[bool], weights: Sequence[float], temperature: float, shift: float
) -> float:
    """The log-loss of all atoms."""
    each = zip(logits, truth, weights, strict=True)
    return sum(weight * log_loss((logit - shift) / temperature, is_true) for logit, is_true, weight in each)
