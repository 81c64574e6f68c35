"""Arrays, DuckDB and Spark give the same ground rules, for every strategy on random theories, and on WN18RR."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2n.datasets.benchmarks import load
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.engines import DuckDBEngine
from r2n.grounding.full import FullGrounder
from r2n.grounding.ground_rules import Grounder
from r2n.grounding.known_body import KnownBodyGrounder
from r2n.grounding.store import Store
from r2n.knowledge.knowledge_base import KnowledgeBase
from tests.examples import at_most
from tests.spark_place import spark_engine
from tests.strategies import Asked, asked_worlds, codes_of, knowledge_of

pytestmark = pytest.mark.spark
R2N_DATA = os.environ.get("R2N_DATA")
FIFTY = at_most(50, "each query is a job of Spark")


def grounded(knowledge: KnowledgeBase, store: Store, grounder: Grounder, asked: np.ndarray) -> list[list[list[int]]]:
    return [part.atoms.tolist() for part in grounder.ground(store, asked).ground_rules]


@FIFTY
@given(asked_worlds(), st.integers(0, 2), st.integers(1, 2), st.integers(0, 1), st.booleans())
def test_engines_find_the_same(asks: Asked, width: int, depth: int, last_width: int, prune: bool) -> None:
    world, named = asks
    knowledge = knowledge_of(world)
    asked = np.unique(codes_of(knowledge.base, knowledge.language, named))
    stores = [Store(knowledge), Store(knowledge, DuckDBEngine(takes_all=True)), Store(knowledge, spark_engine())]
    for grounder in (FullGrounder(), KnownBodyGrounder(), BackwardGrounder(width, depth, last_width, prune)):
        arrays, duckdb, spark = (grounded(knowledge, store, grounder, asked) for store in stores)
        assert duckdb == arrays
        assert spark == arrays


@pytest.mark.skipif(
    R2N_DATA is None or not (Path(R2N_DATA) / "wn18rr").is_dir(), reason="WN18RR is not here: set R2N_DATA"
)
def test_all_rules_of_wn18rr() -> None:
    knowledge = load("wn18rr").knowledge
    engines = (None, DuckDBEngine(takes_all=True), spark_engine())
    arrays, duckdb, spark = (
        [part.atoms for part in KnownBodyGrounder().ground(Store(knowledge, engine)).ground_rules] for engine in engines
    )
    assert sum(map(len, arrays)) == 676_649
    for one, other, another in zip(arrays, duckdb, spark, strict=True):
        assert np.array_equal(one, other)
        assert np.array_equal(one, another)
