"""What searches share: the best rules of each head, and the clock."""

from time import monotonic

import numpy as np

from r2n.mining.search import Clock, Thresholds, best_of
from tests.unit.mining.test_mined_rules import found


def test_the_best_of_several_parts_are_one_part() -> None:
    parts = [found([0, 1], [3, 3], [10, 10]), found([0], [9], [10])]
    (best,) = best_of(parts, Thresholds(1, 0.0, 1))
    assert best.predicate.tolist() == [0, 1]
    assert best.support.tolist() == [9, 3]
    assert best_of([], Thresholds(1, 0.0, 1)) == ()
    assert np.array_equal(best_of([best], Thresholds(1, 0.0, 1))[0].support, best.support)


def test_a_clock_without_deadline_is_never_over() -> None:
    assert not Clock(lambda *_: None).is_over
    assert Clock(lambda *_: None, monotonic() - 1).is_over
    assert not Clock(lambda *_: None, monotonic() + 1000).is_over
