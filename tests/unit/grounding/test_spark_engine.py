"""Spark as an engine: tables, queries, plans, and errors in our own words."""

import numpy as np
import pytest
import sqlglot
from sqlglot import exp

from r2n.errors import ConfigError, DataError
from r2n.grounding.engines import Engine
from r2n.grounding.spark_engine import FEW_ROWS, MOST_LIMIT, SparkEngine, spark_sql
from tests.spark_place import adaptive, spark_engine


def query(sql: str) -> exp.Query:
    found = sqlglot.parse_one(sql, dialect="duckdb")
    assert isinstance(found, exp.Query)
    return found


def test_it_is_an_engine_that_starts_nothing_before_it_is_asked() -> None:
    assert isinstance(SparkEngine(), Engine)
    assert SparkEngine.takes_all


def test_a_limit_that_spark_cannot_count_is_left_out() -> None:
    assert "LIMIT" not in spark_sql(query(f"SELECT a FROM t LIMIT {MOST_LIMIT + 1}"))
    assert "LIMIT 7" in spark_sql(query("SELECT a FROM t LIMIT 7"))


@pytest.mark.spark
@pytest.mark.parametrize("size", [0, 1, FEW_ROWS + 1])
def test_tables_are_held_and_replaced(size: int) -> None:
    engine = spark_engine()
    engine.load("held", {"a": np.arange(3), "b": np.arange(3)})
    engine.load("held", {"a": np.arange(size), "b": -np.arange(size)})
    found = engine.run(query("SELECT a, b, a + b AS c FROM held ORDER BY a"))
    assert found["a"].tolist() == list(range(size))
    assert not found["c"].any()
    assert found["a"].dtype == np.int64


@pytest.mark.spark
def test_a_plan_is_shown() -> None:
    with adaptive() as engine:
        engine.load("held", {"a": np.arange(3)})
        plan = engine.explain(query("SELECT x.a FROM held AS x CROSS JOIN held AS y WHERE x.a = y.a"))
    assert "AdaptiveSparkPlan" in plan
    assert "Join" in plan


@pytest.mark.spark
def test_a_table_that_is_missing_is_named() -> None:
    with pytest.raises(DataError, match=r"Spark finds no such table: .*`nowhere`"):
        spark_engine().run(query("SELECT a FROM nowhere"))


@pytest.mark.spark
def test_numbers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"Spark refuses it: .*OVERFLOW"):
        spark_engine().ask(f"SELECT {2**62}L * id AS n FROM range(4)")
