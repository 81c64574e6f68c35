"""Tables that Spark reads: what is wrong with them is told with their names."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from r2n.data.problem import TableOptions
from r2n.errors import ConfigError, DataError
from r2n.grounding.remote.stated import is_read_by_spark, named, quoted, read_stated
from tests.spark_place import spark_engine


def test_parquet_and_tables_of_the_catalog_are_read(tmp_path: Path) -> None:
    for file, is_read in (("a.parquet", True), ("table:db.facts", True), ("a.tsv", False), ("a", False)):
        assert is_read_by_spark(TableOptions(file=file), tmp_path) == is_read
    assert is_read_by_spark(TableOptions(file="a", format="parquet"), tmp_path)


def test_names_and_texts_of_sql() -> None:
    assert named("a b`c") == "`a b``c`"
    assert quoted("it's") == "'it\\'s'"


@pytest.mark.spark
def test_a_table_of_the_catalog_states_facts_too() -> None:
    engine = spark_engine()
    engine.view("known_facts", "SELECT 'ann' AS who, 7 AS what, true AS label UNION ALL SELECT 'bob', 8, false")
    (found,) = read_stated(engine, {"train": [TableOptions(file="table:known_facts", predicate="p")]}, Path())
    assert (found.arity, found.predicates, found.source) == (2, ("p",), "known_facts")
    rows = engine.ask(f"SELECT * FROM {found.view} ORDER BY c0")
    assert {name: column.tolist() for name, column in rows.items()} == {
        "predicate": ["p", "p"],
        "truth": [True, False],
        "c0": ["ann", "bob"],
        "c1": ["7", "8"],
    }


@pytest.mark.spark
def test_numbers_are_the_constants_that_one_process_reads() -> None:
    engine = spark_engine()
    engine.view("numbers", "SELECT 1.0D AS a, 2.5D AS b, CAST(NULL AS DOUBLE) AS c, 1.0E17D AS d, array('x') AS e")
    for columns, expected in ((("a", "b"), ["1", "2.5"]), (("a", "d"), "last digits"), (("a", "e"), "holds arrays")):
        table = TableOptions(file="table:numbers", predicate="p", columns=columns)
        if isinstance(expected, str):
            with pytest.raises((ConfigError, DataError), match=expected):
                read_stated(engine, {"train": [table]}, Path())
        else:
            (found,) = read_stated(engine, {"train": [table]}, Path())
            rows = engine.ask(f"SELECT * FROM {found.view}")
            assert [rows[name].tolist()[0] for name in ("c0", "c1")] == expected


@pytest.mark.spark
@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"file": "a.tsv"}, "Spark does not read 'a.tsv' as facts"),
        ({"file": "nowhere.parquet"}, "there is no such file"),
        ({"file": "table:nowhere.facts"}, "Spark finds no such table"),
        ({"file": "bad.parquet"}, "1 rows have an empty cell"),
        ({"file": "bad.parquet", "empty": "skip"}, "1 rows have a label that is neither true nor false"),
        ({"file": "bad.parquet", "columns": ("head", "tail")}, "2 columns are picked"),
        ({"file": "text.parquet"}, "Spark refuses it"),
    ],
)
def test_bad_tables_are_refused(tmp_path: Path, options: dict[str, object], what: str) -> None:
    columns = {"head": ["a", "b", None], "relation": ["r"] * 3, "tail": ["c"] * 3, "label": ["1", "perhaps", "0"]}
    pq.write_table(pa.table(columns), tmp_path / "bad.parquet")
    (tmp_path / "text.parquet").write_text("no Parquet at all")
    with pytest.raises((ConfigError, DataError), match=what):
        read_stated(spark_engine(), {"train": [TableOptions.model_validate(options)]}, tmp_path)
