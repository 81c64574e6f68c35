"""What the examples share."""

from statistics import mean

import pytest

from examples.comparison import Comparison, compare, mean_and_error, search


def test_a_lift_is_the_mean_of_differences_with_its_standard_error() -> None:
    assert mean_and_error([1.0, 2.0, 3.0]) == (2.0, pytest.approx(3**-0.5))  # the deviation is 1
    assert mean_and_error([4.0]) == (4.0, 0.0)
    found = Comparison("m", {"ours": [0.9, 0.8, 0.7], "theirs": [0.5, 0.6, 0.4]}, [("ours", "theirs")])
    lift, error = found.lift("ours", "theirs")
    assert lift == pytest.approx(mean([0.4, 0.2, 0.3]))
    assert error == pytest.approx(0.1 / 3**0.5)
    assert found.holds()


@pytest.mark.parametrize("theirs", [[0.5, 0.8, 0.6], [0.5, 0.9, 0.7], [0.9, 0.8, 0.7], [1.0, 1.0, 1.0]])
def test_a_lift_within_two_standard_errors_does_not_hold(theirs: list[float]) -> None:
    found = Comparison("m", {"ours": [0.9, 0.8, 0.7], "theirs": theirs}, [("ours", "theirs")])
    assert not found.holds()
    assert "NOT every lift" in found.lines()[-1]


def test_one_claim_that_fails_is_enough() -> None:
    figures = {"ours": [0.9, 0.9], "bad": [0.1, 0.2], "good": [0.95, 0.9]}
    assert Comparison("m", figures, [("ours", "bad")]).holds()
    assert not Comparison("m", figures, [("ours", "bad"), ("ours", "good")]).holds()


def test_every_model_is_measured_with_every_seed() -> None:
    found = compare("m", lambda seed: {"a": seed, "b": 2 * seed}, [("b", "a")], seeds=[1, 2, 3])
    assert found.figures == {"a": [1, 2, 3], "b": [2, 4, 6]}
    assert [line.split() for line in found.lines()[1:3]] == [["a", "2.000", "±", "0.577"], ["b", "4.000", "±", "1.155"]]


def test_the_search_takes_the_best_mean(capsys: pytest.CaptureFixture[str]) -> None:
    best = search(lambda seed, changes: seed * ("model.dim=4" in changes), {"model.dim": [2, 4, 8]})
    assert best == ["model.dim=4"]
    assert len(capsys.readouterr().out.splitlines()) == 3
