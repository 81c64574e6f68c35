"""Facts from a PostgreSQL server that runs for these tests alone: `make test-postgres`."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from r2n.data.problem import load_problem
from r2n.data.records import PostgresTable
from r2n.data.tables import Table, read_facts
from r2n.errors import DataError
from tests.command_line import run
from tests.postgres.server import Server, programs, running
from tests.toy_problem import write_toy_problem

pytestmark = pytest.mark.postgres

TABLES = """
CREATE SCHEMA people;
CREATE TABLE people.works_at (person text, company text, holds boolean, since date, pay numeric(8, 2));
INSERT INTO people.works_at VALUES
    ('ann', 'acme', true, '2020-01-02', 1.50), ('bob', E'ö \t"x"', false, NULL, 2), ('eve', 'acme', true, NULL, NULL);
CREATE TABLE triples (head text, relation text, tail text);
CREATE TABLE people.triples (head text, relation text, tail text);
CREATE TABLE "odd ""name" (a int, "b c" bigint);
INSERT INTO "odd ""name" VALUES (1, 2), (3, 4);
CREATE ROLE stranger LOGIN PASSWORD 'another';
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    found = programs()
    assert found is not None, "there is no PostgreSQL: make test-postgres installs it"
    with running(found) as made:
        made.run(TABLES)
        yield made


@pytest.fixture(autouse=True)
def environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)


def stated(table: Table) -> list[tuple[str, tuple[str, ...], bool]]:
    return [
        (facts.predicate, tuple(column[i].as_py() for column in facts.arguments), bool(facts.truth[i]))
        for facts in read_facts(table).facts
        for i in range(len(facts))
    ]


@pytest.mark.parametrize("loopback", [False, True])
def test_a_table_of_a_schema(server: Server, loopback: bool) -> None:
    source = PostgresTable(server.url(loopback=loopback), "people", "works_at")
    assert stated(Table(source, "worksAt", ("person", "company"), "holds")) == [
        ("worksAt", ("ann", "acme"), True),
        ("worksAt", ("bob", 'ö \t"x"'), False),
        ("worksAt", ("eve", "acme"), True),
    ]
    paid = Table(source, "paid", ("person", "pay", "since"), "holds", empty="skip")
    assert stated(paid) == [("paid", ("ann", "1.50", "2020-01-02"), True)]
    assert read_facts(paid).empty == 2


def test_a_query_and_names_that_need_quotes(server: Server) -> None:
    query = "SELECT company AS tail, 'employs' AS relation, person AS head FROM people.works_at WHERE holds ORDER BY 3;"
    assert stated(Table(PostgresTable(server.url(), query=query))) == [
        ("employs", ("ann", "acme"), True),
        ("employs", ("eve", "acme"), True),
    ]
    odd = Table(server.url(), "p", ("b c", "a"), table='odd "name')
    assert stated(odd) == [("p", ("2", "1"), True), ("p", ("4", "3"), True)]
    assert stated(Table(PostgresTable(server.url(), "public", "triples"))) == []
    lists = PostgresTable(server.url(), query="SELECT 'a' AS x, ARRAY['b'] AS y")
    with pytest.raises(DataError, match=r"row 1: column 2 \(y\) holds a list, no constant"):
        read_facts(Table(lists, "p"))


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (
            {"name": "works_att"},
            r"no tables are called \*.works_att\n  did you mean 'works_at'\? say which .* the tables are: .*triples",
        ),
        ({"schema": "peeple"}, r"no tables are called peeple.\*\n  did you mean 'people'\?"),
        ({"name": "triples"}, r"2 tables are called \*.triples\n  say which with `schema`"),
        ({}, r"4 tables are called \*.\*\n  say which with `schema` and `name`"),
        ({"query": "SELECT * FROM nowhere"}, r'the database refuses: .*"nowhere" does not exist\n  mend the query'),
        ({"query": "SELECT 1; DROP TABLE triples"}, "the database refuses"),
        ({"query": "SELECT 1/0"}, "division by zero"),
    ],
)
def test_what_is_not_in_the_database(server: Server, what: dict[str, str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_facts(Table(PostgresTable(server.url(), **what), "p"))
    assert server.run("SELECT count(*) FROM triples") == "0"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("PGPASSWORD", "wrong", "password authentication failed"),
        ("PGUSER", "nobody-like-that", "password authentication failed"),
        ("PGPASSWORD", "", "no password supplied"),
    ],
)
def test_who_is_not_let_in(
    server: Server, name: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(DataError, match=rf"cannot be reached: .*{message}.*\n.*PGUSER.*\.pgpass"):
        read_facts(Table(server.url(), "p", table="works_at"))


def test_a_database_that_is_not_there_and_a_table_that_one_may_not_read(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DataError, match=r'cannot be reached: .*database "nope" does not exist'):
        read_facts(Table(server.url("nope"), "p"))
    monkeypatch.setenv("PGUSER", "stranger")
    monkeypatch.setenv("PGPASSWORD", "another")
    with pytest.raises(DataError, match="none that this user may read"):
        read_facts(Table(PostgresTable(server.url(), name="works_at"), "p"))
    with pytest.raises(DataError, match="the database refuses: permission denied"):
        read_facts(Table(PostgresTable(server.url(), query="SELECT * FROM public.triples")))


def test_a_password_file_is_enough(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "pgpass"
    secret.write_text(f"*:*:*:*:{server.environment['PGPASSWORD'].replace(':', chr(92) + ':')}\n")
    secret.chmod(0o600)
    monkeypatch.delenv("PGPASSWORD")
    monkeypatch.setenv("PGPASSFILE", str(secret))
    assert len(stated(Table(PostgresTable(server.url(), "people", "works_at"), "p", ("person",)))) == 3


def test_a_database_that_goes_away_half_way(server: Server) -> None:
    """Rows come for as long as the connection is there; it is ended as soon as the server says that they do."""
    endless = "WITH RECURSIVE number(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM number) SELECT 'a' || i FROM number"
    find = "FROM pg_stat_activity WHERE query LIKE 'COPY%RECURSIVE%' AND state = 'active'"
    ended: list[str] = []

    def end() -> None:
        until = time.monotonic() + 60
        while not ended and time.monotonic() < until:
            ended.extend(filter(None, server.run(f"SELECT pg_terminate_backend(pid) {find}").split()))

    thread = threading.Thread(target=end)
    thread.start()
    with pytest.raises(DataError, match=r"the database went away after [\d,]+ rows: .*\n.*nothing was kept"):
        read_facts(Table(PostgresTable(server.url(), query=endless), "p"))
    thread.join()
    assert ended == ["t"]


def test_a_problem_of_files_is_the_same_from_a_database(server: Server, tmp_path: Path) -> None:
    toy = write_toy_problem(tmp_path / "toy")
    rows = [line.split("\t") for line in (toy / "train.tsv").read_text().splitlines()]
    values = ", ".join(f"('{head}', '{name}', '{tail}')" for head, name, tail in rows)
    server.run(f"CREATE TABLE towns (head text, relation text, tail text); INSERT INTO towns VALUES {values}")
    files = load_problem(toy)
    text = (toy / "problem.toml").read_text()
    table = f'{{ table = "{server.url()}", schema = "public", name = "towns" }}'
    (toy / "problem.toml").write_text(text.replace('train = "train.tsv"', f"train = {table}"))
    (toy / "train.tsv").unlink()
    found = load_problem(toy)
    assert np.array_equal(found.train.atoms, files.train.atoms)
    assert np.array_equal(found.train.truth, files.train.truth)
    assert "44" in run("check", toy)
    server.run("INSERT INTO towns VALUES ('n1', NULL, 'n2')")
    with pytest.raises(DataError, match=r"public\.towns, row 45: column 2 \(relation\) is empty"):
        load_problem(toy)
