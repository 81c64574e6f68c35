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
    each = zip(logits, truth, weights, strict=True)
    return sum(weight * log_loss((logit - shift) / temperature, is_true) for logit, is_true, weight in each)


def third_of_wrong_shares(groups: int, steps: int = 20_000) -> float:
    """The share of wrong groups below which a third of all shares lie that `groups` without a mistake leave possible.

    Their density is that of Beta(1/2, groups + 1/2); in the root of the share it has no pole, and is summed in steps.
    """
    density = [(1 - ((step + 0.5) / steps) ** 2) ** (groups - 0.5) for step in range(steps)]
    left = sum(density) / 3
    for step, each in enumerate(density):
        if each >= left:
            return ((step + left / each) / steps) ** 2
        left -= each
    raise AssertionError("a third lies below the end")
