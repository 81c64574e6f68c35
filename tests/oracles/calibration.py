"""Calibration by plain loops, atom by atom."""

from collections.abc import Sequence
from math import exp, log1p


def sigmoid(logit: float) -> float:
    return 1 / (1 + exp(-logit)) if logit > 0 else exp(logit) / (1 + exp(logit))


def log_loss(logit: float, truth: bool) -> float:
    """Minus the log of the probability of what is so."""
    margin = logit if truth else -logit
    return log1p(exp(-margin)) if margin > 0 else -margin + log1p(exp(margin))


def gain(
    logits: Sequence[float],
    truth: Sequence[bool],
    groups: Sequence[int],
    before: Sequence[tuple[float, float]],
    after: Sequence[tuple[float, float]],
) -> float:
    """How much lower the Brier score is by the latter temperatures and shifts of atoms, in standard errors."""
    of_group: dict[int, float] = {}
    for logit, is_true, group, *both in zip(logits, truth, groups, before, after, strict=True):
        one, other = ((sigmoid((logit - shift) / temperature) - is_true) ** 2 for temperature, shift in both)
        of_group[group] = of_group.get(group, 0.0) + one - other
    squares = sum(each**2 for each in of_group.values())
    return sum(of_group.values()) / squares**0.5 if squares else 0.0


def total_loss(
    logits: Sequence[float], truth: Sequence[bool], weights: Sequence[float], temperature: float, shift: float
) -> float:
    """The log-loss of all atoms."""
    each = zip(logits, truth, weights, strict=True)
    return sum(weight * log_loss((logit - shift) / temperature, is_true) for logit, is_true, weight in each)
