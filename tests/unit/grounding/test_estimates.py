"""How many ground rules a rule would have, against those that it has."""

import numpy as np
import pytest

from r2n.data.candidates import Candidates
from r2n.datasets.benchmarks import load
from r2n.grounding import strategies
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.store import Store
from r2n.grounding.strategies import Size, expected_size, make_grounder, mean_neighbourhood
from r2n.options import GroundingOptions
from tests.candidate_problem import things_problem

LABELS = {("red_car", "red_bus"): True, ("red_bus", "tram"): False, ("red_bus", "blue_bus"): True}
ASKED = {("red_car", "blue_bus"): True, ("tram", "old_tram"): False}


@pytest.mark.parametrize("strategy", ["full", "known-body"])
@pytest.mark.parametrize("candidates", [True, False])
def test_the_size_is_that_of_the_grounding(strategy: str, candidates: bool) -> None:
    found = things_problem(LABELS, ASKED, Candidates()) if candidates else load("countries-s3")
    store, grounder = Store(found.knowledge), make_grounder(GroundingOptions.model_validate({"strategy": strategy}))
    for part in grounder.ground(store).ground_rules:
        size = expected_size(store, part.rule, strategy)
        assert size == Size(len(part), exact=True)
        assert size.is_zero == (len(part) == 0)


def test_a_large_join_is_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(things_problem(LABELS, ASKED, Candidates()).knowledge)
    rule = store.theory.rules[0]
    monkeypatch.setattr(strategies, "MOST_ROWS", 0)
    size = expected_size(store, rule, "known-body")
    assert not size.exact
    assert str(size) == f"about {size.count:,}"
    assert not size.is_zero


def test_the_mean_neighbourhood_is_that_of_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    found, grounder = load("countries-s3"), BackwardGrounder()
    store, sample = Store(found.knowledge), found.atoms[::50]
    members = grounder.neighbourhoods(store, sample).members
    mean = mean_neighbourhood(store, grounder, sample)
    assert mean is not None
    np.testing.assert_allclose(mean * len(sample), [len(pairs) for pairs in members])
    assert mean.sum() > 0
    assert mean_neighbourhood(store, BackwardGrounder(max_groundings=0), sample) is None
    monkeypatch.setattr(strategies, "MOST_WORK", 0)
    assert mean_neighbourhood(store, grounder, sample) is None
