"""Strategies by name, full and known-body grounding by hand, their sizes, and what they reach."""

from dataclasses import fields

import numpy as np
import pytest

import r2n
from r2n.components import strategies as registered
from r2n.data.candidates import Candidates
from r2n.datasets.benchmarks import load
from r2n.errors import ConfigError, GroundingError
from r2n.grounding import store as stores
from r2n.grounding import strategies
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.full import FullGrounder, KnownBodyGrounder
from r2n.grounding.ground_rules import Grounder, Grounding
from r2n.grounding.store import Engine, Store
from r2n.grounding.strategies import (
    GROUNDERS,
    Size,
    expected_size,
    make_engine,
    make_grounder,
    mean_neighbourhood,
    reached_by,
)
from r2n.options import GroundingOptions
from tests.candidate_problem import things_problem
from tests.unit.grounding.small_knowledge import codes, knowledge, named

_FULL = FullGrounder()


def ground(kb: r2n.KnowledgeBase, grounder: Grounder = _FULL) -> Grounding:
    return grounder.ground(Store(kb))


@pytest.mark.parametrize("strategy", list(GROUNDERS))
def test_every_strategy_is_made_with_its_budget(strategy: str) -> None:
    grounder = make_grounder(GroundingOptions.model_validate({"strategy": strategy, "max_groundings": 7}))
    assert isinstance(grounder, GROUNDERS[strategy])
    assert grounder.max_groundings == 7  # pyright: ignore[reportAttributeAccessIssue]


def test_the_options_name_the_registered_strategies_and_their_fields() -> None:
    assert list(registered) == [*GROUNDERS, "paths"]
    with pytest.raises(ConfigError, match="not listed"):
        make_grounder(GroundingOptions(strategy="paths"))
    for grounder in GROUNDERS.values():
        assert {field.name for field in fields(grounder)} <= set(GroundingOptions.model_fields)
        assert isinstance(grounder(), Grounder)
    options = GroundingOptions(strategy="backward", width=2, depth=4)
    assert make_grounder(options) == BackwardGrounder(2, 4)


def test_engines_are_made_by_name_and_an_unknown_one_is_named_with_those_there_are() -> None:
    assert all(isinstance(make_engine(name), Engine) for name in ("duckdb", "spark"))
    with pytest.raises(ConfigError, match=r"there is no engine 'oracle'(.|\n)*duckdb"):
        make_engine("oracle")


def test_a_rule_without_conditions_is_a_box() -> None:
    kb = knowledge("rule r: smokes(x) -> takes(x, y)\n")
    grounding = ground(kb)
    assert named(kb, grounding) == [[f"smokes({p}) takes({p}, tea)" for p in ("ann", "bob", "cy")]]
    assert grounding.ground_rules[0].shape == (3, 1)
    closed = ground(knowledge("rule r: knows(x, y) -> smokes(y)\n", "knows(ann,bob)")).ground_rules[0]
    assert (len(closed), closed.shape) == (1, None), "a closed body atom is a condition"


def test_rules_that_share_a_body_are_both_ground() -> None:
    rules = "rule r: smokes(x) & knows(x, y) -> smokes(y)\nrule s: smokes(a) & knows(a, b) -> takes(b, c)\n"
    rules += "rule t: smokes(a) & knows(a, b) -> takes(a, c)\nrule u: smokes(a) & knows(b, a) -> takes(a, c)\n"
    kb = knowledge(rules, "smokes(ann) knows(ann,bob)")
    assert [len(part) for part in ground(kb, KnownBodyGrounder()).ground_rules] == [1, 1, 1, 0]
    assert named(kb, ground(kb, KnownBodyGrounder()))[1][0].endswith("takes(bob, tea)")
    assert named(kb, ground(kb, KnownBodyGrounder()))[2][0].endswith("takes(ann, tea)")


@pytest.mark.parametrize("guarded", [0, 1])
def test_rules_that_share_a_body_but_not_its_guards_are_ground_apart(guarded: int) -> None:
    rules = ["rule {}: smokes(x) & knows(x, y) -> smokes(y)"] * 2
    rules[guarded] += ", x != y"
    text = "".join(f"{rule.format(name)}\n" for name, rule in zip("rs", rules, strict=True))
    kb = knowledge(text, "smokes(ann) knows(ann,ann) knows(ann,bob)")
    found = named(kb, ground(kb, KnownBodyGrounder()))
    assert found[guarded] == ["smokes(ann) knows(ann, bob) smokes(bob)"]
    assert found[1 - guarded] == ["smokes(ann) knows(ann, ann) smokes(ann)", *found[guarded]]


def test_a_rule_without_body_is_ground_fully() -> None:
    kb = knowledge("rule r: smokes(x) | takes(x, y)\nimplicit i: [smokes(x), smokes(y)]\n", "smokes(ann)")
    assert [len(part) for part in ground(kb, KnownBodyGrounder()).ground_rules] == [3, 9]


CUBE = "rule r: smokes(x) & smokes(y) & smokes(z) -> knows(x, z)\n"


@pytest.fixture(params=[False, True], ids=["in memory", "by a database"])
def by_database(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if request.param:
        monkeypatch.setattr(stores, "MOST_ROWS", -1)
    return request.param


@pytest.mark.usefixtures("by_database")
def test_the_budget_counts_before_it_refuses() -> None:
    kb = knowledge(CUBE, "smokes(ann) smokes(bob) smokes(cy)")
    assert len(KnownBodyGrounder(27).ground(Store(kb))) == 27
    with pytest.raises(GroundingError, match="has 27 groundings, more than max_groundings = 26"):
        KnownBodyGrounder(26).ground(Store(kb))


def test_an_estimate_that_is_too_low_is_caught_by_the_limit(by_database: bool) -> None:
    theory = "domain d = {a, b, c, e, f}\npredicate p(d, d)\npredicate q(d, d)\n"
    skewed = "p(a,a) p(b,a) p(c,a) p(e,b) p(f,c) q(a,a) q(a,b) q(a,c) q(b,e) q(c,f)"
    kb = knowledge("rule r: p(x, y) & q(y, z) -> p(x, z)\n", skewed, theory=theory)
    part = ground(kb, KnownBodyGrounder()).ground_rules[0]
    assert len(part) == 11
    with pytest.raises(GroundingError, match="has about 8 groundings" if by_database else "has 11 groundings"):
        KnownBodyGrounder(0).ground(Store(kb))
    with pytest.raises(GroundingError, match="more than max_groundings"):
        KnownBodyGrounder(len(part) - 1).ground(Store(kb))


CHAIN = knowledge("rule r: smokes(x) & knows(x, y) -> smokes(y)\n", "knows(ann,bob) knows(bob,cy)")
GROUNDING = FullGrounder().ground(Store(CHAIN))


def test_steps_lead_from_ground_rule_to_ground_rule() -> None:
    ann = codes(CHAIN, "smokes(ann)")
    assert reached_by(GROUNDING, ann).ground_rules[0] is GROUNDING.ground_rules[0], "nothing to leave out"
    kb = knowledge("rule r: smokes(x) & knows(x, y) -> smokes(y)\n", "knows(ann,ann) knows(bob,cy)")
    grounding = FullGrounder().ground(Store(kb))
    assert named(kb, reached_by(grounding, codes(kb, "smokes(cy)"))) == [["smokes(bob) knows(bob, cy) smokes(cy)"]]
    assert named(kb, reached_by(grounding, codes(kb))) == [[]]


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
