"""The embedded engine."""

import numpy as np
from sqlglot import exp

from r2n.grounding.engines import DuckDBEngine, Engine


def test_tables_are_held_replaced_and_asked() -> None:
    engine = DuckDBEngine()
    assert isinstance(engine, Engine)
    query = exp.select("a").from_("t").order_by("a")
    engine.load("t", {"a": np.array([2, 1])})
    assert engine.run(query)["a"].tolist() == [1, 2]
    engine.load("t", {"a": np.zeros(0, np.int64)})
    assert engine.run(query)["a"].tolist() == []
