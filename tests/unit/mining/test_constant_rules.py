"""Rules with constants: the search in parts finds what it finds at once (counts: see test_mine)."""

from time import monotonic

import numpy as np
import pytest

import r2n.mining.constant_rules as module
from r2n.mining.constant_rules import mine_constant_rules
from r2n.mining.ends import Ends
from r2n.mining.search import Clock, Thresholds
from r2n.mining.step_graph import StepGraph
from tests.mining_problems import knowledge_of, random_knowledge

THRESHOLDS = Thresholds(1, 0.0, 10**6)
QUIET = Clock(lambda *_: None)


def test_parts_find_what_the_whole_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = Ends.of(StepGraph.of(random_knowledge(4, 0.4)), 1)
    (whole,) = mine_constant_rules(ends, THRESHOLDS, QUIET).found
    monkeypatch.setattr(module, "MOST_MEETINGS", 40)
    told: list[tuple[int, int]] = []
    search = mine_constant_rules(ends, THRESHOLDS, Clock(lambda *parts: told.append(parts)))
    (parts,) = search.found
    assert len(told) == search.parts > 1
    for name in ("head", "body", "support", "body_pairs", "pca_pairs"):
        assert np.array_equal(getattr(whole, name), getattr(parts, name))


def test_nothing_is_found_among_too_few_and_in_no_time() -> None:
    theory = "domain d = {a, b}\npredicate p(d, d)\n"
    graph = StepGraph.of(knowledge_of(theory, {"p": np.array([[0, 1]])}))
    assert mine_constant_rules(Ends.of(graph, 2), THRESHOLDS, QUIET).found == ()
    over = mine_constant_rules(Ends.of(graph, 1), THRESHOLDS, Clock(lambda *_: None, monotonic() - 1))
    assert (over.found, over.parts_done) == ((), 0)
