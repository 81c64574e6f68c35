"""One Spark for the whole test session, and a problem that it reads: typed domains, labels, constants in rules."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from r2n.data.problem import load_problem, read_problem_file
from r2n.grounding.cache import RuleParts, read_partitioned
from r2n.grounding.ground_rules import Grounder, Grounding
from r2n.grounding.remote import open_problem, scratch_folder_next_to, write_remote
from r2n.grounding.spark import SparkEngine
from r2n.grounding.store import Store

ADAPTIVE = "spark.sql.adaptive.enabled"
SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.codegen.wholeStage": "false",  # to compile a query takes longer than to answer it
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # nor does Java's own compiler pay
    ADAPTIVE: "false",  # to plan a query again after each step takes longer than the steps
}


@cache
def spark_engine() -> SparkEngine:
    """Two threads of this machine, for tables of a few rows."""
    pytest.importorskip("pyspark", reason="Spark is not installed: make test-spark")
    return SparkEngine("local[2]", 2 * 10**9, SETTINGS)


@contextmanager
def adaptive() -> Iterator[SparkEngine]:
    """The tests' Spark while it plans as it does for users."""
    engine = spark_engine()
    engine.session.conf.set(ADAPTIVE, "true")
    try:
        yield engine
    finally:
        engine.session.conf.set(ADAPTIVE, "false")


THEORY = """\
domain person, city
domain thing = person | city
predicate lives(person, city)
predicate knows(person, person)
predicate likes(person, thing)
predicate odd(person) closed
rule a: knows(x, y) & lives(y, c) -> lives(x, c)
rule b: likes(x, z: city) & !odd(x) -> lives(x, z)
rule c: knows("ann", y) & likes(y, "Zoë") & likes(y, "it's rome") -> knows(y, "ann")
rule d: odd(x) | knows(x, y)
rule e: knows(x, y) & !likes(y, z) -> knows(x, z), x != z
"""
FACTS = [
    ("ann", "knows", "bob"),
    ("bob", "knows", "cy"),
    ("Zoë", "knows", "ann"),
    ("\U0001f600", "knows", "\uffee"),  # Java and Python order these names differently
    ("a b", "knows", "10"),
    ("bob", "lives", "it's rome"),
    ("cy", "lives", "oslo"),
    ("ann", "likes", "it's rome"),
    ("bob", "likes", "Zoë"),
    ("bob", "likes", "it's rome"),
    ("bob", "likes", "it's rome"),
]
PROBLEM = """\
theory = "theory.r2n"
[domains]
city = ["it's rome", "oslo", "turin"]
[facts]
train = ["train.parquet", { file = "denied.parquet", predicate = "likes" }, { file = "odd.parquet", predicate = "odd" }]
[queries]
test = "test.parquet"
"""
SHORT = """\
theory = "theory.r2n"
domains = { city = ["it's rome", "oslo"] }
facts = { train = "train.parquet" }
"""


def write_problem(folder: Path, theory: str = THEORY, problem: str = PROBLEM) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "theory.r2n").write_text(theory, "utf-8")
    (folder / "problem.toml").write_text(problem, "utf-8")
    triples(folder / "train.parquet", FACTS)
    triples(folder / "test.parquet", [("dan", "lives", "oslo")])
    pq.write_table(pa.table({"who": ["cy"], "what": ["ann"], "label": [0]}), folder / "denied.parquet")
    pq.write_table(pa.table({"who": ["ann", "zed"], "label": ["1", "false"]}), folder / "odd.parquet")
    return folder


def triples(path: Path, rows: list[tuple[str, str, str]]) -> None:
    names = ("head", "relation", "tail")
    pq.write_table(pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)}), path)


def ground_by_spark(folder: Path, grounder: Grounder, out: Path) -> tuple[RuleParts, ...]:
    file = read_problem_file(folder / "problem.toml")
    with scratch_folder_next_to(out) as scratch:
        tables = open_problem(spark_engine(), file, folder, scratch)
        return write_remote(tables, grounder, out, scratch)


def check_equal(folder: Path, grounder: Grounder, out: Path, least: int) -> None:
    """What Spark finds in its tables, read back, is what arrays find in this process."""
    ground_by_spark(folder, grounder, out)
    knowledge = load_problem(folder).knowledge
    spark, arrays = (
        _rows(found) for found in (read_partitioned(out, knowledge, grounder), grounder.ground(Store(knowledge)))
    )
    assert spark == arrays
    assert sum(map(len, arrays)) >= least


def _rows(grounding: Grounding | None) -> list[list[list[int]]]:
    assert grounding is not None, "it is the grounding of this knowledge base"
    return [part.atoms.tolist() for part in grounding.ground_rules]
