"""Calibration: probabilities from logits, by a temperature and a shift that are fitted to labels.

    probability = sigmoid((logit - shift) / temperature)

The order of atoms stays as it is. Where a logit of 0 already means that an atom is as likely as not, logits stay as
they were trained unless labels contradict them. Where logits are only compared with each other, as a softmax does,
temperature and shift are fitted in any case.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, isfinite, log
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int64
from scipy.special import betaincinv, entr, expit, logsumexp

from r2n.errors import DataError, counted

FEWEST_LABELS = 10  # of true and of false atoms each: fewer say nothing
PARTS = 10  # of the labels: each is judged by a fit to the others
ERRORS = 1.5  # that a gain must exceed, standard ones: one group alone gains 1
ERRORS_OF_SHIFT = 2.0  # of a shift alone, which turns answers round
TOO_SURE = 2.0  # to one: the odds at which a temperature rises no further
TINY = 1e-300
TINY_SLOPE = 1e-6
PRIOR_APART = 1.0  # the precision of the belief, in labels, that a predicate is as all others
COEFFICIENTS = 5  # an intercept, the logit, and three features of the atom in its row
PRIOR = 0.01  # the precision of the belief, in labels, that neither temperature nor shift is needed
MOST_LOSS = 2.0  # times that of the share of true labels: above, the labels contradict what was trained
MOST_CHANGE = 7.0  # of the log of the temperature
MOST_SHIFT = 50.0  # in units of the temperature

Logits = Float64[np.ndarray, " atoms"]
Truths = Bool[np.ndarray, " atoms"]
Groups = Int64[np.ndarray, " atoms"]


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A temperature, a shift, and, in words, what they were fitted on.

    If logits of different rows cannot be compared, `by_rows` holds by predicate (`""`: all others) the coefficients of
    a logistic regression on `RowFeatures`: an intercept, the logit, and three features of the atom in its row. `share`
    is the temperature of a row's softmax, for whether an atom is the answer of its row.

    `why_not` is the reason for which nothing was fitted: then probabilities are as they were trained. `on_validation`:
    validation queries were among what they were fitted on, so that calibrated figures of these are not held out.
    """

    temperature: float
    shift: float
    fitted_on: str
    why_not: str = ""
    on_validation: bool = False
    by_rows: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    share: float | None = None

    def __post_init__(self) -> None:
        """Check that the order of logits is kept."""
        if not (isfinite(self.temperature) and isfinite(self.shift) and self.temperature > 0):
            raise DataError(f"a temperature of {self.temperature} and a shift of {self.shift} give no probability")
        for found in self.by_rows.values():
            if len(found) != COEFFICIENTS or not np.isfinite(found).all() or min(found[1:]) < 0:
                raise DataError(f"the coefficients {list(found)} give no probability")
        if self.by_rows and "" not in self.by_rows:
            raise DataError("coefficients of some predicates alone give no probability to others")
        if self.share is not None and not (isfinite(self.share) and self.share > 0):
            raise DataError(f"a temperature of {self.share} gives no shares")

    @property
    def is_as_trained(self) -> bool:
        """Whether it changes nothing."""
        return self.temperature == 1.0 and self.shift == 0.0 and not self.by_rows

    @property
    def in_words(self) -> str:
        """`calibrated on 120 validation queries`, or that they do not contradict what was trained."""
        return str(self) if self.is_as_trained else f"calibrated on {self.fitted_on}"

    def __call__(self, logits: Logits, features: "RowFeatures | None" = None) -> Logits:
        """The probabilities that atoms are true, by their logits or, with `by_rows`, by features of their rows too."""
        if not self.by_rows:
            return expit((logits - self.shift) / self.temperature)
        if features is None:
            raise DataError("this calibration reads the rows of atoms, and they are not given")
        return expit(features.log_odds(self.by_rows))

    def of_atom(self, features: "RowFeatures") -> "Calibrated":
        """As a temperature and a shift, for other logits of this one atom while the others of its row stay."""
        own = self.by_rows.get(features.names[features.predicate[0]], self.by_rows[""])
        slope = max(sum(own[1:4]), TINY_SLOPE)  # its log-odds in the row and its margin change as its logit does
        shift = float(features.columns[0, 1] - features.log_odds(self.by_rows)[0] / slope)
        return replace(self, temperature=1 / slope, shift=shift, by_rows={})

    def __str__(self) -> str:
        """`temperature 2.13, fitted on 120 validation queries`, with the shift where there is one."""
        if self.why_not:
            return f"as trained, not calibrated: {self.why_not}"
        if self.is_as_trained:
            return f"as trained, which {self.fitted_on} do not contradict"
        if self.by_rows:
            own = counted(len(self.by_rows) - 1, "predicate")
            apart = f", {own} separately" if len(self.by_rows) > 1 else ""
            return f"by the logit and the rank in its row{apart}, fitted on {self.fitted_on}"
        shift = f", shift {self.shift:.3g}" if self.shift else ""
        return f"temperature {self.temperature:.3g}{shift}, fitted on {self.fitted_on}"


@dataclass(frozen=True, eq=False)
class RowFeatures:
    """What a calibration by rows reads of atoms, by column (`row_features`); `names` has the name of each predicate."""

    columns: Float64[np.ndarray, "atoms coefficients"]
    predicate: Int64[np.ndarray, " atoms"]
    names: tuple[str, ...]

    def log_odds(self, by_rows: Mapping[str, tuple[float, ...]]) -> Logits:
        """Of the probabilities by the coefficients of each atom's predicate, or those of all."""
        each = np.array([by_rows.get(name, by_rows[""]) for name in self.names]).reshape(-1, COEFFICIENTS)
        return (self.columns * each[self.predicate]).sum(axis=1)

    def taken(self, which: np.ndarray) -> "RowFeatures":
        """Those of some atoms."""
        return replace(self, columns=self.columns[which], predicate=self.predicate[which])


def fit_in_rows(features: RowFeatures, truth: Truths, groups: Groups, weights: Logits) -> dict[str, tuple[float, ...]]:
    """The coefficients of `Calibrated.by_rows`, if labels that they are not fitted to are likelier by them; else none.

    First those of all predicates together, then of each with enough labels by itself, near those of all. Against a
    temperature and a shift, and against each other, they gain log-likelihood by more than a standard error.
    """
    if int(np.bincount(truth, minlength=2).min()) < FEWEST_LABELS:
        return {}
    own, signs, logits = np.unique(groups, return_inverse=True)[1], np.where(truth, -1.0, 1.0), features.columns[:, 1]
    parts, losses = _parts(own), np.zeros((3, len(logits)))
    for part in np.unique(parts):
        others, some = np.flatnonzero(parts != part), np.flatnonzero(parts == part)
        known = truth[others], weights[others]
        temperature, shift = _least_loss(logits[others], *known, prior=PRIOR, surest=exp(-MOST_CHANGE))
        losses[0, some] = np.logaddexp(0.0, signs[some] * (logits[some] - shift) / temperature)
        for i, apart in enumerate((False, True), start=1):
            by_rows = _row_coefficients(features.taken(others), *known, apart=apart)
            losses[i, some] = np.logaddexp(0.0, signs[some] * features.taken(some).log_odds(by_rows))
    best = 0
    for i in (1, 2):
        best = i if _gain(weights * (losses[best] - losses[i]), own) > 1.0 else best
    return _row_coefficients(features, truth, weights, apart=best == 2) if best else {}


def _row_coefficients(
    features: RowFeatures, truth: Truths, weights: Logits, *, apart: bool
) -> dict[str, tuple[float, ...]]:
    """The coefficients of least log-loss, none of them negative but the intercept, so that a row keeps its order."""
    from scipy.optimize import minimize

    scale = np.maximum(np.sqrt(np.average(features.columns**2, axis=0, weights=np.abs(weights))), 1e-6)
    columns, signs = features.columns / scale, np.where(truth, -1.0, 1.0)

    def fit(which: np.ndarray, start: np.ndarray, prior: float) -> np.ndarray:
        scaled, sign, weight = columns[which], signs[which], weights[which]

        def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
            wrong, change = sign * (scaled @ at), at - start
            slopes = (weight * sign * expit(wrong)) @ scaled + prior * change
            return float(np.logaddexp(0.0, wrong) @ weight) + prior * float(change @ change) / 2, slopes

        bounds = [(None, None)] + [(0.0, None)] * (COEFFICIENTS - 1)
        best: Any = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
        return best.x

    every = fit(np.arange(len(truth)), np.zeros(COEFFICIENTS), PRIOR)
    found = {"": every}
    for i in np.unique(features.predicate).tolist() if apart else ():
        which = np.flatnonzero(features.predicate == i)
        if int(np.bincount(truth[which], minlength=2).min()) >= FEWEST_LABELS:
            found[features.names[i]] = fit(which, every, PRIOR_APART)
    return {name: tuple((each / scale).tolist()) for name, each in found.items()}


def fit_share(rows: Sequence[tuple[np.ndarray, int]]) -> float | None:
    """The temperature of the softmax by which the answers of rows are likeliest; None where they are few.

    A row holds the logits of its candidates, and the index of its answer among them.
    """
    if len(rows) < FEWEST_LABELS:
        return None

    from scipy.optimize import minimize_scalar

    def loss(log_of_temperature: float) -> float:
        slope = exp(-log_of_temperature)
        return sum(float(logsumexp(slope * logits) - slope * logits[answer]) for logits, answer in rows)

    found: Any = minimize_scalar(loss, bounds=(-MOST_CHANGE, MOST_CHANGE), method="bounded")
    return exp(float(found.x))


def fit_temperature(
    logits: Logits,
    truth: Truths,
    groups: Groups,
    *,
    fitted_on: str,
    compares: bool = False,
    may_shift: bool = True,
    weights: Logits | None = None,
    prior: float = PRIOR,
) -> Calibrated | None:
    """As trained, or a temperature of 1 or more, or that and a shift; None where labels are too few.

    If a training only `compares` logits, it is the temperature and shift of least log-loss in any case; a weak prior
    keeps the temperature finite if a threshold separates the labels.

    Fitted to some groups of labels, a change must lower the Brier score of the others by more than one and a half
    standard errors (of sums over groups, whose atoms may be wrong together), a shift alone by more than two.
    `weights` say for how many atoms each stands.
    """
    if int(np.bincount(truth, minlength=2).min()) < FEWEST_LABELS:
        return None
    own = np.unique(groups, return_inverse=True)[1]
    weights = np.ones(len(logits)) if weights is None else weights
    if compares:
        return Calibrated(*_least_loss(logits, truth, weights, prior=prior, surest=exp(-MOST_CHANGE)), fitted_on)
    trained = weights * _brier(logits, truth, 1.0, 0.0)
    warmer, shifted = (
        weights * _cross_fitted(logits, truth, own, has_shift, weights) for has_shift in (False, may_shift)
    )
    if _gain(trained - warmer, own) > ERRORS:
        has_shift = _gain(warmer - shifted, own) > ERRORS
    elif _gain(trained - shifted, own) > ERRORS_OF_SHIFT:
        has_shift = True
    else:
        return Calibrated(1.0, 0.0, fitted_on)
    return Calibrated(*_careful(logits, truth, own, has_shift, weights), fitted_on)


def warmed(
    found: Calibrated, logits: Logits, truth: Truths, groups: Groups, *, fitted_on: str, weights: Logits | None = None
) -> Calibrated:
    """A calibration that is no surer than labels without a mistake allow; as it is where it is not.

    If none of n groups was wrong, the share of wrong groups is Beta(1/2, n + 1/2) by the Jeffreys prior. The
    temperature is the least at which the odds that more atoms will be wrong than it expects are at most `TOO_SURE`.
    """
    wrong, count = np.where(truth, -1.0, 1.0) * (logits - found.shift), len(np.unique(groups))
    allowed = count * float(betaincinv(0.5, count + 0.5, 1 / (1 + TOO_SURE)))

    counts = np.ones(len(logits)) if weights is None else weights

    def missing(log_of_temperature: float) -> float:
        return float(expit(wrong / exp(log_of_temperature)) @ counts) - allowed

    from scipy.optimize import brentq

    least = log(found.temperature)
    if missing(least) >= 0 or missing(MOST_CHANGE) <= 0:
        return found
    warmest: Any = brentq(missing, least, MOST_CHANGE)
    return Calibrated(exp(warmest), found.shift, f"{fitted_on}, none of them wrong")


def unless_contradicted(found: Calibrated, logits: Logits, truth: Truths, weights: Logits, labels: str) -> Calibrated:
    """A calibration that changes nothing, unless labels are predicted far worse than by their share of true ones."""
    if not len(logits):
        return found
    losses = np.logaddexp(0.0, np.where(truth, -1.0, 1.0) * (logits - found.shift) / found.temperature)
    share = float(np.average(truth, weights=weights))
    loss, of_share = float(np.average(losses, weights=weights)), float(entr(share) + entr(1 - share))
    if loss <= MOST_LOSS * of_share or not 0 < share < 1:
        return found
    why = f"the log-loss of {labels} is {loss:.3g}, {of_share:.3g} if each had the share of true ones as probability"
    return Calibrated(1.0, 0.0, found.fitted_on, f"{why}, and no temperature is sure to mend it")


def _cross_fitted(logits: Logits, truth: Truths, groups: Groups, has_shift: bool, weights: Logits) -> Logits:
    """The Brier score of each atom by what is fitted to the other parts."""
    scores, parts = np.zeros(len(logits)), _parts(groups)
    for part in np.unique(parts):
        own, others = parts == part, parts != part
        fitted = _careful(logits[others], truth[others], groups[others], has_shift, weights[others])
        scores[own] = _brier(logits[own], truth[own], *fitted)
    return scores


def _careful(logits: Logits, truth: Truths, groups: Groups, has_shift: bool, weights: Logits) -> tuple[float, float]:
    """Nothing is surer than before, and the belief that no change is needed weighs as much as a group of labels."""
    prior = float(weights.sum()) / max(1, len(np.unique(groups)))
    return _least_loss(logits, truth, weights, prior=prior, surest=1.0, has_shift=has_shift)


def _gain(gains: Logits, groups: Groups) -> float:
    """How many standard errors of the sum over groups it is away from nothing."""
    of_each = np.bincount(groups, gains)
    return float(of_each.sum() / max(np.sqrt((of_each**2).sum()), TINY))


def _parts(groups: Groups) -> Groups:
    """A part for each atom: complete groups, the largest first, each to the part that is the smallest until then."""
    sizes = np.bincount(groups)
    part_of, filled = np.zeros(len(sizes), np.int64), np.zeros(PARTS)
    for group in np.argsort(-sizes, kind="stable"):
        part_of[group] = filled.argmin()
        filled[part_of[group]] += sizes[group]
    return part_of[groups]


def _brier(logits: Logits, truth: Truths, temperature: float, shift: float) -> Logits:
    return (expit((logits - shift) / temperature) - truth) ** 2


def _least_loss(
    logits: Logits, truth: Truths, weights: Logits, *, prior: float, surest: float, has_shift: bool = True
) -> tuple[float, float]:
    """The temperature, of `surest` or more, and the shift of least log-loss; `prior` believes in no change."""
    signs = np.where(truth, -1.0, 1.0)

    def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
        slope = exp(-at[0])
        wrong = signs * (slope * logits - at[1])
        pull = weights * signs * expit(wrong)
        slopes = np.array([-slope * (pull @ logits), -pull.sum()]) + prior * at
        return float(np.logaddexp(0.0, wrong) @ weights) + prior * float(at @ at) / 2, slopes

    most = MOST_SHIFT if has_shift else 0.0
    bounds = [(log(surest), MOST_CHANGE), (-most, most)]
    from scipy.optimize import minimize  # takes a second to import, and only a training calibrates

    found: Any = minimize(loss, np.zeros(2), jac=True, method="L-BFGS-B", bounds=bounds)
    temperature = exp(float(found.x[0]))
    return temperature, float(found.x[1]) * temperature
