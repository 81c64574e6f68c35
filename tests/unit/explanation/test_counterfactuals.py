"""What would be said if something were otherwise, and what turns an answer."""

import numpy as np
import pytest

from r2n.data.problem import Problem
from r2n.explanation.counterfactuals import Counterfactuals, Turn, largest
from r2n.explanation.neighbourhood import Otherwise, Scene, mean_logits
from r2n.explanation.records import Counterfactual
from tests.unit.explanation.small_subject import codes, subject


def test_an_answer_turns_below_half_or_out_of_first_place() -> None:
    logits = np.array([[1.0, 2.0], [-1.0, -2.0]])
    assert Turn(np.array([0]), "half").turns(logits).tolist() == [False, True]
    assert Turn(np.array([0]), "half", half=1.5).turns(logits).tolist() == [True, True]
    assert Turn(np.array([0, 1]), "first").turns(logits).tolist() == [True, False]
    assert Turn(np.array([0]), None).turns(logits).tolist() == [False, False]


@pytest.mark.parametrize("strategy", ["full", "known-body", "backward"])
@pytest.mark.parametrize("by", ["half", "first"])
def test_the_set_that_turns_an_answer_turns_it_and_no_part_in_order_does(toy: Problem, strategy: str, by: str) -> None:
    told = subject(toy, "model.layers=2", "model.evidence_input=only", f"grounding.strategy={strategy}")
    asked = codes(told, "liesIn(n5, north)", "liesIn(n5, south)")
    logits = told.logits(asked)
    if by == "first" and logits[0] < logits[1]:
        asked, logits = asked[::-1], logits[::-1]
    half = float(logits[0]) - 1e-4  # so that something turns it
    turn = Turn(asked[:1], "half", half) if by == "half" else Turn(asked, "first")
    scene = Scene.around(told.members, turn.codes)
    facts = np.sort(codes(told, "near(n4, n5)", "near(n6, n5)", "liesIn(n4, north)", "liesIn(n6, north)"))
    found = Counterfactuals(told, scene, turn, facts, ("neighbours",), scene.logits)
    turned = found.turned_by()
    if by == "half" and strategy != "backward":  # there, no fact lowers this one
        assert turned is not None
    if turned is not None:
        gone = codes(told, *turned.what)
        for size in range(1, len(gone) + 1):
            then = mean_logits(told.otherwise(Otherwise(unknown=np.sort(gone[:size]))), turn.codes)
            assert bool(turn.turns(then[None])[0]) == (size == len(gone))
        assert turned.turns
        assert turned.kind == "not known"
    kinds = {other.kind for other in found.of_facts()}
    assert kinds == {"not known", "known to be false"}
    (rule,) = found.of_rules()
    without = mean_logits(told.otherwise(Otherwise(without_rule="neighbours")), asked[:1])
    assert rule.logit == pytest.approx(without[0], abs=1e-9)


def test_what_is_neither_held_true_nor_first_is_not_turned(toy: Problem) -> None:
    told = subject(toy)
    asked = codes(told, "liesIn(n5, north)")
    scene = Scene.around(told.members, asked)
    nothing = np.zeros(0, np.int64)
    assert Counterfactuals(told, scene, Turn(asked, None), nothing, (), scene.logits).turned_by() is None


def test_the_largest_changes_come_first() -> None:
    found = [Counterfactual("not known", (str(logit),), logit, 0.5, False) for logit in (1.0, -3.0, 2.5)]
    assert [part.logit for part in largest(found, 1.0, 2)] == [-3.0, 2.5]
    assert len(largest(found, 1.0, None)) == 3
