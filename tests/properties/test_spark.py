"""Arrays, DuckDB and Spark give the same ground rules: random theories, and WN18RR."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r2n.data.herbrand import Codes
from r2n.data.knowledge_base import KnowledgeBase
from r2n.datasets.benchmarks import load
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.full import FullGrounder, KnownBodyGrounder
from r2n.grounding.ground_rules import Grounder
from r2n.grounding.spark import SparkEngine
from r2n.grounding.store import DuckDBEngine, Store
from tests.spark_problem import adaptive, spark_engine
from tests.strategies import Asked, asked_worlds, codes_of, knowledge_of

pytestmark = pytest.mark.spark
R2N_DATA = os.environ.get("R2N_DATA")
WITH_WN18RR = pytest.mark.skipif(
    R2N_DATA is None or not (Path(R2N_DATA) / "wn18rr").is_dir(), reason="WN18RR is not here: set R2N_DATA"
)
FIFTY = settings(max_examples=50)  # in every profile: so many are promised


def alike(knowledge: KnowledgeBase, spark: SparkEngine, grounders: list[Grounder], asked: Codes | None) -> list[int]:
    """For each strategy the number of ground rules, which are the same by arrays, by DuckDB and by Spark."""
    stores = [Store(knowledge, engine) for engine in (None, DuckDBEngine(takes_all=True), spark)]
    sizes = []
    for grounder in grounders:
        found = [grounder.ground(store, asked).ground_rules for store in stores]
        for arrays, *others in zip(*found, strict=True):
            for other in others:
                assert np.array_equal(other.atoms, arrays.atoms), (grounder, arrays.rule)
        sizes.append(sum(map(len, found[0])))
    return sizes


@FIFTY
@given(asked_worlds(), st.integers(0, 2), st.integers(1, 2))
def test_on_random_theories(asks: Asked, width: int, depth: int) -> None:
    world, named = asks
    knowledge = knowledge_of(world)
    asked = np.unique(codes_of(knowledge.base, knowledge.language, named))
    alike(knowledge, spark_engine(), [FullGrounder(), KnownBodyGrounder(), BackwardGrounder(width, depth)], asked)


@WITH_WN18RR
@pytest.mark.slow
def test_on_all_rules_of_wn18rr() -> None:
    with adaptive() as engine:
        assert alike(load("wn18rr").knowledge, engine, [KnownBodyGrounder()], None) == [676_649]


@WITH_WN18RR
@pytest.mark.slow
def test_around_queries_of_wn18rr() -> None:
    problem = load("wn18rr")
    assert alike(problem.knowledge, spark_engine(), [BackwardGrounder(1, 2)], problem.test.atoms[:20])[0] > 100
