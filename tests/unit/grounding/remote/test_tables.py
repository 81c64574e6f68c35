"""Facts as ids with Spark: what is wrong with them is refused, as in this process."""

from pathlib import Path

import pytest

from r2n.data.problem import read_problem_file
from r2n.errors import DataError, TheoryError
from r2n.grounding.joins import Kind
from r2n.grounding.remote.problem import open_problem
from r2n.grounding.remote.tables import RemoteTables
from tests.spark_place import spark_engine
from tests.spark_problem import FACTS, THEORY, triples, write_problem


def opened(folder: Path, scratch: Path) -> RemoteTables:
    return open_problem(spark_engine(), read_problem_file(folder / "problem.toml"), folder, scratch)


@pytest.mark.spark
def test_of_each_table_the_size_is_known(tmp_path: Path) -> None:
    tables = opened(write_problem(tmp_path / "problem"), tmp_path)
    likes = tables.relation(Kind.FACT, "likes")
    assert (len(likes), likes.distinct(0), likes.distinct(1), likes.most) == (3, 2, 2, (2, 2))
    assert len(tables.relation(Kind.DENIED, "likes")) == len(tables.relation(Kind.DENIED, "odd")) == 1
    assert len(tables.relation(Kind.DENIED, "knows")) == 0
    assert [len(tables.domain(domain)) for domain in tables.theory.domains] == [6, 3, 9]
    assert not tables.candidates


def wrong(kind: str, folder: Path) -> str:
    """Make something of the problem wrong; what is then said."""
    train = folder / "train.parquet"
    if kind == "outside":
        triples(train, [*FACTS, ("ann", "lives", "paris")])
        return r"lives\(ann, paris\) holds a constant outside its domain"
    if kind == "both":
        triples(train, [*FACTS, ("cy", "likes", "ann")])
        return r"likes\(cy, ann\) is stated both true and false"
    if kind == "two splits":
        triples(folder / "test.parquet", FACTS[:1])
        return r"knows\(ann, bob\) stands in two splits"
    if kind == "unknown":
        triples(train, [("ann", "hates", "bob")])
        return "unknown predicate 'hates'"
    if kind == "arity":
        triples(train, [("ann", "odd", "bob")])
        return "odd takes 1 constants, but here it has 2"
    (folder / "theory.r2n").write_text(THEORY.replace('"Zoë"', '"nobody"'), "utf-8")
    return "constant 'nobody' is outside domain 'thing'"


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["outside", "both", "two splits", "unknown", "arity", "rule"])
def test_what_is_wrong_is_refused(tmp_path: Path, kind: str) -> None:
    folder = write_problem(tmp_path / "problem")
    what = wrong(kind, folder)
    with pytest.raises((DataError, TheoryError), match=what):
        opened(folder, tmp_path)


@pytest.mark.spark
def test_codes_that_would_not_fit_are_refused(tmp_path: Path) -> None:
    positions = ", ".join(["d"] * 24)
    folder = write_problem(
        tmp_path / "problem",
        f"domain d\npredicate p({positions})\npredicate knows(d, d)\n",
        'theory = "theory.r2n"\nfacts = { train = "train.parquet" }\n',
    )
    triples(folder / "train.parquet", [(f"c{i}", "knows", "x") for i in range(20)])
    with pytest.raises(DataError, match="does not fit 64 bits; the largest predicate is p with 24 positions"):
        opened(folder, tmp_path)
