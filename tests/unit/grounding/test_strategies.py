"""Names become objects."""

import pytest

from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.strategies import GROUNDERS, make_grounder
from r2n.knowledge.problem_file import GroundingOptions


@pytest.mark.parametrize("strategy", list(GROUNDERS))
def test_every_strategy_is_made_with_its_budget(strategy: str) -> None:
    grounder = make_grounder(GroundingOptions.model_validate({"strategy": strategy, "max_groundings": 7}))
    assert isinstance(grounder, GROUNDERS[strategy])
    assert grounder.max_groundings == 7  # pyright: ignore[reportAttributeAccessIssue]


def test_backward_takes_all_its_options() -> None:
    options = GroundingOptions(strategy="backward", width=2, depth=4, last_width=1, prune=False)
    assert make_grounder(options) == BackwardGrounder(2, 4, 1, False)
