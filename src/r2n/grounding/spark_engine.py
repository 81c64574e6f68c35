"""Rules -> ground rules: where a query runs that outgrows one machine. The same queries, in Spark's dialect."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from r2n.data.spark_session import SparkPlace, without_warnings
from r2n.errors import ConfigError, DataError, MemoryLimitError, R2NError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEW_ROWS = 1_000  # a table of so few is written into the query: no job has to bring it
MOST_LIMIT = 2**31 - 1  # Spark counts rows of a LIMIT by 32 bits


class SparkEngine:
    """Tables and queries of a Spark session."""

    takes_all = True

    def __init__(self, place: SparkPlace | None = None) -> None:
        """Make an engine; its session is opened at the first use."""
        self.place = place or SparkPlace()

    @cached_property
    def session(self) -> "SparkSession":
        """Spark's session."""
        return self.place.session

    def load(self, name: str, columns: Mapping[str, np.ndarray]) -> None:
        """Hold a table under this name, in place of an earlier one."""
        with without_warnings(), told():
            if 0 < len(next(iter(columns.values()))) <= FEW_ROWS:
                frame = self.session.sql(_written_out(columns))
            else:
                frame = self.session.createDataFrame(pa.table(dict(columns)))
            frame.createOrReplaceTempView(name)

    def run(self, query: exp.Query) -> dict[str, np.ndarray]:
        """The answer, column by column."""
        return self.ask(spark_sql(query))

    def ask(self, sql: str) -> dict[str, np.ndarray]:
        """The answer to a question in Spark's own SQL, column by column."""
        with without_warnings(), told():
            table = self.session.sql(sql).toArrow()
        return {name: table.column(name).to_numpy() for name in table.column_names}

    def view(self, name: str, sql: str) -> None:
        """Call the answer to a question by a name; nothing is computed yet."""
        with told():
            self.session.sql(sql).createOrReplaceTempView(name)

    def columns(self, relation: str) -> list[str]:
        """The names of a table's columns."""
        with told():
            return self.session.sql(f"SELECT * FROM {relation}").columns

    def types(self, relation: str) -> dict[str, str]:
        """The types of a table's columns, by name."""
        with told():
            return dict(self.session.sql(f"SELECT * FROM {relation}").dtypes)

    def write(self, sql: str, folder: Path) -> None:
        """The answer to a question as Parquet files, in its order."""
        with told():
            self.session.sql(sql).write.option("compression", "zstd").parquet(_file(folder))

    def explain(self, query: exp.Query) -> str:
        """Spark's plan of a query."""
        with without_warnings(), told():
            rows = self.session.sql(f"EXPLAIN FORMATTED {spark_sql(query)}").collect()
        return str(rows[0][0]).strip()


def spark_sql(query: exp.Query) -> str:
    """A query in Spark's dialect."""
    limit = query.args.get("limit")
    if limit is not None and int(limit.expression.name) > MOST_LIMIT:
        query = query.copy()
        query.set("limit", None)
    return query.sql(dialect="spark")


def parquet_of(path: Path) -> str:
    """A Parquet file, or a folder of such, as a table of Spark's SQL."""
    return f"parquet.{exp.to_identifier(_file(path), quoted=True).sql('spark')}"


def _file(path: Path) -> str:
    """A path of the file system that this machine and Spark's workers share, whatever Spark's own default is."""
    return f"file://{path.resolve()}"


def _written_out(columns: Mapping[str, np.ndarray]) -> str:
    rows = np.stack(list(columns.values())).T.tolist()
    values = ", ".join(f"({', '.join(f'{number}L' for number in row)})" for row in rows)
    return f"SELECT * FROM VALUES {values} AS given({', '.join(columns)})"


@contextmanager
def told() -> Iterator[None]:
    """Whatever Spark refuses or loses, as an error of ours."""
    try:
        yield
    except R2NError:
        raise
    except Exception as error:
        found = _as_ours(error)
        if found is None:
            raise
        raise found from error


def _as_ours(error: Exception) -> R2NError | None:
    """An error of Spark, of its bridge or of its network as one of ours; None where it is another's."""
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    if not isinstance(error, PySparkException | Py4JError | ConnectionError):
        return None
    said = str(error)
    line = _what_it_says(said) or type(error).__name__
    condition: Any = error.getCondition() if isinstance(error, PySparkException) else None
    if condition in ("TABLE_OR_VIEW_NOT_FOUND", "PATH_NOT_FOUND"):
        return DataError(f"Spark finds no such table: {line}", hint="check its name, and that Spark can reach it")
    if "FAILED_READ_FILE.FILE_NOT_EXIST" in said:
        return DataError(f"a table that Spark was reading has gone: {line}", hint="put it back, and start again")
    if "OutOfMemoryError" in said or "ran out of memory" in said:
        return MemoryLimitError("Spark has run out of memory", hint="give its driver more: --memory SIZE")
    if isinstance(error, PySparkException | Py4JJavaError):
        return ConfigError(f"Spark refuses it: {line}")
    return ConfigError(f"Spark has gone away: {line}", hint="see that it is running, and start again")


def _what_it_says(said: str) -> str:
    """The line of an error that says most: the last cause of one that Java tells, else the first."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    causes = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    causes += [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return next(iter([*causes[::-1], *lines]), "")
