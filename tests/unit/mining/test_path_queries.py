"""Paths counted by queries: the same rules with the same counts as by matrices."""

import pytest
from hypothesis import given

from r2n.data.knowledge_base import KnowledgeBase
from r2n.grounding.engines import DuckDBEngine
from r2n.mining.mine import MiningOptions, mine_rules
from r2n.mining.path_queries import PathCounter, mine_paths_by_queries
from r2n.mining.search import Clock, Thresholds
from r2n.mining.step_graph import StepGraph
from tests.examples import at_most
from tests.mining_problems import knowledge_bases, planted_graph
from tests.spark_place import spark_engine

OPTIONS = MiningOptions(max_length=3, min_support=1, min_confidence=0.0, max_rules=10**6)


@at_most(30, "each counts all paths of three steps twice")
@given(knowledge_bases())
def test_rules_and_counts_are_those_of_matrices(knowledge: KnowledgeBase) -> None:
    assert mine_rules(knowledge, OPTIONS, engine=DuckDBEngine()) == mine_rules(knowledge, OPTIONS)


@pytest.mark.spark
def test_spark_counts_the_same() -> None:
    knowledge = planted_graph()
    options = MiningOptions(max_length=2, min_support=2)
    found = mine_rules(knowledge, options, engine=spark_engine())
    assert found == mine_rules(knowledge, options)
    assert len(found.rules) > 10


def test_when_the_time_is_over_nothing_is_counted() -> None:
    counter = PathCounter(DuckDBEngine(), StepGraph.of(planted_graph()))
    search = mine_paths_by_queries(counter, 1, Thresholds(1, 0.0, 1), Clock(lambda *_: None, deadline=0.0))
    assert (search.found, search.parts, search.parts_done) == ((), 1, 0)
