"""Links from numbered things to others, followed many at once."""

from random import Random

import numpy as np
from hypothesis import given

from r2n.grounding.ground_rules import Links, ranges
from tests.theory_strategies import dice


@given(dice())
def test_links_are_followed_as_a_dictionary_would(dice: Random) -> None:
    count = dice.randrange(1, 6)
    pairs = [(dice.randrange(count), dice.randrange(9)) for _ in range(dice.randrange(12))]
    by_source = {i: [target for source, target in pairs if source == i] for i in range(count)}
    sources, targets = np.array(pairs, np.int64).reshape(-1, 2).T
    asked = np.array([dice.randrange(count) for _ in range(dice.randrange(5))], np.int64)
    places, found = Links.build(sources, targets, count).follow(asked)
    expected = [(place, target) for place, source in enumerate(asked.tolist()) for target in by_source[source]]
    assert list(zip(places.tolist(), found.tolist(), strict=True)) == expected


def test_ranges_follow_each_other() -> None:
    assert ranges(np.array([5, 9, 2]), np.array([2, 0, 3])).tolist() == [5, 6, 2, 3, 4]
    assert ranges(np.zeros(0, np.int64), np.zeros(0, np.int64)).tolist() == []
