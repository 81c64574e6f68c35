"""A temperature and a shift: against plain loops, on labels of a known temperature, and what is refused."""

from math import exp

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from r2n.errors import DataError
from r2n.evaluation import calibrate
from r2n.evaluation.calibrate import (
    ALL_RIGHT,
    FEWEST_LABELS,
    STANDARD_ERRORS,
    TEMPERATURES,
    Calibrated,
    fit_odds,
    fit_temperature,
)
from r2n.evaluation.metrics import average_precision, calibration
from tests.oracles.calibration import least_change, most_careful, total_loss

SOME = TEMPERATURES[::20]


def temperature_of(logits: np.ndarray, truth: np.ndarray, groups: np.ndarray | None = None) -> Calibrated:
    found = fit_temperature(
        logits, truth, np.arange(len(logits)) if groups is None else groups, fitted_on="some labels"
    )
    assert found is not None
    return found


def odds_of(logits: np.ndarray, truth: np.ndarray, weights: np.ndarray | None = None) -> Calibrated:
    found = fit_odds(logits, truth, fitted_on="some labels", weights=weights)
    assert found is not None
    return found


@pytest.fixture
def few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "FEWEST_LABELS", 1)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(-80, 80), st.booleans(), st.integers(0, 4)), min_size=2, max_size=25))
def test_the_temperature_is_that_of_plain_loops(labels: list[tuple[int, bool, int]]) -> None:
    logits, truth, groups = (np.array(column) for column in zip(*labels, strict=True))
    logits = logits / 4
    assume(truth.any() and not truth.all())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibrate, "FEWEST_LABELS", 1)
        patch.setattr(calibrate, "TEMPERATURES", SOME)
        found = temperature_of(logits, truth, groups)
    asked = logits.tolist(), truth.tolist()
    least = least_change(*asked, groups.tolist(), SOME.tolist(), STANDARD_ERRORS)
    careful = most_careful(*asked, SOME.tolist(), ALL_RIGHT)
    assert found.temperature == pytest.approx(max(least, careful))
    assert found.shift == 0.0


def test_labels_of_a_known_temperature_give_it_back_or_a_little_less() -> None:
    dice = np.random.default_rng(0)
    logits = dice.normal(0, 20, 20_000)
    truth = dice.random(20_000) < Calibrated(4.0, 0.0, "")(logits)
    assert temperature_of(logits, truth).temperature == pytest.approx(4.0, rel=0.2)
    assert calibration(temperature_of(logits, truth)(logits), truth).ece < 0.02


def test_one_group_of_wrong_answers_is_no_reason_to_change_and_many_are() -> None:
    logits = np.tile([6.0, 0.3, -0.3, -6.0], 50)
    truth = np.tile([False, True, False, False], 50)
    assert temperature_of(logits, truth, np.zeros(200, np.int64)).temperature == 1.0
    assert temperature_of(logits, truth, np.arange(200)).temperature > 1.5


@pytest.mark.usefixtures("few_are_enough")
def test_labels_that_are_all_right_leave_a_doubt_that_more_of_them_lessen() -> None:
    logits = np.array([-20.0, -12, 9, 15])
    few, many = (temperature_of(np.tile(logits, n), np.tile(logits > 0, n)) for n in (1, 50))
    assert 1 < many.temperature < few.temperature < 100
    assert few(np.array([9.0]))[0] < many(np.array([9.0]))[0] < 0.9999
    chances = few(np.abs(logits))
    assert ALL_RIGHT <= chances.prod() < ALL_RIGHT + 0.02


def test_a_wrong_answer_does_not_make_it_surer() -> None:
    logits = np.concatenate([np.linspace(9, 40, 30), -np.linspace(9, 40, 30)])
    truth = logits > 0
    right = temperature_of(logits, truth)
    wrong = temperature_of(np.append(logits, 8.5), np.append(truth, False))
    assert wrong.temperature >= right.temperature


def test_labels_of_a_known_temperature_and_shift_give_them_back() -> None:
    dice = np.random.default_rng(0)
    logits = dice.normal(0, 12, 40_000)
    truth = dice.random(40_000) < Calibrated(0.4, -3.0, "")(logits)
    found = odds_of(logits, truth)
    assert found.temperature == pytest.approx(0.4, rel=0.1)
    assert found.shift == pytest.approx(-3.0, abs=0.1)


@settings(max_examples=20)
@given(st.lists(st.tuples(st.integers(-60, 60), st.booleans(), st.integers(1, 3)), min_size=2, max_size=8))
def test_no_other_odds_have_a_smaller_loss(labels: list[tuple[int, bool, int]]) -> None:
    logits, truth, weights = (np.array(column) for column in zip(*labels, strict=True))
    logits, weights = logits / 4, weights.astype(np.float64)
    assume(truth.any() and not truth.all())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibrate, "FEWEST_LABELS", 1)
        found = odds_of(logits, truth, weights)
    asked = logits.tolist(), truth.tolist(), weights.tolist()
    own = total_loss(*asked, found.temperature, found.shift)
    for step in range(-6, 7):
        for shift in range(-6, 7):
            assert own <= total_loss(*asked, exp(step), shift * exp(step)) + 0.6  # what the belief in no change costs


def test_a_weight_stands_for_so_many_atoms() -> None:
    dice = np.random.default_rng(0)
    logits, times = dice.normal(0, 3, 60), dice.integers(1, 5, 60)
    truth = dice.random(60) < 0.5
    repeated = odds_of(np.repeat(logits, times), np.repeat(truth, times))
    weighed = odds_of(logits, truth, times.astype(np.float64))
    assert weighed.temperature == pytest.approx(repeated.temperature, rel=1e-3)
    assert weighed.shift == pytest.approx(repeated.shift, rel=1e-3, abs=1e-3)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(-4000, 4000), st.booleans()), min_size=30, max_size=40))
def test_the_order_stays(labels: list[tuple[int, bool]]) -> None:
    logits, truth = (np.array(column) for column in zip(*labels, strict=True))
    logits = logits / 8
    assume(FEWEST_LABELS <= truth.sum() <= len(truth) - FEWEST_LABELS)
    for found in (temperature_of(logits, truth), odds_of(logits, truth)):
        scaled = (logits - found.shift) / found.temperature
        assert average_precision(scaled, truth) == pytest.approx(average_precision(logits, truth))
        probabilities = found(logits)
        assert ((probabilities >= 0) & (probabilities <= 1)).all()
        assert (np.diff(probabilities[np.argsort(logits)]) >= 0).all()
    assert ((temperature_of(logits, truth)(logits) > 0.5) == (logits > 0)).all()


def test_labels_that_are_few_or_all_alike_fit_nothing() -> None:
    for truth in ([True] * 50, [False] * 50, [True] * 50 + [False] * (FEWEST_LABELS - 1), []):
        labels = np.zeros(len(truth)), np.array(truth, bool)
        assert fit_temperature(*labels, np.zeros(len(truth), np.int64), fitted_on="") is None
        assert fit_odds(*labels, fitted_on="") is None


@pytest.mark.parametrize(("temperature", "shift"), [(0.0, 0.0), (-1.0, 0.0), (float("nan"), 0.0), (1.0, float("inf"))])
def test_what_would_turn_the_order_round_is_refused(temperature: float, shift: float) -> None:
    with pytest.raises(DataError, match="give no probability"):
        Calibrated(temperature, shift, "")


def test_it_says_what_it_is() -> None:
    assert str(Calibrated(2.125, -0.5, "3 labels")) == "temperature 2.12, shift -0.5, fitted on 3 labels"
    assert str(Calibrated(1.0, 0.0, "3 labels")) == "temperature 1, fitted on 3 labels"
