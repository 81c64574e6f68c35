"""What is known: the tables that a problem file names -> where they are, and how to read them."""

from pathlib import Path

from r2n.errors import ConfigError
from r2n.knowledge.places import placed
from r2n.knowledge.problem_file import TableOptions
from r2n.knowledge.reading.postgres import PostgresTable, is_postgres
from r2n.knowledge.reading.tables import Table


def described_table(spec: TableOptions, folder: Path) -> Table:
    """A table of a problem file in this folder: a file, or a table of a database."""
    if spec.file is not None:
        if spec.db_schema is not None or spec.name is not None or spec.query is not None:
            raise ConfigError(
                f"'{spec.file}' is a file: only a database has a schema, a name or a query to pick",
                hint='write table = "postgresql://HOST/DATABASE" instead of file',
            )
        named = (spec.predicate, spec.columns, spec.label, spec.header, spec.table)
        return Table(placed(folder, spec.file), *named, format=spec.format, empty=spec.empty)
    if spec.table is None or not is_postgres(spec.table):
        hint = 'write file = "facts.tsv", or table = "postgresql://HOST/DATABASE"'
        raise ConfigError("a table of facts is in a file or in a database: here is neither", hint=hint)
    if spec.header is not None or spec.format is not None:
        raise ConfigError(f"'{spec.table}' is a database: header and format are for files", hint="leave them out")
    source = PostgresTable(spec.table, spec.db_schema, spec.name, spec.query)
    return Table(source, spec.predicate, spec.columns, spec.label, empty=spec.empty)
