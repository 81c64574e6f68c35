"""Why an atom is answered as it is: the parts of an explanation, put together."""

import numpy as np
import pytest

from r2n.data.problem import Problem
from r2n.explanation.explain import Wanted, explain
from r2n.explanation.neighbourhood import Changes, Scene
from tests.unit.explanation.small_subject import code, codes, subject


def test_the_parts_fit_each_other(toy: Problem) -> None:
    told = subject(toy, "model.layers=2", "model.evidence_input=add")
    asked = code(told, "liesIn(n5, south)")
    found = explain(told, asked, Wanted(depth=2, top=2, against=code(told, "liesIn(n5, north)")))
    assert found.atom == "liesIn(n5, south)"
    assert found.belief.logit == pytest.approx(told.logits(np.array([asked]))[0])
    assert [layer.layer for layer in found.layers] == [0, 1, 2]
    assert found.layers[-1].logit == pytest.approx(found.belief.logit, abs=1e-6)
    assert len(found.reasons) == 2
    assert found.fidelity is not None
    assert (found.fidelity.listed, found.fidelity.ground_rules) == (2, 4)
    assert found.contrast is not None
    difference = told.logits(codes(told, "liesIn(n5, south)", "liesIn(n5, north)"))
    assert found.contrast.difference == pytest.approx(difference[0] - difference[1])
    assert len(found.contrast.reasons) == 2
    assert {other.kind for other in found.counterfactuals} >= {"not known", "without rule"}


def test_all_ground_rules_carry_all_of_the_answer(toy: Problem) -> None:
    told = subject(toy)
    found = explain(told, code(told, "liesIn(n5, north)"), Wanted(top=None))
    assert found.fidelity is not None
    assert found.fidelity.sufficiency == pytest.approx(1.0)
    assert found.fidelity.necessity == pytest.approx(1.0)
    scene = Scene.around(told.members, codes(told, "liesIn(n5, north)"))
    numbers = scene.ground_rules_of(0)
    none = scene.changed(Changes.leaving_out(np.stack([np.zeros_like(numbers), numbers], axis=1), 1))
    assert found.fidelity.none == pytest.approx(none[0, 0])


@pytest.mark.parametrize(
    ("changes", "atom", "note"),
    [
        ((), "liesIn(n1, north)", "it is known to be true"),
        ((), "near(n1, s1)", "it is no fact of a closed predicate"),
        ((), "liesIn(n5, north)", "does not read facts"),
        (("model.reasoner=none",), "liesIn(n5, north)", "has no reasoning layer"),
        (("grounding.strategy=known-body",), "near(n1, s1)", "no ground rule holds it"),
    ],
)
def test_what_a_person_should_know_is_noted(toy: Problem, changes: tuple[str, ...], atom: str, note: str) -> None:
    told = subject(toy, *changes)
    found = explain(told, code(told, atom), Wanted())
    assert any(note in text for text in found.notes)


def test_without_depth_the_answer_is_told_alone(toy: Problem) -> None:
    told = subject(toy)
    found = explain(told, code(told, "liesIn(n5, north)"), Wanted(depth=0))
    assert found.reasons == ()
    assert found.layers
