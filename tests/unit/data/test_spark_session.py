"""Where Spark runs, and what is missing for it: told before anything starts."""

import socket
from pathlib import Path

import pytest

from r2n.data.spark_session import SETTINGS, SparkPlace, check_java, is_spark
from r2n.errors import ConfigError
from tests.spark_place import spark_place


@pytest.mark.parametrize(
    "name", ["spark", "local", "local[2]", "local[*]", "spark://a:7077", "sc://b", "yarn", "k8s://c"]
)
def test_places_of_spark(name: str) -> None:
    assert is_spark(name)


@pytest.mark.parametrize("name", ["", "duckdb", "spark:/", "sc:", "http://a", "local[", "sparks"])
def test_what_is_none(name: str) -> None:
    assert not is_spark(name)
    with pytest.raises(ConfigError, match=r"is no place where Spark runs|Python package is not installed"):
        _ = SparkPlace(name).session


def test_without_java_the_way_out_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["spark", "sc"])
def test_a_master_that_does_not_answer_is_told_at_once(kind: str) -> None:
    spark_place()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ConfigError, match="no Spark answers at") as caught:
        _ = SparkPlace(f"{kind}://127.0.0.1:{port}").session
    assert "--engine spark works in this machine" in str(caught.value.hint)


@pytest.mark.spark
def test_there_is_one_session_and_it_listens_to_this_machine_alone() -> None:
    session = spark_place().session
    assert SparkPlace("local[2]").session is session
    assert SparkPlace().session is session
    assert SETTINGS["spark.sql.adaptive.enabled"] == "true"
    assert session.conf.get("spark.sql.adaptive.enabled") == "false", "a caller's settings are over ours"
    assert session.conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert session.conf.get("spark.ui.enabled") == "false"
