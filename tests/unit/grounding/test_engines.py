"""The embedded engine."""

import numpy as np
import pytest
from sqlglot import exp, parse_one

from r2n.errors import MemoryLimitError
from r2n.grounding.engines import DuckDBEngine, Engine


def test_what_does_not_fit_is_spilled_or_else_refused() -> None:
    """A join of a billion rows to be sorted, under the least memory; a sum of them needs none."""
    engine = DuckDBEngine(memory=1)
    engine.load("t", {"a": np.arange(3000)})
    assert engine.run(parse_one("SELECT current_setting('memory_limit') AS m", into=exp.Select))["m"].tolist() == [
        "61.0 MiB"
    ]
    count = parse_one("SELECT count(*) AS n FROM t AS x, t AS y", into=exp.Select)
    assert engine.run(count)["n"].tolist() == [9_000_000]
    kept = parse_one("SELECT list(x.a + y.a) AS n FROM t AS x, t AS y, t AS z", into=exp.Select)
    with pytest.raises(MemoryLimitError, match=r"more memory than the database may take.*\n  ground less"):
        engine.run(kept)


def test_tables_are_held_replaced_and_asked() -> None:
    engine = DuckDBEngine()
    assert isinstance(engine, Engine)
    query = exp.select("a").from_("t").order_by("a")
    engine.load("t", {"a": np.array([2, 1])})
    assert engine.run(query)["a"].tolist() == [1, 2]
    engine.load("t", {"a": np.zeros(0, np.int64)})
    assert engine.run(query)["a"].tolist() == []
