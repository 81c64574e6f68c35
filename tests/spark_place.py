"""One Spark for the whole test session: two threads of this machine, for tables of a few rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pytest

from r2n.data.spark_session import SparkPlace
from r2n.grounding.spark_engine import SparkEngine

ADAPTIVE = "spark.sql.adaptive.enabled"
SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.codegen.wholeStage": "false",  # to compile a query takes longer than to answer it
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # nor does Java's own compiler pay
    ADAPTIVE: "false",  # to plan a query again after each step takes longer than the steps
}


@cache
def spark_place() -> SparkPlace:
    """Where the tests' Spark runs."""
    pytest.importorskip("pyspark", reason="Spark is not installed: make test-spark")
    return SparkPlace("local[2]", 2 * 10**9, SETTINGS)


@cache
def spark_engine() -> SparkEngine:
    """The tests' Spark as an engine."""
    return SparkEngine(spark_place())


@contextmanager
def adaptive() -> Iterator[SparkEngine]:
    """The tests' Spark while it plans as it does for users."""
    engine = spark_engine()
    engine.session.conf.set(ADAPTIVE, "true")
    try:
        yield engine
    finally:
        engine.session.conf.set(ADAPTIVE, "false")
