"""Spark that is not there, or goes away: a message in our own words, and nothing half-written under its name."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from r2n.errors import DataError
from r2n.grounding.full import KnownBodyGrounder
from r2n.grounding.spark import SparkEngine
from tests.spark_problem import ground_by_spark, write_problem

pytestmark = pytest.mark.spark
PROGRAM = [sys.executable, "-m", "r2n", "ground"]
SECONDS = 300


def command(problem: Path, engine: str, out: Path) -> list[str]:
    return [*PROGRAM, str(problem), "--strategy", "known-body", "--engine", engine, "--out", str(out)]


def refused(tmp_path: Path, engine: str, **environment: str) -> str:
    """What is said of a place where there is no Spark; nothing is left behind."""
    write_problem(tmp_path / "problem")
    ended = subprocess.run(
        command(tmp_path / "problem", engine, tmp_path / "out"),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={**os.environ, **environment},
    )
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert [path.name for path in tmp_path.iterdir() if path.name not in ("problem", "bin")] == []
    return ended.stderr


def test_without_java(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    said = refused(tmp_path, "spark", PATH=str(tmp_path / "bin"), JAVA_HOME="")
    assert "Spark needs Java, and there is none here" in said


def test_a_host_that_is_not_there(tmp_path: Path) -> None:
    assert "no Spark answers at 'spark://nowhere.invalid:7077'" in refused(tmp_path, "spark://nowhere.invalid:7077")


@pytest.mark.slow
def test_a_host_that_accepts_and_says_nothing(tmp_path: Path) -> None:
    """Spark itself asks for a minute."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"spark://127.0.0.1:{server.getsockname()[1]}"
        said = refused(tmp_path, place)
    assert (
        f"Spark does not start at '{place}': Application has been killed. Reason: All masters are unresponsive" in said
    )


def test_facts_that_go_away_half_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of facts is deleted when they are to be written as ids."""
    folder, write = write_problem(tmp_path / "problem"), SparkEngine.write

    def forgetful(engine: SparkEngine, sql: str, target: Path) -> None:
        if target.name.startswith("facts"):
            (folder / "train.parquet").unlink(missing_ok=True)
        write(engine, sql, target)

    monkeypatch.setattr(SparkEngine, "write", forgetful)
    with pytest.raises(DataError, match=r"a table that Spark was reading has gone: .*train\.parquet"):
        ground_by_spark(folder, KnownBodyGrounder(), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["problem"]


def java_below(process: int) -> int | None:
    """The process of Java that another has started, if any."""
    for folder in Path("/proc").iterdir():
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if folder.name.isdigit() and int(fields[1]) == process and "java" in (folder / "exe").readlink().name:
                return int(folder.name)
        except OSError:
            continue
    return None


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked for in /proc")
def test_a_spark_that_is_killed_half_way(tmp_path: Path) -> None:
    arguments = command(write_problem(tmp_path / "problem"), "local[2]", tmp_path / "out")
    own = {**os.environ, "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}  # it starts sooner
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=own) as process:
        until = time.monotonic() + SECONDS
        while not list(tmp_path.glob(".out.*.tmp/constants/_SUCCESS")):
            assert time.monotonic() < until
            assert process.poll() is None
            time.sleep(0.01)
        java = java_below(process.pid)
        assert java is not None
        os.kill(java, signal.SIGKILL)
        _, said = process.communicate(timeout=SECONDS)
    assert process.returncode == 2
    assert "Spark has gone away" in said
    assert "Traceback" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["problem"]
