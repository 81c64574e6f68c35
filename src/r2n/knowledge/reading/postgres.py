"""A table or a query of a PostgreSQL database -> columns of text, through ADBC (`pip install r2n[postgres]`).

Who asks is told by the environment alone, as PostgreSQL's own programs have it: PGUSER, PGPASSWORD, PGPASSFILE.
"""

import os
import re
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pyarrow as pa

from r2n.errors import ConfigError, DataError, Location, nearest
from r2n.knowledge.reading.records import Records, shortened
from r2n.knowledge.reading.stored_tables import row_location

SCHEMES = ("postgresql", "postgres")
SECONDS_TO_CONNECT = 10
SECRET = ("password", "sslpassword")
NOT_LET_IN = ("password", "authentication failed", "role ", "no pg_hba.conf entry")
WHO_ASKS = "say who asks in the environment: PGUSER, and PGPASSWORD or a file ~/.pgpass (or PGPASSFILE)"
MOST_LISTED = 20
TABLES = (
    "SELECT table_schema::text, table_name::text FROM information_schema.tables"
    " WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2"
)


def is_postgres(text: object) -> bool:
    """Whether a text is the address of a PostgreSQL database."""
    return isinstance(text, str) and text.startswith(tuple(f"{scheme}://" for scheme in SCHEMES))


@dataclass(frozen=True, slots=True)
class PostgresTable:
    """A table of a database, or what a query finds in it.

    `name` is the table's, in `schema` or where the database looks for it; without either it is the only one there is.
    `query` is a SELECT instead.
    """

    url: str
    schema: str | None = None
    name: str | None = None
    query: str | None = None

    def __post_init__(self) -> None:
        """Refuse what can be told without a database, a secret in the address above all."""
        if not is_postgres(self.url):
            raise ConfigError(f"'{shortened(self.url)}' is no address", hint="write postgresql://HOST/DATABASE")
        try:
            parts = urlsplit(self.url)
            _ = parts.port
        except ValueError as error:
            raise ConfigError(f"the address of a database cannot be read: {error}") from None
        if parts.password is not None or any(key in SECRET for key, _ in parse_qsl(parts.query)):
            raise ConfigError("the address of a database holds a password", hint=f"take it out, and {WHO_ASKS}")
        if self.query is not None and (self.name is not None or self.schema is not None):
            raise ConfigError("facts come from a query or from a table, not from both", where=Location(str(self)))

    def __str__(self) -> str:
        """The address, and what of the database: `postgresql://db/kg people.works_at`."""
        what = "query" if self.query is not None else ".".join(part for part in (self.schema, self.name) if part)
        return f"{self.url} {what}".rstrip()

    def locate(self, row: int, column: int | None = None) -> Location:
        """A row of the answer."""
        return row_location(str(self), row)

    def records(self) -> Records:
        """All rows, in the order in which the database gives them."""
        names, texts = _read(self)
        found = tuple(column.combine_chunks() for column in texts.columns)
        columns, kinds = found[: len(names)], found[len(names) :]
        return Records(str(self), names, columns, np.arange(texts.num_rows), self.locate, kinds=kinds)


def _read(table: PostgresTable) -> tuple[tuple[str, ...], pa.Table]:
    """The names of the columns, the columns as text, and what their cells are where they are no constants."""
    driver, where, batches = _driver(), Location(str(table)), []
    with closing(_connected(driver, table)) as connection, closing(connection.cursor()) as cursor:
        try:
            cursor.execute("SET TRANSACTION READ ONLY")
            selected = _selected(table, cursor)
            cursor.execute(f"SELECT * FROM {selected} AS given LIMIT 0")
            names = tuple(column[0] for column in cursor.description)
            texts = ", ".join(f"given.c{j}::text" for j in range(len(names)))
            for j in range(len(names)):
                texts += (
                    f", CASE WHEN given.c{j} IS NOT NULL AND pg_typeof(given.c{j})::text LIKE '%[]' THEN 'list' END"
                )
            columns = ", ".join(f"c{j}" for j in range(len(names)))
            cursor.execute(f"SELECT {texts} FROM {selected} AS given({columns})")
            reader = cursor.fetch_record_batch()
            batches.extend(reader)
            return names, pa.Table.from_batches(batches, reader.schema)
        except driver.ProgrammingError as error:
            hint = "mend the query" if table.query is not None else "may this user read it? Else see the database's log"
            raise DataError(f"the database refuses: {_said(error)}", where=where, hint=hint) from None
        except (driver.Error, pa.ArrowException, OSError) as error:
            read = sum(batch.num_rows for batch in batches)
            raise DataError(
                f"the database went away after {read:,} rows: {_said(error)}",
                where=where,
                hint="nothing was kept of what was read; ask again when the database is there",
            ) from None


def _driver() -> Any:
    try:
        import adbc_driver_postgresql.dbapi
    except ImportError:
        raise ConfigError("reading from PostgreSQL needs its driver", hint="pip install r2n[postgres]") from None
    return adbc_driver_postgresql.dbapi


def _connected(driver: Any, table: PostgresTable) -> Any:
    url = table.url
    if "connect_timeout" not in url and "PGCONNECT_TIMEOUT" not in os.environ:
        url = f"{url}{'&' if urlsplit(url).query else '?'}connect_timeout={SECONDS_TO_CONNECT}"
    try:
        return driver.connect(url)
    except driver.Error as error:
        said = _said(error)
        is_known = any(words in said for words in NOT_LET_IN)
        hint = WHO_ASKS if is_known else "is the address right, and the server running? Ask it with psql"
        raise DataError(f"the database cannot be reached: {said}", where=Location(table.url), hint=hint) from None


def _said(error: BaseException) -> str:
    """The first line of what libpq said, without the way it took."""
    line = (str(error).strip() or type(error).__name__).splitlines()[0]
    return shortened(re.sub(r"^.*(?:ERROR|FATAL): +|^(?:[A-Z_]+: )?\[libpq\] (?:Failed to connect: )?", "", line), 200)


def _selected(table: PostgresTable, cursor: Any) -> str:
    """What is read, as it stands behind FROM."""
    if table.query is not None:
        return f"({table.query.strip().rstrip(';')})"
    cursor.execute(TABLES)
    there = [(row[0], row[1]) for row in cursor.fetchall()]
    named = [(schema, name) for schema, name in there if table.schema in (None, schema) and table.name in (None, name)]
    if len(named) != 1:
        raise _no_one_table(table, there, len(named))
    return ".".join(f'"{part.replace(chr(34), chr(34) * 2)}"' for part in named[0])


def _no_one_table(table: PostgresTable, there: Sequence[tuple[str, str]], found: int) -> DataError:
    where, listed = Location(str(table)), [f"{schema}.{name}" for schema, name in there]
    more = ", ..." if len(listed) > MOST_LISTED else ""
    hint = f"the tables are: {', '.join(listed[:MOST_LISTED]) or 'none that this user may read'}{more}"
    if found:
        what = f"{found} tables are meant" if table.name is None else f"{found} schemas have a table '{table.name}'"
        return DataError(what, where=where, hint=f"say which with `schema` and `name`; {hint}")
    names = {name for _, name in there}
    if table.schema is not None and table.schema not in {schema for schema, _ in there}:
        what, near = f"there is no schema '{table.schema}'", nearest(table.schema, sorted({s for s, _ in there}))
    elif table.name is None:
        what, near = "the database has no table", ""
    else:
        what, near = f"there is no table '{table.name}'", nearest(table.name, sorted(names))
    return DataError(what, where=where, hint=f"{near} {hint}".strip())
