"""Ground rules that Spark makes of tables it reads itself: those of this process, in order, and whole or not at all."""

from pathlib import Path

import pytest

from r2n.data.herbrand import first_codes
from r2n.errors import CheckpointError, ConfigError, DataError, GroundingError
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.cache import KeptGrounder
from r2n.grounding.full import FullGrounder
from r2n.grounding.ground_rules import Grounder
from r2n.grounding.known_body import KnownBodyGrounder
from r2n.grounding.remote import grounding
from r2n.grounding.remote.constants import RemoteConstants
from r2n.grounding.remote.grounding import COUNT_FIRST, ground_select, in_scratch, rule_query
from r2n.grounding.remote.tables import RemoteTables
from r2n.logic.parser import parse_theory
from tests.spark_place import spark_engine
from tests.spark_problem import both, ground_remotely, write_problem

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("grounder", [FullGrounder(), KnownBodyGrounder()], ids=["full", "known-body"])
def test_it_is_the_grounding_of_this_process(tmp_path: Path, grounder: Grounder) -> None:
    spark, arrays = both(write_problem(tmp_path / "problem"), grounder, tmp_path / "out")
    assert spark == arrays
    assert sum(map(len, arrays)) > 10
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "problem"]
    assert not list((tmp_path / "out").glob("[!rg_]*")), "what was written on the way is gone"


@pytest.mark.parametrize("count_first", [COUNT_FIRST, 0.01], ids=["before", "after"])
def test_too_many_ground_rules_leave_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count_first: float
) -> None:
    """They are counted before they are written where the estimate is high, else after."""
    monkeypatch.setattr(grounding, "COUNT_FIRST", count_first)
    folder = write_problem(tmp_path / "problem", problem=SHORT)
    with pytest.raises(GroundingError, match="more than max_groundings = 3"):
        ground_remotely(folder, FullGrounder(max_groundings=3), tmp_path / "out")
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


def test_ids_beyond_32_bits_are_exact_and_codes_beyond_64_are_refused() -> None:
    """More constants than 2^31: the last of one predicate's pairs still has a code, of two predicates it has none."""
    size, engine = 2**31 + 10, spark_engine()
    theory = parse_theory("domain d\npredicate p(d, d)\nrule r: p(x, y) & p(y, z) -> p(x, z)\n")
    constants = RemoteConstants(size, (size,), theory.domains)
    known = {(0, True): (2, 2, 2, 1, 1)}
    tables = RemoteTables(engine, theory, constants, known, first_codes(theory.predicates, [(size, size)]))
    x, y, z = size - 1, 2**31, 2**31 - 1
    engine.view("fact_0", f"SELECT * FROM VALUES ({x}L, {y}L), ({y}L, {z}L) AS given(a0, a1)")
    found = engine.run(ground_select(tables, rule_query(tables, KnownBodyGrounder(), theory.rules[0])))
    codes = [column.tolist() for column in found.values()]
    assert codes == [[x * size + y], [y * size + z], [x * size + z]]
    with pytest.raises(DataError, match="does not fit 64 bits"):
        first_codes(theory.predicates * 2, [(size, size)] * 2)
