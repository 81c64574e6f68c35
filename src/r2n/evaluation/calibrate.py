"""Predictions -> numbers: logits -> probabilities that can be believed, by a temperature and a shift fitted to labels.

    probability = sigmoid((logit - shift) / temperature)

The order of atoms stays as it is. Where a logit of 0 already means that an atom is as likely as not, there is no shift
and the temperature is 1 or more: nothing turns round, and nothing is surer than before (`fit_temperature`). Where
logits are only compared with each other, as a softmax does, both are fitted (`fit_odds`).
"""

from dataclasses import dataclass
from math import exp, isfinite, log
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int64
from scipy.optimize import minimize
from scipy.special import expit

from r2n.errors import DataError

FEWEST_LABELS = 10  # of true and of false atoms each: fewer tell nothing
TEMPERATURES = np.exp(np.linspace(0.0, 7.0, 281))  # 1 to 1,097, each 2.5 % above the one before
STANDARD_ERRORS = 2.0
ALL_RIGHT = 0.9
PRIOR = 0.01  # the precision of the belief, in labels, that neither temperature nor shift is needed
MOST_CHANGE = 7.0  # of the log of the temperature
MOST_SHIFT = 50.0  # in units of the temperature

Logits = Float64[np.ndarray, " atoms"]
Truths = Bool[np.ndarray, " atoms"]


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A temperature, a shift, and, in words, what they were fitted on."""

    temperature: float
    shift: float
    fitted_on: str

    def __post_init__(self) -> None:
        """Check that the order of logits is kept."""
        if not (isfinite(self.temperature) and isfinite(self.shift) and self.temperature > 0):
            raise DataError(f"a temperature of {self.temperature} and a shift of {self.shift} give no probability")

    def __call__(self, logits: Logits) -> Logits:
        """The probabilities of atoms by their logits."""
        return expit((logits - self.shift) / self.temperature)

    def __str__(self) -> str:
        """`temperature 2.13, fitted on 120 validation queries`, with the shift where there is one."""
        shift = f", shift {self.shift:.3g}" if self.shift else ""
        return f"temperature {self.temperature:.3g}{shift}, fitted on {self.fitted_on}"


def fit_temperature(
    logits: Logits, truth: Truths, groups: Int64[np.ndarray, " atoms"], *, fitted_on: str
) -> Calibrated | None:
    """The temperature of labelled atoms, the higher of two; None where labels are too few.

    One is the least change that the labels ask for: the lowest temperature whose Brier score is within two standard
    errors of the best. Atoms of a group may be wrong together, so that the errors are those of sums over groups. The
    other is for labels that ask for nothing, since the network was right: the highest at which it would have had a
    chance of nine in ten to be right wherever it was.
    """
    if _are_few(truth):
        return None
    margins = np.where(truth, logits, -logits)
    temperature = max(_least_change(margins, groups), _most_careful(margins[margins > 0]))
    return Calibrated(temperature, 0.0, fitted_on)


def _least_change(margins: Logits, groups: Int64[np.ndarray, " atoms"]) -> float:
    """The lowest temperature that is not worse than the best by two standard errors; margins are logits for the truth.

    (1 - sigmoid(margin))^2 is the Brier score of an atom.
    """
    group = np.unique(groups, return_inverse=True)[1]
    scores = np.stack([np.bincount(group, expit(-margins / temperature) ** 2) for temperature in TEMPERATURES])
    best = int(scores.sum(axis=1).argmin())
    worse = scores[: best + 1] - scores[best]
    is_within = worse.sum(axis=1) <= STANDARD_ERRORS * np.sqrt((worse**2).sum(axis=1))
    return float(TEMPERATURES[int(is_within.argmax())])


def _most_careful(margins: Logits) -> float:
    """The highest temperature at which all of these answers are right with a chance of nine in ten."""
    losses = np.array([np.logaddexp(0.0, -margins / temperature).sum() for temperature in TEMPERATURES])
    allowed = np.flatnonzero(losses <= -log(ALL_RIGHT))
    return float(TEMPERATURES[allowed[-1]]) if len(allowed) else 1.0


def fit_odds(logits: Logits, truth: Truths, *, fitted_on: str, weights: Logits | None = None) -> Calibrated | None:
    """The temperature and shift of least log-loss; None where labels are too few.

    `weights` say for how many atoms each stands. Labels that a threshold tells apart would have the temperature fall
    without end: a weak belief in no change keeps it finite.
    """
    if _are_few(truth):
        return None
    signs, counts = np.where(truth, -1.0, 1.0), np.ones(len(logits)) if weights is None else weights

    def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
        slope = exp(-at[0])
        wrong = signs * (slope * logits - at[1])
        pull = counts * signs * expit(wrong)
        slopes = np.array([-slope * (pull @ logits), -pull.sum()]) + PRIOR * at
        return float(np.logaddexp(0.0, wrong) @ counts) + PRIOR * float(at @ at) / 2, slopes

    bounds = [(-MOST_CHANGE, MOST_CHANGE), (-MOST_SHIFT, MOST_SHIFT)]
    found: Any = minimize(loss, np.zeros(2), jac=True, method="L-BFGS-B", bounds=bounds)
    temperature = exp(float(found.x[0]))
    return Calibrated(temperature, float(found.x[1]) * temperature, fitted_on)


def _are_few(truth: Truths) -> bool:
    return int(np.bincount(truth, minlength=2).min()) < FEWEST_LABELS
