"""The plans of a strategy's queries."""

from pathlib import Path

import pytest

from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.cache import KeptGrounder
from r2n.grounding.full import FullGrounder
from r2n.grounding.ground_rules import Grounder
from r2n.grounding.known_body import KnownBodyGrounder
from r2n.grounding.store import Store
from r2n.grounding.strategies import plans
from tests.unit.grounding.small_knowledge import codes, knowledge

KB = knowledge(
    "rule r: smokes(x) & knows(x, y) -> smokes(y)\nrule free: smokes(x) | takes(x, d)\n",
    "smokes(ann) knows(ann,bob) knows(bob,cy)",
)


@pytest.mark.parametrize(
    ("grounder", "words"),
    [
        (FullGrounder(), ["fact_1", "no query"]),
        (KnownBodyGrounder(), ["HASH_JOIN", "no query"]),
        (KeptGrounder(KnownBodyGrounder(), Path("kept")), ["HASH_JOIN", "no query"]),
        (BackwardGrounder(), ["JOIN", "JOIN", "asked_0"]),
    ],
)
def test_each_query_has_its_plan(grounder: Grounder, words: list[str]) -> None:
    found = list(plans(Store(KB), grounder, codes(KB, "smokes(cy)")))
    assert len(found) == len(words)
    for (_, plan), word in zip(found, words, strict=True):
        assert word in plan
