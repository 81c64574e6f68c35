"""Addresses of databases, and databases that are not there; tests/postgres asks one that is."""

import builtins
import socket
from pathlib import Path

import pytest

from r2n.data.stored_tables import PostgresTable, is_postgres
from r2n.data.tables import Table, read_facts
from r2n.errors import ConfigError, DataError


def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def test_what_an_address_is() -> None:
    assert is_postgres("postgresql://db/kg")
    assert is_postgres("postgres://db/kg")
    assert not is_postgres("postgresql.tsv")
    assert not is_postgres(Path("postgresql://db/kg"))
    assert str(PostgresTable("postgresql://db/kg", "people", "works_at")) == "postgresql://db/kg people.works_at"
    assert str(PostgresTable("postgresql://db/kg", query="SELECT 1")) == "postgresql://db/kg query"
    assert str(PostgresTable("postgresql://db/kg")) == "postgresql://db/kg"


@pytest.mark.parametrize(
    "url",
    ["postgresql://me:secret@db/kg", "postgresql://db/kg?password=secret", "postgresql://db/kg?a=b&sslpassword=secret"],
)
def test_a_password_in_the_address_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        PostgresTable(url)
    said = str(caught.value)
    assert "the address of a database holds a password" in said
    assert "PGPASSWORD" in said
    assert ".pgpass" in said
    assert "secret" not in said


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"url": "mysql://db/kg"}, "is no address"),
        ({"url": "postgresql://db:port/kg"}, "cannot be read"),
        ({"url": "postgresql://db/kg", "name": "t", "query": "SELECT 1"}, "not from both"),
    ],
)
def test_what_else_is_refused_without_a_database(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        PostgresTable(**given)


def test_a_table_takes_an_address_as_text() -> None:
    table = Table("postgresql://db/kg", table="works_at")
    assert table.source == PostgresTable("postgresql://db/kg", name="works_at")
    assert table.name == "postgresql://db/kg works_at"


def test_a_server_that_is_not_there() -> None:
    table = Table(f"postgresql://127.0.0.1:{closed_port()}/kg")
    with pytest.raises(DataError, match=r"cannot be reached: .*onnection refused\n.*server running"):
        read_facts(table)


def test_without_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    import_any = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name.startswith("adbc_driver_postgresql"):
            raise ImportError(name)
        return import_any(name, *rest)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigError, match=r"needs its driver\n  pip install r2n\[postgres\]"):
        read_facts(Table("postgresql://db/kg"))
