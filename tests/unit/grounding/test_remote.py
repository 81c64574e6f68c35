"""Facts that Spark reads itself: the ground rules of this process, in order; wrong facts are refused."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from r2n.data.herbrand import first_codes
from r2n.data.problem import ProblemFile, TableOptions, read_problem_file
from r2n.data.tables import Table, read_facts
from r2n.datasets.generated import GraphOptions, generate
from r2n.errors import CheckpointError, ConfigError, DataError, GroundingError, TheoryError
from r2n.grounding import remote
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.full import FullGrounder, KnownBodyGrounder
from r2n.grounding.ground_rules import Grounder
from r2n.grounding.joins import Kind
from r2n.grounding.remote import RemoteTables, ground_select, number_rows, open_problem, read_table, rule_query
from r2n.logic.parser import parse_theory
from r2n.options import GroundingOptions
from tests.spark_problem import (
    FACTS,
    SHORT,
    THEORY,
    adaptive,
    check_equal,
    ground_by_spark,
    spark_engine,
    triples,
    write_problem,
)


@pytest.mark.parametrize(
    ("changes", "options", "reason"),
    [
        ({}, {}, None),
        ({"facts": {"train": "table:db.facts"}}, {}, None),
        ({"facts": {"train": {"file": "a", "format": "parquet"}}}, {}, None),
        ({"facts": {"train": "a.tsv"}}, {}, "a.tsv is no Parquet and no table of Spark's"),
        ({"facts": {}}, {}, "there is no table of facts"),
        ({"candidates": {"p": {"tables": "c.tsv"}}}, {}, "candidates are found in one process"),
        ({"derived": {"p": "q(x) -> p(x)"}}, {}, "derived facts are made in one process"),
        ({"on_error": "skip"}, {}, "wrong rows are skipped in one process"),
        ({}, {"reciprocal": True}, "reciprocals are made in one process"),
        ({}, {"strategy": "backward"}, "backward chaining goes on from what is found"),
    ],
)
def test_why_this_process_has_to_read_the_facts(
    changes: dict[str, object], options: dict[str, object], reason: str | None
) -> None:
    file = ProblemFile.model_validate({"facts": {"train": "a.parquet"}, **changes})
    assert remote.why_not_remote(file, GroundingOptions.model_validate(options)) == reason


@pytest.mark.spark
@pytest.mark.parametrize("grounder", [FullGrounder(), KnownBodyGrounder()], ids=["full", "known-body"])
def test_it_is_the_grounding_of_this_process(tmp_path: Path, grounder: Grounder) -> None:
    check_equal(write_problem(tmp_path / "problem"), grounder, tmp_path / "out", 10)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "problem"]
    assert not list((tmp_path / "out").glob("[!rg_]*")), "what was written on the way is gone"


@pytest.mark.spark
def test_it_is_so_on_a_skewed_graph(tmp_path: Path) -> None:
    generate(GraphOptions(5_000, None, 4, 3, communities=1, seed=2), tmp_path / "graph", "parquet")
    with adaptive():
        check_equal(tmp_path / "graph", KnownBodyGrounder(), tmp_path / "one", 1_000)


@pytest.mark.spark
def test_cells_are_the_constants_that_this_process_reads(tmp_path: Path) -> None:
    columns = {
        "predicate": pa.array(["a", "it's", "Ä"]),  # the names of views' own columns do no harm
        "c0": pa.array([1.0, -2.5, 3.0]),
        "c1": pa.array([Decimal("1.50"), Decimal("2.00"), Decimal("10.00")], pa.decimal128(6, 2)),
        "day": pa.array([date(2020, 1, 2)] * 3),
        "is": pa.array([True, False, True]),
        "number": pa.array([7, 8, 9], pa.int32()),
    }
    pq.write_table(pa.table(columns), tmp_path / "cells.parquet")
    spec = {"predicate": "p", "columns": tuple(columns)}
    options = TableOptions.model_validate({"file": "cells.parquet", **spec})
    stated = read_table(spark_engine(), options, tmp_path, "train", "cells")
    (here,) = read_facts(Table(tmp_path / "cells.parquet", **spec)).facts
    rows = spark_engine().run(f"{stated.select} ORDER BY c5")
    assert [rows[f"c{i}"].tolist() for i in range(6)] == [column.to_pylist() for column in here.arguments]
    assert ([group.predicate for group in stated.groups], rows["truth"].all()) == (["p"], True)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"file": "a.tsv"}, "Spark does not read 'a.tsv' as facts"),
        ({"file": "nowhere.parquet"}, "there is no such file"),
        ({"file": "table:nowhere.facts"}, "Spark finds no such table"),
        ({"file": "empty.parquet"}, r"column 1 \(head\) is empty"),
        ({"file": "label.parquet"}, "the label 'perhaps' is neither 1"),
        ({"file": "table:odd", "columns": ("a", "b")}, "which has lost its last digits"),
        ({"file": "table:odd", "columns": ("a", "c")}, "a list, no constant"),
        ({"file": "empty.parquet", "predicate": None, "columns": ("head", "tail")}, "2 columns are picked"),
        ({"file": "text.parquet"}, "Spark refuses it"),
    ],
)
def test_bad_tables_are_refused_as_in_this_process(tmp_path: Path, options: dict[str, object], what: str) -> None:
    engine = spark_engine()
    pq.write_table(pa.table({"head": ["a", None], "tail": ["c", "d"]}), tmp_path / "empty.parquet")
    pq.write_table(pa.table({"head": ["a", "b"], "label": ["1", "perhaps"]}), tmp_path / "label.parquet")
    (tmp_path / "text.parquet").write_text("no Parquet at all")
    engine.view("odd", "SELECT 'x' AS a, 1.0E17D AS b, array('x') AS c")
    spec = TableOptions.model_validate({"predicate": "p", **options})
    with pytest.raises((ConfigError, DataError), match=what):
        read_table(engine, spec, tmp_path, "train", "wrong")


@pytest.mark.spark
def test_rows_with_an_empty_cell_are_left_out_if_they_may_be() -> None:
    engine = spark_engine()
    engine.view("gaps", "SELECT 'ann' AS who, 7 AS what, true AS label UNION ALL SELECT 'bob', NULL, false")
    stated = read_table(engine, TableOptions(file="table:gaps", predicate="p", empty="skip"), Path(), "train", "read")
    rows = engine.run(stated.select)
    assert {name: column.tolist() for name, column in rows.items()} == {
        "predicate": ["p"],
        "truth": [True],
        "c0": ["ann"],
        "c1": ["7"],
    }


def opened(folder: Path, scratch: Path) -> RemoteTables:
    return open_problem(spark_engine(), read_problem_file(folder / "problem.toml"), folder, scratch)


@pytest.mark.spark
def test_of_each_table_the_size_is_known(tmp_path: Path) -> None:
    tables = opened(write_problem(tmp_path / "problem"), tmp_path)
    likes = tables.relation(Kind.FACT, "likes")
    assert (len(likes), likes.distinct(0), likes.distinct(1)) == (3, 2, 2)
    assert len(tables.relation(Kind.DENIED, "likes")) == len(tables.relation(Kind.DENIED, "odd")) == 1
    assert len(tables.relation(Kind.DENIED, "knows")) == 0
    assert [len(tables.domain(domain)) for domain in tables.theory.domains] == [10, 3, 13]
    assert not tables.candidates


WRONG: dict[str, tuple[list[tuple[str, str, str]], str]] = {
    "outside": ([*FACTS, ("ann", "lives", "paris")], r"lives\(ann, paris\) holds a constant outside its domain"),
    "both": ([*FACTS, ("cy", "likes", "ann")], r"likes\(cy, ann\) is stated both true and false"),
    "two splits": ([*FACTS, ("dan", "lives", "oslo")], r"lives\(dan, oslo\) stands in two splits"),
    "unknown": ([("ann", "hates", "bob")], "unknown predicate 'hates'"),
    "arity": ([("ann", "odd", "bob")], "odd takes 1 constants, but here it has 2"),
    "rule": (FACTS[:3], "constant 'nobody' is outside domain 'thing'"),
}


@pytest.mark.spark
@pytest.mark.parametrize("kind", WRONG)
def test_wrong_facts_are_refused(tmp_path: Path, kind: str) -> None:
    theory = THEORY.replace('"Zoë"', '"nobody"') if kind == "rule" else THEORY
    folder = write_problem(tmp_path / "problem", theory)
    triples(folder / "train.parquet", WRONG[kind][0])
    with pytest.raises((DataError, TheoryError), match=WRONG[kind][1]):
        opened(folder, tmp_path)


@pytest.mark.spark
def test_codes_that_would_not_fit_are_refused(tmp_path: Path) -> None:
    positions = ", ".join(["d"] * 24)
    theory = f"domain d\npredicate p({positions})\npredicate knows(d, d)\n"
    folder = write_problem(tmp_path / "problem", theory, 'theory = "theory.r2n"\nfacts = { train = "train.parquet" }\n')
    triples(folder / "train.parquet", [(f"c{i}", "knows", "x") for i in range(20)])
    with pytest.raises(DataError, match="does not fit 64 bits; the largest predicate is p with 24 positions"):
        opened(folder, tmp_path)


@pytest.mark.spark
@pytest.mark.parametrize("count_first", [remote.COUNT_FIRST, 0.01], ids=["before", "after"])
def test_too_many_ground_rules_leave_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count_first: float
) -> None:
    """They are counted before they are written if the estimate is high, else after."""
    monkeypatch.setattr(remote, "COUNT_FIRST", count_first)
    folder = write_problem(tmp_path / "problem", problem=SHORT)
    with pytest.raises(GroundingError, match="more than max_groundings = 3"):
        ground_by_spark(folder, FullGrounder(max_groundings=3), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["problem"]


@pytest.mark.spark
def test_an_earlier_grounding_is_replaced_and_nothing_else_is(tmp_path: Path) -> None:
    folder, out = write_problem(tmp_path / "problem", problem=SHORT), tmp_path / "out"
    ground_by_spark(folder, KnownBodyGrounder(), out)
    again = ground_by_spark(folder, KnownBodyGrounder(), out)
    assert sum(part.ground_rules for part in again) > 0
    with pytest.raises(ConfigError, match="backward grounding is not made from tables"):
        ground_by_spark(folder, BackwardGrounder(), out)
    with pytest.raises(CheckpointError, match="something that is no grounding"):
        ground_by_spark(folder, KnownBodyGrounder(), folder)
    with pytest.raises(ConfigError, match="cannot be written"):
        ground_by_spark(folder, KnownBodyGrounder(), folder / "theory.r2n" / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "problem"]


@pytest.mark.spark
def test_ids_beyond_32_bits_are_exact_and_codes_beyond_64_are_refused() -> None:
    """More constants than 2^31: the last of one predicate's pairs still has a code, of two predicates it has none."""
    size, engine = 2**31 + 10, spark_engine()
    theory = parse_theory("domain d\npredicate p(d, d)\nrule r: p(x, y) & p(y, z) -> p(x, z)\n")
    offsets = first_codes(theory.predicates, [(size, size)])
    tables = RemoteTables(engine, theory, size, (size,), {(0, True): (2, 0, 2, 2)}, offsets)
    x, y, z = size - 1, 2**31, 2**31 - 1
    engine.view("fact_0", f"SELECT * FROM VALUES ({x}L, {y}L), ({y}L, {z}L) AS given(a0, a1)")
    found = engine.run(ground_select(tables, rule_query(tables, KnownBodyGrounder(), theory.rules[0])))
    assert [column.tolist() for column in found.values()] == [[x * size + y], [y * size + z], [x * size + z]]
    with pytest.raises(DataError, match="does not fit 64 bits"):
        first_codes(theory.predicates * 2, [(size, size)] * 2)


@pytest.mark.spark
def test_rows_of_several_files_are_numbered_through(tmp_path: Path) -> None:
    engine = spark_engine()
    engine.view("many", "SELECT /*+ REPARTITION(4) */ (id * 7) % 101 AS k FROM range(101)")
    number_rows(engine, "many", "k", tmp_path / "many", "many_numbered", "number")
    found = engine.run("SELECT k, number FROM many_numbered ORDER BY number")
    assert found["k"].tolist() == found["number"].tolist() == list(range(101))
