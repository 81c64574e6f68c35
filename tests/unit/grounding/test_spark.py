"""Spark as an engine: where it runs and what is missing for it, tables, queries, and errors in our own words."""

import socket
from pathlib import Path

import numpy as np
import pytest

from r2n.errors import ConfigError, DataError
from r2n.grounding.spark import FEW_ROWS, SETTINGS, SparkEngine, check_java, is_spark
from r2n.grounding.store import Engine
from tests.spark_problem import spark_engine


def test_names_of_spark() -> None:
    for name in ("spark", "local", "local[2]", "local[*]", "spark://a:7077", "sc://b", "yarn", "k8s://c"):
        assert is_spark(name)
    for name in ("", "duckdb", "spark:/", "sc:", "http://a", "local[", "sparks"):
        assert not is_spark(name)
    with pytest.raises(ConfigError, match=r"is no master of Spark|Python package is not installed"):
        _ = SparkEngine("sparks").session


def test_without_java_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="Spark needs Java, and there is none here") as caught:
        check_java()
    assert "apt-get install openjdk-17-jre-headless" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("says", "what"),
    [
        ("echo 'openjdk version \"1.8.0_392\"' >&2", "Java 17 or later, and .* is 8"),
        ("echo 'openjdk version \"11.0.2\"' >&2", "Java 17 or later, and .* is 11"),
        ("echo hello >&2", "of an unknown version"),
        ("exit 3", "does not run"),
    ],
)
def test_a_java_that_will_not_do_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, says: str, what: str
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\n{says}\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ConfigError, match=what):
        check_java()


def test_it_is_an_engine() -> None:
    assert isinstance(SparkEngine(), Engine)


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["spark", "sc"])
def test_a_master_that_does_not_answer_is_refused_at_once(kind: str) -> None:
    spark_engine()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ConfigError, match="no Spark answers at") as caught:
        _ = SparkEngine(f"{kind}://127.0.0.1:{port}").session
    assert "--engine spark works in this machine" in str(caught.value.hint)


@pytest.mark.spark
def test_there_is_one_session_and_it_listens_to_this_machine_alone() -> None:
    session = spark_engine().session
    assert SparkEngine("local[2]").session is SparkEngine().session is session
    assert SETTINGS["spark.sql.adaptive.enabled"] == "true"
    assert session.conf.get("spark.sql.adaptive.enabled") == "false", "a caller's settings are over ours"
    assert session.conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert session.conf.get("spark.ui.enabled") == "false"


@pytest.mark.spark
@pytest.mark.parametrize("size", [0, 1, FEW_ROWS + 1])
def test_tables_are_held_and_replaced(size: int) -> None:
    engine = spark_engine()
    engine.load("held", {"a": np.arange(3), "b": np.arange(3)})
    engine.load("held", {"a": np.arange(size), "b": -np.arange(size)})
    found = engine.run("SELECT a, b, a + b AS c FROM held ORDER BY a")
    assert found["a"].tolist() == list(range(size))
    assert not found["c"].any()
    assert found["a"].dtype == np.int64


@pytest.mark.spark
def test_errors() -> None:
    engine = spark_engine()
    with pytest.raises(DataError, match=r"Spark finds no such table: .*`nowhere`"):
        engine.run("SELECT a FROM nowhere")
    with pytest.raises(ConfigError, match=r"Spark refuses it: .*OVERFLOW"):
        engine.run(f"SELECT {2**62}L * id AS n FROM range(4)")
