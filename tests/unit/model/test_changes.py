"""A predictor that is told otherwise."""

import pytest

from r2n.errors import DataError
from r2n.model.model import Model, Named, told_otherwise
from r2n.model.run import Run

NAMED = Named("more", "fewer", "new")


def test_facts_go_before_others_come(toy_run: Run) -> None:
    predictor = Model.from_run(toy_run)
    told = told_otherwise(predictor, ["!liesIn(n0, north)"], ["liesIn(n0, north)"], {"town": ["n9"]}, NAMED)
    assert told.predict("liesIn(n0, north)")[0].known is False
    assert told.changed.new_constants == ("n9",)
    assert told_otherwise(predictor, [], [], {}, NAMED) is predictor


def test_errors_name_what_was_given(toy_run: Run) -> None:
    predictor = Model.from_run(toy_run)
    with pytest.raises(DataError) as caught:
        told_otherwise(predictor, ["!liesIn(n0, north)"], [], {}, NAMED)
    assert str(caught.value.where) == 'more "!liesIn(n0, north)"'
    with pytest.raises(DataError, match="new: constants are given for domain 'city'"):
        told_otherwise(predictor, [], [], {"city": ["n9"]}, NAMED)
