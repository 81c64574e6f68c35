"""Asking a predictor why: what it takes, and what it refuses."""

import pytest

from r2n.data.problem import Problem
from r2n.errors import R2NError
from r2n.model.model import Model
from r2n.model.run import Run
from tests.unit.explanation.small_subject import predictor_of


@pytest.fixture(scope="module")
def predictor(toy_run: Run) -> Model:
    return Model.from_run(toy_run)


def test_a_trained_network_lies_where_its_neighbours_lie(predictor: Model) -> None:
    found = predictor.explain("liesIn(n5, north)")
    assert found.belief.probability > 0.5
    assert "near(" in found.reasons[0].ground_rule
    assert found.reasons[0].effect > 0
    assert found.to_dict()["atom"] == "liesIn(n5, north)"


@pytest.mark.parametrize(
    ("atom", "options", "message"),
    [
        ("liesIn(n5, ?)", {}, "asks for 2 atoms, and one is explained at a time"),
        ("liesin(n5, north)", {}, "unknown predicate"),
        ("liesIn(n5, mars)", {}, "mars"),
        ("liesIn(north, n5)", {}, "outside domain"),
        ("liesIn(n5", {}, "is no question"),
        ("liesIn(n5, north)", {"depth": -1}, "depth is 0 or more"),
        ("liesIn(n5, north)", {"top": 0}, "top is 1 or more"),
        ("liesIn(n5, north)", {"against": "liesIn(n5, north)"}, "compared to itself"),
    ],
)
def test_what_cannot_be_explained_is_refused(predictor: Model, atom: str, options: dict, message: str) -> None:
    with pytest.raises(R2NError, match=message):
        predictor.explain(atom, **options)


def test_a_constant_that_nothing_is_known_of_is_refused_as_in_a_question(toy: Problem) -> None:
    predictor = predictor_of(toy).with_facts([], domains={"town": ["n99"]})
    with pytest.raises(R2NError, match="cannot be answered"):
        predictor.explain("liesIn(n99, north)")
