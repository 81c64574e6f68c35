"""Names become objects."""

import pytest

import r2n
from r2n.errors import ConfigError
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.cache import fingerprint
from r2n.grounding.engines import Engine
from r2n.grounding.strategies import ENGINES, GROUNDERS, make_engine, make_grounder
from r2n.options import GroundingOptions
from tests.unit.grounding.small_knowledge import knowledge


@pytest.mark.parametrize("strategy", list(GROUNDERS))
def test_every_strategy_is_made_with_its_budget(strategy: str) -> None:
    grounder = make_grounder(GroundingOptions.model_validate({"strategy": strategy, "max_groundings": 7}))
    assert isinstance(grounder, GROUNDERS[strategy])
    assert grounder.max_groundings == 7  # pyright: ignore[reportAttributeAccessIssue]


def test_backward_takes_all_its_options() -> None:
    options = GroundingOptions(strategy="backward", width=2, depth=4, last_width=1, prune=False)
    assert make_grounder(options) == BackwardGrounder(2, 4, 1, False)


@pytest.mark.parametrize("name", list(ENGINES))
def test_every_engine_is_made(name: str) -> None:
    assert isinstance(make_engine(name), Engine)


def test_an_unknown_engine_is_named_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"there is no engine 'oracle'(.|\n)*duckdb"):
        make_engine("oracle")


def test_no_engine_is_in_a_fingerprint() -> None:
    kb = knowledge("rule r: smokes(x) -> smokes(y)\n")
    grounder = make_grounder(GroundingOptions(strategy="known-body"))
    before = fingerprint(kb, grounder)
    grounder.ground(r2n.Store(kb, make_engine("duckdb")))
    assert fingerprint(kb, grounder) == before
    assert "ngine" not in repr(grounder)
