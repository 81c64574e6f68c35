"""The first reason of an answer is the fact that carries it, at any probability."""

import numpy as np
import pytest

import r2n
from r2n.model.model import Model
from tests.carried_answers import carried_answers

SHARE = 0.95


def first_reasons(model: Model, carriers: dict[str, str], answers: int) -> tuple[float, list[float]]:
    """The share of answers whose first reason is the fact that carries them, and their probabilities."""
    right, probabilities = list[bool](), list[float]()
    asked = model.problem.knowledge.base.names(model.problem.test.atoms)[:answers]
    for answer in asked:
        found = model.explain(answer)
        effects = [reason.effect for reason in found.reasons]
        speaks_for = [effect > 0 for effect in effects]
        assert speaks_for == sorted(speaks_for, reverse=True)
        assert effects[: sum(speaks_for)] == sorted(effects[: sum(speaks_for)], reverse=True)
        first = {member.atom for member in found.reasons[0].because} if found.reasons else set()
        right.append(carriers[answer] in first)
        probabilities.append(found.belief.probability)
    assert len(right) == answers
    return float(np.mean(right)), probabilities


@pytest.mark.parametrize("holds", [0.9, 0.3])
@pytest.mark.parametrize("answers", [12, pytest.param(150, marks=pytest.mark.slow)])
def test_the_first_reason_of_a_ranking_answer_is_the_fact_that_carries_it(holds: float, answers: int) -> None:
    made = carried_answers(max(120, 2 * answers), holds=holds)
    model = r2n.train(made.problem, options=["training.epochs=10"])
    share, probabilities = first_reasons(model, made.carriers, answers)
    assert share >= SHARE, (share, probabilities)
