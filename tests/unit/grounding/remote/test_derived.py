"""Predicates that Spark derives: by the same definitions what this process derives."""

from pathlib import Path

import pytest

from r2n.data.fact_database import Database
from r2n.errors import ConfigError
from r2n.grounding.known_body import KnownBodyGrounder
from r2n.grounding.remote.derived import SparkDatabase
from tests.spark_place import spark_engine
from tests.spark_problem import both, ground_remotely, write_problem

pytestmark = pytest.mark.spark
RULES = "rule r: reaches(x, y) & liked(y) -> knows(x, y)\n"
PROBLEM = """\
theory = "theory.r2n"
[facts]
train = "train.parquet"
background = { file = "denied.parquet", predicate = "likes" }
[derived]
reaches = ["knows(x, y) -> reaches(x, y)", "reaches(x, y) & knows(y, z) -> reaches(x, z), x != z"]
liked = "SELECT c2 FROM likes UNION SELECT c1 FROM denied.likes WHERE length(c1) > 1"
"""


def test_what_is_derived_is_what_this_process_derives(tmp_path: Path) -> None:
    folder = write_problem(tmp_path / "problem", RULES, PROBLEM)
    spark, arrays = both(folder, KnownBodyGrounder(), tmp_path / "out")
    assert spark == arrays
    assert len(arrays[0]) > 0


@pytest.mark.parametrize(
    ("definition", "what"),
    [
        ("SELECT c1 FROM elsewhere", "there is no table 'elsewhere'"),
        ("SELECT * FROM read_csv('x')", "there is no table"),
        ("SELECT c9 FROM knows", "c9"),
        ("SELECT c1 FROM knows; SELECT 1", "it is not one SELECT"),
        ("SELECT FROM WHERE (", "it cannot be read as SQL"),
        ("SELECT reflect('java.lang.System', 'getenv', 'HOME') FROM knows", "it reads the function reflect"),
        ("SELECT java_method('java.lang.System', 'exit', 1) FROM knows", "it reads the function java_method"),
        ("SELECT current_user() FROM knows", "it reads the function current_user"),
        ("SELECT CAST(rand() AS STRING) FROM knows", "it reads the function rand"),
        ("SELECT CAST(NULL AS STRING) FROM knows", "a column has no value in 1 rows"),
    ],
)
def test_a_definition_that_is_wrong_is_refused(tmp_path: Path, definition: str, what: str) -> None:
    problem = PROBLEM.split("[derived]")[0] + f'[derived]\nliked = """{definition}"""\n'
    folder = write_problem(tmp_path / "problem", RULES.replace("reaches", "knows"), problem)
    with pytest.raises(ConfigError, match=what):
        ground_remotely(folder, KnownBodyGrounder(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_it_is_a_database(tmp_path: Path) -> None:
    assert isinstance(SparkDatabase(spark_engine(), [], tmp_path), Database)
