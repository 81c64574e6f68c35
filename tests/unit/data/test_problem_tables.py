"""Tables of a problem file: files, and tables of a database."""

from pathlib import Path
from typing import Any

import pytest

from r2n.data.problem import TableOptions, described_table, read_problem_file
from r2n.data.stored_tables import PostgresTable
from r2n.data.tables import Table
from r2n.errors import ConfigError

URL = "postgresql://db.example.org/kg"


def described(**given: Any) -> Table:
    return described_table(TableOptions(**given), Path("folder"))


def test_a_file_stands_in_the_folder() -> None:
    made = described(
        file="a.db", table="t", predicate="p", columns=("a", "b"), label="c", format="sqlite", empty="skip"
    )
    assert made == Table(Path("folder/a.db"), "p", ("a", "b"), "c", None, "t", format="sqlite", empty="skip")


def test_a_database_has_a_schema_a_name_or_a_query() -> None:
    made = described(table=URL, schema="people", name="works_at", predicate="p", columns=("a", "b"))
    assert made == Table(PostgresTable(URL, "people", "works_at"), "p", ("a", "b"))
    asked = described(table=URL, query="SELECT 1", label="c", empty="skip")
    assert asked == Table(PostgresTable(URL, query="SELECT 1"), label="c", empty="skip")


def test_a_problem_file_names_a_database(tmp_path: Path) -> None:
    path = tmp_path / "problem.toml"
    path.write_text(f'[facts]\ntrain = ["a.tsv", "{URL}", {{ table = "{URL}", schema = "s" }}]\n')
    files = read_problem_file(path).facts.train
    assert [(spec.file, spec.table, spec.db_schema) for spec in files] == [
        ("a.tsv", None, None),
        (None, URL, None),
        (None, URL, "s"),
    ]
    path.write_text(f'[facts]\ntrain = {{ table = "{URL}", shema = "s" }}\n')
    with pytest.raises(ConfigError, match=r"unknown key 'shema'.*\n.*\n.*\n  did you mean 'schema'\?"):
        read_problem_file(path)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "here is neither"),
        ({"table": "works_at"}, "here is neither"),
        ({"file": "a.tsv", "query": "SELECT 1"}, "only a database has"),
        ({"file": "a.tsv", "schema": "s"}, "only a database has"),
        ({"table": URL, "header": True}, "are for files"),
        ({"table": URL, "format": "csv"}, "are for files"),
        ({"table": "postgresql://me:secret@db/kg"}, "holds a password"),
    ],
)
def test_what_is_no_table(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        described(**given)
