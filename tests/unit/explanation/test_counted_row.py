"""Counted rules: an atom's logit with fewer ground rules, against counts where they are not there."""

import numpy as np
import pytest

from r2n.data.problem import Problem
from r2n.explanation.counted import CountedAtom
from r2n.network.mixture import WEIGHTINGS, Weighting
from tests.unit.explanation.small_subject import codes, subject

COUNTED = ("model.rules=counted", "model.reasoner=none")


@pytest.mark.parametrize("way", range(len(WEIGHTINGS)))
def test_the_logit_is_that_of_the_network_and_without_a_rule_that_of_the_others(toy: Problem, way: int) -> None:
    told = subject(toy, *COUNTED)
    combination = told.members[0].model.combination
    assert combination is not None
    combination.way.fill_(way)
    for atom in ("liesIn(n5, north)", "liesIn(n5, south)", "near(n1, n2)"):
        asked = codes(told, atom)
        counted = CountedAtom(told.members, int(asked[0]))
        assert counted.logit() == pytest.approx(told.logits(asked)[0], abs=1e-5)
    counted = CountedAtom(told.members, int(codes(told, "liesIn(n5, north)")[0]))
    assert counted.numbers == {0: 2}
    ((number, ground_rules),) = counted.ground_rules()
    assert number == 0
    assert sorted(told.names(np.unique(ground_rules.atoms))) == [
        "liesIn(n4, north)",
        "liesIn(n5, north)",
        "liesIn(n6, north)",
        "near(n4, n5)",
        "near(n6, n5)",
    ]


def test_an_atom_feels_what_concludes_another_of_its_row(toy: Problem) -> None:
    told = subject(toy, *COUNTED)
    combination = told.members[0].model.combination
    assert combination is not None
    combination.way.fill_(
        WEIGHTINGS.index(Weighting("sum", 1.0))
    )  # in a mixture, what no rule concludes has its share as it is
    one = CountedAtom(told.members, int(codes(told, "liesIn(n5, south)")[0]))
    other = codes(told, "liesIn(n5, north)", "liesIn(s5, north)")
    assert one.numbers == {}
    assert one.ground_rules() == []
    assert one.logit({0: 1}, of=int(other[0])) > one.logit()
    assert one.logit({0: 1}, of=int(other[1])) == one.logit()
