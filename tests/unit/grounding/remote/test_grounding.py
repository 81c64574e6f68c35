"""Ground rules that Spark makes of tables it reads itself: those of this process, in order, and whole or not at all."""

from pathlib import Path

import pytest

from r2n.errors import CheckpointError, ConfigError, GroundingError
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.full import FullGrounder
from r2n.grounding.ground_rules import Grounder
from r2n.grounding.known_body import KnownBodyGrounder
from r2n.grounding.partitioned import KeptGrounder
from r2n.grounding.remote.grounding import in_scratch
from tests.spark_problem import both, ground_remotely, write_problem

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("grounder", [FullGrounder(), KnownBodyGrounder()], ids=["full", "known-body"])
def test_it_is_the_grounding_of_this_process(tmp_path: Path, grounder: Grounder) -> None:
    spark, arrays = both(write_problem(tmp_path / "problem"), grounder, tmp_path / "out")
    assert spark == arrays
    assert sum(map(len, arrays)) > 10
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "problem"]
    assert not list((tmp_path / "out").glob("[!rg_]*")), "what was written on the way is gone"


@pytest.mark.parametrize("limit", [3, 100], ids=["after", "before"])
def test_too_many_ground_rules_leave_nothing_behind(tmp_path: Path, limit: int) -> None:
    folder = write_problem(tmp_path / "problem", problem=SHORT)
    with pytest.raises(GroundingError, match=f"more than max_groundings = {limit}"):
        ground_remotely(folder, FullGrounder(max_groundings=limit), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["problem"]


SHORT = """\
theory = "theory.r2n"
domains = { city = ["it's rome", "oslo"] }
facts = { train = "train.parquet" }
"""


def test_backward_chaining_and_folders_of_something_else_are_refused(tmp_path: Path) -> None:
    folder = write_problem(tmp_path / "problem", problem=SHORT)
    with pytest.raises(ConfigError, match="backward grounding is not made from tables"):
        ground_remotely(folder, BackwardGrounder(), tmp_path / "out")
    with pytest.raises(CheckpointError, match="something that is no grounding"):
        ground_remotely(folder, KnownBodyGrounder(), folder)
    with pytest.raises(ConfigError, match="cannot be written"):
        in_scratch(folder / "theory.r2n" / "out", lambda _: ground_remotely(folder, KnownBodyGrounder(), folder))


def test_an_earlier_grounding_is_replaced(tmp_path: Path) -> None:
    folder = write_problem(tmp_path / "problem", problem=SHORT)
    ground_remotely(folder, KnownBodyGrounder(), tmp_path / "out")
    again = ground_remotely(folder, KeptGrounder(KnownBodyGrounder(), tmp_path / "out"), tmp_path / "out")
    assert len(again) == sum(part.ground_rules for part in again.rules) > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "problem"]
