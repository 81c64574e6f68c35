"""What is known: where Spark runs, from the name of an engine to a session, or to what is missing for one."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from r2n.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


OLDEST_JAVA = 17
SECONDS_TO_ANSWER = 5.0  # of a master: by itself, Spark asks for a minute and more
PORTS = {"spark": 7077, "sc": 15002}
DEFAULT_MEMORY = 2 * 10**9  # bytes of the driver, where all work is done in it
BROADCAST_BYTES = 32 * 2**20  # a table up to this size is sent to every worker

_LOCAL = re.compile(r"local(\[(\*|\d+)\])?")
_REMOTE = re.compile(r"(spark|sc)://(\[[^\]]+\]|[^:/;,]+)(?::(\d+))?([/;,].*)?")
_OTHERS = re.compile(r"yarn|k8s://.+")

SETTINGS = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.skewJoin.enabled": "true",
    "spark.sql.autoBroadcastJoinThreshold": str(BROADCAST_BYTES),
    "spark.sql.ansi.enabled": "true",  # a number that does not fit is an error, never another number
    "spark.sql.caseSensitive": "true",
}


def is_spark(engine: str) -> bool:
    """Whether an engine's name means Spark: `spark`, `local[2]`, `spark://...`, `sc://...`, `yarn`, `k8s://...`."""
    return engine == "spark" or any(form.fullmatch(engine) for form in (_LOCAL, _REMOTE, _OTHERS))


@dataclass(frozen=True, eq=False)
class SparkPlace:
    """Where Spark runs; its session is opened when it is first needed, and is one for the process.

    `memory`: bytes of the driver, where Spark runs in this machine. `settings` are Spark's own, over ours.
    """

    engine: str = "spark"
    memory: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def master(self) -> str:
        """Spark's own name of the place."""
        return "local[*]" if self.engine == "spark" else self.engine

    @property
    def is_here(self) -> bool:
        """Whether all work is done in this machine."""
        return _LOCAL.fullmatch(self.master) is not None

    @cached_property
    def session(self) -> "SparkSession":
        """The session; what is missing for one is told first."""
        with without_warnings():
            try:
                from pyspark.sql import SparkSession
            except ImportError as error:
                raise ConfigError(
                    "Spark's Python package is not installed", hint="install it: pip install 'r2n[spark]'"
                ) from error
            active = SparkSession.getActiveSession()
            if active is not None and self.is_here:
                return active
            _check_answers(self.master)
            if not self.master.startswith("sc://"):
                check_java()
            return self._opened(SparkSession.builder)

    def _opened(self, builder: "SparkSession.Builder") -> "SparkSession":
        remote = self.master.startswith("sc://")
        builder = builder.remote(self.master) if remote else builder.master(self.master)
        for name, value in {**SETTINGS, **({} if remote else self._settings_at_start()), **self.settings}.items():
            builder = builder.config(name, value)
        log = Path(tempfile.gettempdir()) / f"r2n-spark-{os.getpid()}.log"
        try:
            with _errors_to(log):
                return builder.appName("r2n").getOrCreate()
        except Exception as error:  # py4j, gRPC and Spark each have their own
            what = _first_error(log) or _first_line(error)
            raise ConfigError(
                f"Spark does not start at {self.master!r}: {what}", hint=f"what it said itself is in {log}"
            ) from error

    def _settings_at_start(self) -> dict[str, str]:
        """What is settled before a driver starts; here it listens to this machine alone."""
        settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
        settings |= {"spark.driver.maxResultSize": "0", "spark.local.dir": tempfile.gettempdir()}
        settings |= {"spark.sql.warehouse.dir": str(Path(tempfile.gettempdir()) / "r2n-spark-warehouse")}
        settings |= {"spark.driver.memory": f"{(self.memory or DEFAULT_MEMORY) // 2**20}m"}
        if self.is_here:
            settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
            settings |= {"spark.sql.shuffle.partitions": str(4 * (os.cpu_count() or 1))}
        return settings


def _check_answers(master: str) -> None:
    """Refuse a name that is none, and a master that nobody answers for."""
    if not is_spark(master):
        raise ConfigError(
            f"{master!r} is no place where Spark runs",
            hint="there is: spark (this machine), local[N], spark://HOST:PORT, sc://HOST:PORT, yarn, k8s://...",
        )
    remote = _REMOTE.fullmatch(master)
    if remote is None:
        return
    host, port = remote[2].strip("[]"), int(remote[3] or PORTS[remote[1]])
    try:
        socket.create_connection((host, port), SECONDS_TO_ANSWER).close()
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"no Spark answers at {master!r}: {getattr(error, 'strerror', None) or error}",
            hint="check host and port, and that it is running; --engine spark works in this machine",
        ) from error


def check_java() -> None:
    """Refuse to go on without a Java that Spark runs on."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    hint = (
        f"install Java {OLDEST_JAVA} or later (Debian, Ubuntu: apt-get install openjdk-17-jre-headless), or let"
        " JAVA_HOME name its folder; --engine duckdb needs none"
    )
    if java is None:
        raise ConfigError("Spark needs Java, and there is none here", hint=hint)
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=True, timeout=60).stderr
    except (OSError, subprocess.SubprocessError) as error:
        raise ConfigError(f"Spark needs Java, and {java} does not run: {_first_line(error)}", hint=hint) from error
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    if found is None or int(found[1]) < OLDEST_JAVA:
        version = found[1] if found else "of an unknown version"
        raise ConfigError(f"Spark needs Java {OLDEST_JAVA} or later, and {java} is {version}", hint=hint)


def _first_error(log: Path) -> str | None:
    """The first error that Spark tells in its log, which is the cause of those behind it."""
    found = re.search(r" ERROR \w+: (.+)", log.read_text("utf-8", "replace"))
    return found[1] if found else None


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


@contextmanager
def without_warnings() -> Iterator[None]:
    """Spark's Python warns of versions of pandas, which is not used here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _errors_to(log: Path) -> Iterator[None]:
    """A process that starts meanwhile writes its errors to a file: Java and Spark have much to say."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
