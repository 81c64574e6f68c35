"""A conjunctive query: its text and, run by a database, its answer."""

from contextlib import closing

import duckdb
import pytest
from sqlglot import exp

from r2n.data.conjunctive import AtomTable, ConjunctiveSelect
from r2n.logic.formula import Constant, Variable

X, Y, Z = (Variable(name) for name in "xyz")
KNOWS, SMOKES = AtomTable("knows", ("c1", "c2")), AtomTable("smokes", ("c1",), schema="denied")


def answer(query: ConjunctiveSelect, missing: int = 0) -> list[tuple[str, ...]]:
    outputs = [exp.alias_(column.copy(), name) for name, column in sorted(query.columns.items())]
    with closing(duckdb.connect()) as connection:
        connection.execute("CREATE SCHEMA denied")
        connection.execute("CREATE TABLE knows AS FROM (VALUES ('a', 'b'), ('b', 'c'), ('c', 'c')) t(c1, c2)")
        connection.execute("CREATE TABLE denied.smokes AS FROM (VALUES ('b')) t(c1)")
        return sorted(connection.execute(query.select(outputs, missing).sql("duckdb")).fetchall())


@pytest.fixture
def query() -> ConjunctiveSelect:
    return ConjunctiveSelect(exp.Literal.string)


def test_variables_join_tables(query: ConjunctiveSelect) -> None:
    query.join(KNOWS, (X, Y))
    query.join(KNOWS, (Y, Z))
    assert answer(query) == [("a", "b", "c"), ("b", "c", "c"), ("c", "c", "c")]


def test_constants_and_repeated_variables_are_compared(query: ConjunctiveSelect) -> None:
    query.join(KNOWS, (X, X))
    query.join(KNOWS, (Constant("b"), X))
    assert answer(query) == [("c",)]


def test_forbidden_rows(query: ConjunctiveSelect) -> None:
    query.join(KNOWS, (X, Y))
    query.forbid(SMOKES, (X,))
    query.forbid(KNOWS, (Y, X))
    assert answer(query) == [("a", "b")]


@pytest.mark.parametrize(("missing", "expected"), [(0, ["b"]), (1, ["b", "c"]), (2, ["a", "b", "c"])])
def test_rows_that_may_be_missing(query: ConjunctiveSelect, missing: int, expected: list[str]) -> None:
    query.join(KNOWS, (X, Y))
    query.count_missing(SMOKES, (X,))
    query.count_missing(KNOWS, (X, Constant("c")))
    assert [x for x, _ in answer(query, missing)] == expected


def test_terms_that_differ_somewhere(query: ConjunctiveSelect) -> None:
    query.join(KNOWS, (X, Y))
    query.differ((X, Y), (Constant("b"), Constant("c")))
    assert answer(query) == [("a", "b"), ("c", "c")]
    query.differ((X,), (Y,))
    assert answer(query) == [("a", "b")]


def test_without_conditions_there_is_one_row(query: ConjunctiveSelect) -> None:
    assert query.select([exp.Literal.number(1)]).sql("duckdb") == "SELECT 1"
