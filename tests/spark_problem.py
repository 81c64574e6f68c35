"""A problem whose tables Spark reads: typed domains, a closed predicate, labels, constants in rules."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from r2n.data.problem import load_problem, read_problem_file
from r2n.grounding.cache import read_partitioned
from r2n.grounding.ground_rules import Grounder, Grounding
from r2n.grounding.remote.grounding import RemoteGrounding, in_scratch, write_remote
from r2n.grounding.remote.problem import open_problem
from r2n.grounding.store import Store
from tests.spark_place import spark_engine

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


def write_problem(folder: Path, theory: str = THEORY, problem: str = PROBLEM) -> Path:
    """The problem in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "theory.r2n").write_text(theory, "utf-8")
    (folder / "problem.toml").write_text(problem, "utf-8")
    triples(folder / "train.parquet", FACTS)
    triples(folder / "test.parquet", [("dan", "lives", "oslo")])
    pq.write_table(pa.table({"who": ["cy"], "what": ["ann"], "label": [0]}), folder / "denied.parquet")
    pq.write_table(pa.table({"who": ["ann", "zed"], "label": ["1", "false"]}), folder / "odd.parquet")
    return folder


def triples(path: Path, rows: list[tuple[str, str, str]]) -> None:
    """A table of facts."""
    names = ("head", "relation", "tail")
    pq.write_table(pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)}), path)


def ground_remotely(folder: Path, grounder: Grounder, out: Path) -> RemoteGrounding:
    """The grounding of the problem in a folder, by Spark alone."""
    file = read_problem_file(folder / "problem.toml")

    def work(scratch: Path) -> RemoteGrounding:
        return write_remote(open_problem(spark_engine(), file, folder, scratch), grounder, out, scratch)

    return in_scratch(out, work)


def rows(grounding: Grounding | None) -> list[list[list[int]]]:
    """All ground rules, rule by rule and in order."""
    assert grounding is not None
    return [part.atoms.tolist() for part in grounding.ground_rules]


def both(folder: Path, grounder: Grounder, out: Path) -> tuple[list[list[list[int]]], list[list[list[int]]]]:
    """What Spark finds in its tables, read back, and what arrays find in this process."""
    ground_remotely(folder, grounder, out)
    knowledge = load_problem(folder).knowledge
    return rows(read_partitioned(out, knowledge, grounder)), rows(grounder.ground(Store(knowledge)))
