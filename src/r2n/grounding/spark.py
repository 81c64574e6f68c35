"""Spark as an engine: its master, its session, and queries in its dialect."""

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
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from r2n.errors import ConfigError, DataError, MemoryLimitError, R2NError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST_JAVA = 17
SECONDS_TO_ANSWER = 5.0  # of a master: by itself, Spark tries for a minute and more
PORTS = {"spark": 7077, "sc": 15002}
DEFAULT_MEMORY = 2 * 10**9  # bytes of the driver, where all work is done in it
FEW_ROWS = 1_000  # a smaller table is written into the query: no job has to send it

_LOCAL = re.compile(r"local(\[(\*|\d+)\])?")
_REMOTE = re.compile(r"(spark|sc)://(\[[^\]]+\]|[^:/;,]+)(?::(\d+))?([/;,].*)?")
_OTHERS = re.compile(r"yarn|k8s://.+")

SETTINGS = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.skewJoin.enabled": "true",  # a constant in many facts is not left to one worker
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "16m",
    "spark.sql.autoBroadcastJoinThreshold": str(32 * 2**20),  # a table up to this size is sent to every worker
    "spark.sql.ansi.enabled": "true",  # a number that does not fit is an error, never another number
    "spark.sql.caseSensitive": "true",
}
AT_START = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.maxResultSize": "0",
}


def is_spark(engine: str) -> bool:
    """Whether an engine's name means Spark: `spark`, `local[2]`, `spark://...`, `sc://...`, `yarn`, `k8s://...`."""
    return engine == "spark" or any(form.fullmatch(engine) for form in (_LOCAL, _REMOTE, _OTHERS))


@dataclass(eq=False)
class SparkEngine:
    """Tables and queries of the process's Spark session, which is opened at the first use."""

    name: str = "spark"
    memory: int | None = None  # bytes of the driver, if Spark runs on this machine
    settings: Mapping[str, str] = field(default_factory=dict)  # more settings of Spark
    takes_all = True

    @property
    def master(self) -> str:
        """The master, in Spark's notation."""
        return "local[*]" if self.name == "spark" else self.name

    @property
    def is_local(self) -> bool:
        """Whether all work is done on this machine."""
        return _LOCAL.fullmatch(self.master) is not None

    @cached_property
    def session(self) -> "SparkSession":
        """Spark's session; an error names what is missing for one."""
        with warnings.catch_warnings(action="ignore"):  # of versions of pandas, which is not used here
            try:
                from pyspark.sql import SparkSession
            except ImportError as error:
                hint = "install it: pip install 'r2n[spark]'"
                raise ConfigError("Spark's Python package is not installed", hint=hint) from error
            active = SparkSession.getActiveSession()
            if active is not None and self.is_local:
                return active
            _check_master(self.master)
            is_connect, here = self.master.startswith("sc://"), tempfile.gettempdir()
            builder = SparkSession.builder
            builder = builder.remote(self.master) if is_connect else builder.master(self.master)
            settings = dict(SETTINGS)
            if not is_connect:  # settings of a driver that is not running yet
                check_java()
                memory = f"{(self.memory or DEFAULT_MEMORY) // 2**20}m"
                settings |= AT_START | {"spark.local.dir": here, "spark.driver.memory": memory}
                settings |= {"spark.sql.warehouse.dir": str(Path(here) / "r2n-spark-warehouse")}
            if self.is_local:  # it listens to this machine alone
                settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
                settings |= {"spark.sql.shuffle.partitions": str(4 * (os.cpu_count() or 1))}
            for name, value in {**settings, **self.settings}.items():
                builder = builder.config(name, value)
            log = Path(here) / f"r2n-spark-{os.getpid()}.log"
            try:
                with _errors_to(log):
                    return builder.appName("r2n").getOrCreate()
            except Exception as error:  # py4j, gRPC and Spark each have their own
                # the first error in the log is the cause of those behind it
                first = re.search(r" ERROR \w+: (.+)", log.read_text("utf-8", "replace"))
                what = f"Spark does not start at {self.master!r}: {first[1] if first else _first_line(error)}"
                raise ConfigError(what, hint=f"what it said itself is in {log}") from error

    @contextmanager
    def _frame(self, query: str | pa.Table) -> Iterator[Any]:
        """The lazy result of a query in Spark's SQL, or a table; errors of Spark become errors of r2n."""
        session = self.session
        with warnings.catch_warnings(action="ignore"), _errors_of_spark():
            yield session.sql(query) if isinstance(query, str) else session.createDataFrame(query)

    def load(self, name: str, columns: Mapping[str, Any]) -> None:
        """Hold a table under this name, in place of an earlier one."""
        query = table = pa.table(dict(columns))
        if 0 < len(table) <= FEW_ROWS and all(kind == pa.int64() for kind in table.schema.types):
            rows = np.stack(table.columns).T.tolist()
            values = ", ".join(f"({', '.join(f'{number}L' for number in row)})" for row in rows)
            query = f"SELECT * FROM VALUES {values} AS given({', '.join(columns)})"
        self.view(name, query)

    def run(self, query: str) -> dict[str, np.ndarray]:
        """The answer to a query in Spark's SQL, column by column."""
        table = self.arrow(query)
        return {name: table.column(name).to_numpy() for name in table.column_names}

    def arrow(self, sql: str) -> pa.Table:
        """The same as an Arrow table."""
        with self._frame(sql) as frame:
            return frame.toArrow()

    def view(self, name: str, query: str | pa.Table) -> None:
        """Name the answer to a query, or a table; nothing is computed yet."""
        with self._frame(query) as frame:
            frame.createOrReplaceTempView(name)

    def write(self, sql: str, folder: Path) -> None:
        """Write the answer to a query as Parquet files, in its order."""
        with self._frame(sql) as frame:
            frame.write.option("compression", "zstd").parquet(_file(folder))


def parquet_of(path: Path) -> str:
    """A Parquet file, or a folder of such, as a table of Spark's SQL."""
    return f"parquet.{exp.to_identifier(_file(path), quoted=True).sql('spark')}"


def _file(path: Path) -> str:
    """A path of the file system that this machine and Spark's workers share, whatever Spark's own default is."""
    return f"file://{path.resolve()}"


def _check_master(master: str) -> None:
    """Refuse an invalid name, and a master that does not answer."""
    if not is_spark(master):
        hint = "there is: spark (this machine), local[N], spark://HOST:PORT, sc://HOST:PORT, yarn, k8s://..."
        raise ConfigError(f"{master!r} is no master of Spark", hint=hint)
    remote = _REMOTE.fullmatch(master)
    if remote is None:
        return
    try:
        address = remote[2].strip("[]"), int(remote[3] or PORTS[remote[1]])
        socket.create_connection(address, SECONDS_TO_ANSWER).close()
    except (OSError, OverflowError) as error:
        what = f"no Spark answers at {master!r}: {getattr(error, 'strerror', None) or error}"
        hint = "check host and port, and that it is running; --engine spark works in this machine"
        raise ConfigError(what, hint=hint) from error


def check_java() -> None:
    """Check that there is a Java that Spark runs on."""
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


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


@contextmanager
def _errors_to(log: Path) -> Iterator[None]:
    """Send the errors of a process that starts meanwhile to a file: Java and Spark print many."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextmanager
def _errors_of_spark() -> Iterator[None]:
    """Turn an error of Spark, of its bridge or of its network into one of r2n."""
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        said = str(error)
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        causes = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
        causes += [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
        line = next(iter([*causes[::-1], *lines]), type(error).__name__)  # the last cause that Java names says most
        condition: Any = error.getCondition() if isinstance(error, PySparkException) else None
        found: R2NError
        if condition in ("TABLE_OR_VIEW_NOT_FOUND", "PATH_NOT_FOUND"):
            found = DataError(f"Spark finds no such table: {line}", hint="check its name, and that Spark can reach it")
        elif "FAILED_READ_FILE.FILE_NOT_EXIST" in said:
            found = DataError(f"a table that Spark was reading has gone: {line}", hint="put it back, and start again")
        elif "OutOfMemoryError" in said or "ran out of memory" in said:
            found = MemoryLimitError("Spark has run out of memory", hint="give its driver more: --memory SIZE")
        elif isinstance(error, PySparkException | Py4JJavaError):
            found = ConfigError(f"Spark refuses it: {line}")
        else:
            found = ConfigError(f"Spark has gone away: {line}", hint="see that it is running, and start again")
        raise found from error
