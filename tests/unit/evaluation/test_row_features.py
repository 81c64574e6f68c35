"""Features of atoms in their rows, what is fitted to them, and shares of rows: by loops, and on generated rows."""

from math import exp, log
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2n.data.herbrand import HerbrandBase
from r2n.errors import DataError
from r2n.evaluation.calibrate import Calibrated, RowFeatures, fit_in_rows, fit_share
from r2n.evaluation.ranking import row_features
from r2n.logic.language import Domain, Language, Predicate
from tests.oracles import metrics as oracle

A, B = Domain("a"), Domain("b")
PREDICATES = [Predicate("p", (A, B)), Predicate("q", (B,))]
MEMBERS = {"a": [f"a{i}" for i in range(3)], "b": [f"b{i}" for i in range(4)]}
BASE = HerbrandBase(Language.build([A, B], PREDICATES, MEMBERS))  # three rows of p, and one of q
SCORES = st.lists(st.integers(-30, 30).map(lambda x: x / 2), min_size=16, max_size=16)


@given(SCORES, st.lists(st.booleans(), min_size=16, max_size=16), st.sampled_from([1, 10**9]))
def test_features_of_rows_equal_loops(scores: list[float], known: list[bool], memory: int) -> None:
    codes = np.flatnonzero(known)
    found = row_features(lambda atoms: np.array(scores)[atoms], np.arange(16), np.array(scores), BASE, codes, memory)
    assert [found.names[i] for i in found.predicate] == ["p"] * 12 + ["q"] * 4
    for code in range(16):
        row = slice(code // 4 * 4, code // 4 * 4 + 4)
        expected = (1.0, scores[code], *oracle.row_features(scores[row], known[row], code % 4))
        assert found.columns[code] == pytest.approx(expected, abs=1e-9)


def rows(seed: int, count: int = 120, width: int = 8, offset: float = 8.0) -> tuple[Any, ...]:
    """Rows with levels of their own, which vary by so much; the true atom is three above that of its row."""
    dice = np.random.default_rng(seed)
    truth = np.zeros((count, width), bool)
    truth[np.arange(count)[dice.random(count) < 0.8], 0] = True
    scores = dice.normal(size=truth.shape) + 3 * truth + offset * dice.normal(size=(count, 1))
    wide = HerbrandBase(
        Language.build([A, B], PREDICATES[:1], {"a": [f"{i:03}" for i in range(count)], "b": list("12345678")})
    )
    atoms, nothing = np.arange(truth.size), np.zeros(0, np.int64)
    own = row_features(lambda codes: scores.ravel()[codes], atoms, scores.ravel(), wide, nothing)
    return scores.ravel(), own, truth.ravel(), np.repeat(np.arange(count), width), np.ones(truth.size)


@pytest.mark.parametrize("seed", range(3))
def test_rows_that_cannot_be_compared_are_judged_by_how_atoms_stand_in_them(seed: int) -> None:
    logits, own, truth, groups, weights = rows(seed)
    found = Calibrated(1.0, 0.0, "labels", by_rows=fit_in_rows(own, truth, groups, weights))
    logits, own, truth, *_ = rows(seed + 10)
    probability = found(logits, own)
    threshold = max(float(((logits > level) == truth).mean()) for level in np.quantile(logits, np.linspace(0, 1, 99)))
    assert ((probability > 0.5) == truth).mean() > threshold + 0.02
    assert probability[truth].mean() > 0.5
    assert abs(probability.mean() - truth.mean()) < 0.03


@pytest.mark.parametrize("seed", range(3))
def test_where_logits_are_of_one_scale_rows_say_nothing(seed: int) -> None:
    logits, own, truth, groups, weights = rows(seed, offset=0.0)
    dice = np.random.default_rng(seed)
    truth = dice.random(len(truth)) < 1 / (1 + np.exp(-logits))
    assert fit_in_rows(own, truth, groups, weights) == {}


def test_predicates_with_labels_speak_for_themselves_and_others_by_all() -> None:
    logits, own, truth, groups, weights = rows(0, count=400)
    is_other = groups % 2 == 1  # half of the rows are of a predicate whose atoms are true by chance
    truth = np.where(is_other, np.random.default_rng(0).random(len(truth)) < 0.1, truth)
    mixed = RowFeatures(own.columns, is_other.astype(np.int64), ("p", "r", "unseen"))
    by_rows = fit_in_rows(mixed, truth, groups, weights)
    assert set(by_rows) == {"", "p", "r"}
    found = Calibrated(1.0, 0.0, "labels", by_rows=by_rows)
    assert "2 predicates separately" in str(found)
    assert ((found(logits, mixed) > 0.5) == truth)[~is_other].mean() > 0.9
    assert found(logits, mixed)[is_other].max() < 0.3
    unseen = RowFeatures(own.columns, np.full(len(logits), 2), mixed.names)
    all_of = Calibrated(1.0, 0.0, "labels", by_rows={"": by_rows[""]})
    np.testing.assert_array_equal(found(logits, unseen), all_of(logits, unseen))


def test_another_logit_of_an_atom_moves_its_probability_as_if_the_others_of_its_row_stayed() -> None:
    scores = np.array([1.0, 4.0, 0.5, -2.0] + [0.0] * 12)
    found = Calibrated(1.0, 0.0, "labels", by_rows={"": (-1.0, 0.3, 0.7, 0.2, 0.5)})
    nothing, first = np.zeros(0, np.int64), np.array([1])
    line = found.of_atom(row_features(scores.__getitem__, first, scores[first], BASE, nothing))
    for logit in (2.0, 4.0, 9.0):
        changed = np.where(np.arange(16) == 1, logit, scores)
        features = row_features(changed.__getitem__, first, changed[first], BASE, nothing)
        expected = found(changed[first], features)
        assert line(np.array([logit])) == pytest.approx(expected)
    assert line(np.array([line.shift])) == pytest.approx(0.5)


def test_the_share_is_of_the_temperature_that_makes_answers_likeliest() -> None:
    dice = np.random.default_rng(0)
    asked = []
    for _ in range(300):
        logits = dice.normal(size=6) * 2
        asked.append((3 * logits, int(dice.choice(6, p=np.exp(logits) / np.exp(logits).sum()))))
    found = fit_share(asked)
    assert found == pytest.approx(3, rel=0.3)

    def loss(temperature: float) -> float:
        return sum(log(sum(exp(x / temperature) for x in row)) - row[answer] / temperature for row, answer in asked)

    assert found is not None
    assert all(loss(found) <= loss(found * factor) + 1e-6 for factor in (0.5, 0.9, 1.1, 2.0))
    assert fit_share(asked[:9]) is None


WRONG = [{"by_rows": {"": (0.0, -1.0, 0.0, 0.0, 0.0)}}, {"by_rows": {"": (0.0, 1.0)}}, {"by_rows": {"p": (0.0,) * 5}}]


@pytest.mark.parametrize("fields", [*WRONG, {"by_rows": {"": (float("nan"),) * 5}}, {"share": 0.0}])
def test_what_gives_no_probability_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="give"):
        Calibrated(1.0, 0.0, "labels", **fields)


def test_rows_that_are_read_have_to_be_given() -> None:
    with pytest.raises(DataError, match="reads the rows of atoms"):
        Calibrated(1.0, 0.0, "labels", by_rows={"": (0.0, 1.0, 0.0, 0.0, 0.0)})(np.zeros(1))


@pytest.mark.parametrize("seed", range(3))
def test_many_predicates_of_few_labels_do_not_fit_themselves(seed: int) -> None:
    logits, own, _, groups, weights = rows(seed, count=100, offset=0.0)
    truth = np.random.default_rng(seed).random(len(logits)) < 1 / (1 + np.exp(-logits))
    names = tuple(f"p{i}" for i in range(20))
    assert fit_in_rows(RowFeatures(own.columns, groups % 20, names), truth, groups, weights).keys() <= {""}
