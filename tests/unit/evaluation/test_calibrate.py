"""A temperature and a shift: against plain loops, and on generated networks that are sure, too sure, or off."""

from dataclasses import dataclass
from math import exp

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from r2n.errors import DataError
from r2n.evaluation.calibrate import (
    ERRORS,
    ERRORS_OF_SHIFT,
    FEWEST_LABELS,
    PARTS,
    Calibrated,
    fit_temperature,
    unless_contradicted,
    warmed,
)
from r2n.evaluation.calibrate import _careful as careful
from r2n.evaluation.calibrate import _cross_fitted as cross_fitted
from r2n.evaluation.calibrate import _parts as parts_of
from tests.oracles.calibration import gain, sigmoid, third_of_wrong_shares, total_loss

AS_TRAINED = (1.0, 0.0)


@dataclass(frozen=True)
class World:
    """Groups of atoms: the logits of their odds, which a network tells too surely, and off by so much."""

    groups: int
    size: int
    too_sure: float = 1.0
    off: float = 0.0
    apart: float = 3.0
    together: float = 0.0  # by how much all atoms of a group are off

    def draw(self, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Logits, labels and groups."""
        dice = np.random.default_rng(seed)
        group = np.repeat(np.arange(self.groups), dice.geometric(1 / self.size, self.groups))
        odds = dice.normal(0, self.apart, len(group))
        of_group = dice.normal(0, 1, self.groups)[group] * self.together
        truth = dice.random(len(group)) < Calibrated(1.0, 0.0, "")(odds + of_group)
        return odds * self.too_sure + self.off, truth, group

    def scores(self, seed: int) -> tuple[float, float, bool]:
        """The Brier scores of other labels before and after a calibration, and whether it changed anything."""
        found, (logits, truth, _) = temperature_of(*self.draw(seed)), self.draw(seed + 1000)
        scores = [float(((each(logits) - truth) ** 2).mean()) for each in (Calibrated(1.0, 0.0, ""), found)]
        return scores[0], scores[1], not found.is_as_trained

    def summary(self, seeds: int = 4) -> tuple[float, float, float]:
        """The means over seeds."""
        before, after, changed = np.array([self.scores(seed) for seed in range(seeds)]).mean(axis=0)
        return float(before), float(after), float(changed)


def temperature_of(logits: np.ndarray, truth: np.ndarray, groups: np.ndarray | None = None) -> Calibrated:
    groups = np.arange(len(logits)) if groups is None else groups
    found = fit_temperature(logits, truth, groups, fitted_on="some labels")
    assert found is not None
    return found


def odds_of(logits: np.ndarray, truth: np.ndarray, weights: np.ndarray | None = None) -> Calibrated:
    found = fit_temperature(
        logits, truth, np.arange(len(logits)), fitted_on="some labels", compares=True, weights=weights
    )
    assert found is not None
    return found


@settings(max_examples=6)
@given(st.lists(st.tuples(st.integers(-60, 60), st.booleans(), st.integers(0, 14)), min_size=24, max_size=50))
def test_what_is_fitted_pays_by_plain_loops(labels: list[tuple[int, bool, int]]) -> None:
    logits, truth, groups = (np.array(column) for column in zip(*labels, strict=True))
    assume(FEWEST_LABELS <= truth.sum() <= len(truth) - FEWEST_LABELS)
    logits, own = logits / 4, np.unique(groups, return_inverse=True)[1]
    parts, crossed = parts_of(own), {}
    for has_shift in (False, True):
        of_part = {
            int(part): careful(logits[kept], truth[kept], own[kept], has_shift, np.ones(kept.sum()))
            for part in np.unique(parts)
            for kept in [parts != part]
        }
        crossed[has_shift] = [of_part[int(part)] for part in parts]
    asked, as_trained = (logits.tolist(), truth.tolist(), groups.tolist()), [AS_TRAINED] * len(logits)
    warm, both = gain(*asked, as_trained, crossed[False]), gain(*asked, as_trained, crossed[True])
    beside = gain(*asked, crossed[False], crossed[True])
    assume(min(abs(warm - ERRORS), abs(both - ERRORS_OF_SHIFT), abs(beside - ERRORS)) > 1e-6)
    found = temperature_of(logits, truth, groups)
    if warm > ERRORS or both > ERRORS_OF_SHIFT:
        has_shift = beside > ERRORS if warm > ERRORS else True
        expected = careful(logits, truth, own, has_shift, np.ones(len(logits)))
        assert (found.temperature, found.shift) == pytest.approx(expected)
    else:
        assert (found.temperature, found.shift) == AS_TRAINED


@given(st.lists(st.integers(0, 30), min_size=1, max_size=80))
def test_groups_stay_whole_and_parts_are_even(groups: list[int]) -> None:
    own = np.unique(groups, return_inverse=True)[1]
    parts = parts_of(own)
    assert len(set(zip(own.tolist(), parts.tolist(), strict=True))) == len(set(groups))
    sizes = np.bincount(parts, minlength=PARTS)
    assert sizes.max() - sizes.min() <= np.bincount(own).max()


@pytest.mark.parametrize("has_shift", [False, True])
def test_no_label_is_judged_by_what_was_fitted_to_it(has_shift: bool) -> None:
    """With the labels of a part turned round, its atoms have the same probabilities: p from the one, 1 - p away."""
    logits, truth, groups = World(groups=30, size=2, too_sure=3.0).draw(0)
    parts = parts_of(groups)
    before = cross_fitted(logits, truth, groups, has_shift, np.ones(len(logits)))
    for part in range(PARTS):
        own = parts == part
        after = cross_fitted(logits, truth ^ own, groups, has_shift, np.ones(len(logits)))
        np.testing.assert_allclose(np.sqrt(before[own]) + np.sqrt(after[own]), 1.0, atol=1e-9)


@pytest.mark.parametrize("world", [World(60, 2), World(24, 5, apart=200.0), World(24, 5, apart=20.0)])
def test_a_network_that_knows_how_sure_it_is_stays_as_trained(world: World) -> None:
    before, after, changed = world.summary()
    assert changed <= 0.1
    assert after <= before + 0.001


def test_one_that_is_too_sure_or_holds_everything_true_is_mended() -> None:
    before, after, changed = World(60, 2, too_sure=5.0).summary()
    assert changed >= 0.7
    assert after < 0.9 * before
    before, after, _ = World(60, 2, too_sure=20.0, apart=1.0).summary()
    assert after < 0.8 * before, "where logits say little"
    before, after, changed = World(100, 3, off=4.0).summary()
    assert changed == 1.0
    assert after < 0.5 * before


def test_labels_that_tell_no_shift_have_none() -> None:
    for off in (0.0, 4.0, -30.0):
        logits, truth, groups = World(100, 3, too_sure=5.0, off=off).draw(0)
        found = fit_temperature(logits, truth, groups, fitted_on="", may_shift=False)
        assert found is not None
        assert found.shift == 0.0


def test_one_group_tells_nothing_and_many_tell() -> None:
    logits, truth, _ = World(100, 2, too_sure=5.0).draw(0)
    assert temperature_of(logits, truth, np.zeros(len(logits), np.int64)).is_as_trained
    largest = np.where(np.arange(len(logits)) < 0.97 * len(logits), 0, np.arange(len(logits)))
    assert temperature_of(logits, truth, largest).is_as_trained, "nor do a few beside it"
    assert not temperature_of(logits, truth, np.arange(len(logits))).is_as_trained


@settings(max_examples=8)
@given(st.lists(st.tuples(st.integers(-60, 60), st.booleans(), st.integers(1, 3)), min_size=2, max_size=8))
def test_no_other_odds_have_a_smaller_loss(labels: list[tuple[int, bool, int]]) -> None:
    logits, truth, weights = (np.array(column) for column in zip(*labels, strict=True))
    logits, weights = logits / 4, weights.astype(np.float64)
    assume(truth.any() and not truth.all())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("r2n.evaluation.calibrate.FEWEST_LABELS", 1)
        found = odds_of(logits, truth, weights)
    asked = logits.tolist(), truth.tolist(), weights.tolist()
    own = total_loss(*asked, found.temperature, found.shift)
    for step in range(-6, 7):
        for shift in range(-6, 7):
            assert own <= total_loss(*asked, exp(step), shift * exp(step)) + 0.6  # what the belief in no change costs


def test_labels_that_are_few_or_all_alike_fit_nothing() -> None:
    for truth in ([True] * 50, [False] * 50, [True] * 50 + [False] * (FEWEST_LABELS - 1), []):
        labels = np.zeros(len(truth)), np.array(truth, bool)
        for compares in (False, True):
            groups = np.zeros(len(truth), np.int64)
            assert fit_temperature(*labels, groups, fitted_on="", compares=compares) is None


@pytest.mark.parametrize(("temperature", "shift"), [(0.0, 0.0), (-1.0, 0.0), (float("nan"), 0.0), (1.0, float("inf"))])
def test_what_would_turn_the_order_round_is_refused(temperature: float, shift: float) -> None:
    with pytest.raises(DataError, match="give no probability"):
        Calibrated(temperature, shift, "")


@given(st.lists(st.tuples(st.floats(0.5, 60), st.booleans(), st.integers(0, 5)), min_size=1, max_size=30))
def test_nothing_is_surer_than_labels_without_a_mistake_allow(drawn: list[tuple[float, bool, int]]) -> None:
    """Of n groups without a mistake, as many are expected to be wrong as leaves odds of two to one for more."""
    truth, groups = np.array([is_true for _, is_true, _ in drawn]), np.array([group for *_, group in drawn])
    logits = np.array([size for size, *_ in drawn]) * np.where(truth, 1, -1)
    found = warmed(Calibrated(1.0, 0.0, "x"), logits, truth, groups, fitted_on="labels")
    n = len(set(groups.tolist()))
    before, after = (
        sum(sigmoid((-1 if is_true else 1) * logit / t) for logit, is_true in zip(logits, truth, strict=True))
        for t in (1.0, found.temperature)
    )
    allowed = n * third_of_wrong_shares(n)
    if before >= allowed or len(drawn) / 2 <= allowed:
        assert found == Calibrated(1.0, 0.0, "x")
    else:
        assert after == pytest.approx(allowed, rel=1e-4)
        assert found.temperature > 1.0
        assert found.fitted_on == "labels, none of them wrong"


def test_logits_that_labels_contradict_are_not_said_to_be_uncontradicted() -> None:
    """Nine true labels are too few to fit, and most of them are held to be false for sure."""
    truth = np.arange(49) < 9
    weights, logits = np.ones(49), np.where(np.arange(49) < 7, -40.0, np.where(truth, 3.0, -3.0))
    as_trained = Calibrated(1.0, 0.0, "hidden facts")
    found = unless_contradicted(as_trained, logits, truth, weights, "49 validation queries")
    assert found.is_as_trained
    assert str(found).startswith("as trained, not calibrated: the log-loss of 49 validation queries is 5.76, 0.477 if")
    good = np.where(truth, 3.0, -3.0)
    assert unless_contradicted(as_trained, good, truth, weights, "49 validation queries") is as_trained
    assert unless_contradicted(as_trained, -good, truth, 0 * weights + truth, "only true ones") is as_trained
