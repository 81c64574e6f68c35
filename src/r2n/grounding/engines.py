"""Engines that answer queries over tables; DuckDB runs in this process, on all cores, and spills to disk."""

import os
import tempfile
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import duckdb
import numpy as np
import pyarrow as pa
from sqlglot import exp

from r2n.data.interruptible import interruptible
from r2n.errors import MemoryLimitError

LEAST_MEMORY = 64 * 10**6  # bytes: below, a database does not start its work


@runtime_checkable
class Engine(Protocol):
    """Holds tables of integers and answers queries over them.

    `takes_all`: whether small queries are its own too, which arrays in memory would answer sooner.
    """

    takes_all: bool

    def load(self, name: str, columns: Mapping[str, np.ndarray]) -> None:
        """Hold a table under this name, in place of an earlier one."""
        ...

    def run(self, query: exp.Query) -> dict[str, np.ndarray]:
        """The answer, column by column."""
        ...

    def explain(self, query: exp.Query) -> str:
        """How it would find the answer, in its own words."""
        ...


class DuckDBEngine:
    """The embedded engine."""

    def __init__(self, memory: int | None = None, *, takes_all: bool = False) -> None:
        """Make an engine; its database is opened at the first use, since many groundings need none.

        What needs more bytes than `memory` (by default DuckDB's own choice) goes to the temporary folder.
        """
        self.memory, self.takes_all = memory, takes_all
        self._connections: dict[int, duckdb.DuckDBPyConnection] = {}

    @property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        """An in-memory database of this process: one that was opened before a fork has lost its threads."""
        process = os.getpid()
        if process not in self._connections:
            self._connections[process] = self._opened()
        return self._connections[process]

    def _opened(self) -> duckdb.DuckDBPyConnection:
        """A database that spills to the system's temporary folder."""
        config: dict[str, str | bool | int | float | list[str]] = {"temp_directory": tempfile.gettempdir()}
        if self.memory is not None:
            config["memory_limit"] = f"{max(LEAST_MEMORY, self.memory) // 10**6}MB"
        return duckdb.connect(config=config)

    def load(self, name: str, columns: Mapping[str, np.ndarray]) -> None:
        """Hold a table under this name, in place of an earlier one."""
        arrow = pa.table({column: pa.array(values) for column, values in columns.items()})
        self._connection.register("incoming", arrow)
        table = exp.Identifier(this=name, quoted=True).sql("duckdb")
        self._connection.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM incoming")
        self._connection.unregister("incoming")

    def run(self, query: exp.Query) -> dict[str, np.ndarray]:
        """The answer, column by column."""
        try:
            with interruptible(self._connection):
                answer = self._connection.execute(query.sql(dialect="duckdb")).fetchnumpy()
        except duckdb.OutOfMemoryException as error:
            raise MemoryLimitError(
                f"a query needs more memory than the database may take: {str(error).splitlines()[0]}",
                hint="ground less (narrower domains, closed predicates, another strategy); or allow more with --memory"
                " SIZE",
            ) from error
        return {name: np.ma.getdata(column) for name, column in answer.items()}

    def explain(self, query: exp.Query) -> str:
        """DuckDB's plan of a query."""
        rows = self._connection.execute(f"EXPLAIN {query.sql(dialect='duckdb')}").fetchall()
        return "\n".join(str(plan).rstrip() for _, plan in rows)
