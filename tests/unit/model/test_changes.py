"""A model with other facts."""

import pytest

from r2n.errors import DataError
from r2n.model.model import Model
from r2n.model.run import Run

NAMES = ("more", "fewer", "new")


def test_facts_go_before_others_come(toy_run: Run) -> None:
    model = Model.from_run(toy_run)
    changed = model.with_changes(["!liesIn(n0, north)"], ["liesIn(n0, north)"], {"town": ["n9"]})
    assert changed.predict("liesIn(n0, north)")[0].known is False
    assert changed.changed.new_constants == ("n9",)
    assert model.with_changes() is model


def test_errors_name_what_was_given(toy_run: Run) -> None:
    model = Model.from_run(toy_run)
    with pytest.raises(DataError) as caught:
        model.with_changes(["!liesIn(n0, north)"], names=NAMES)
    assert str(caught.value.where) == 'more "!liesIn(n0, north)"'
    with pytest.raises(DataError, match="new: constants are given for domain 'city'"):
        model.with_changes(domains={"city": ["n9"]}, names=NAMES)
