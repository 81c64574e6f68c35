"""Records: what a reader hands over, and how refused rows become errors."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from r2n.data.records import Records, settle, shortened
from r2n.errors import DataError, Location


def somewhere(row: int, column: int | None = None) -> Location:
    return Location("source", row + 1)


def records(rows: list[int]) -> Records:
    cells = pa.array([f"cell {row}" for row in rows], pa.string())
    return Records("source", ("cell",), (cells,), np.array(rows, np.int64), somewhere)


def refuse(reason: str) -> Callable[[int], DataError]:
    return lambda row: DataError(reason, where=somewhere(row))


def test_without_keeps_the_others_and_remembers_the_fault() -> None:
    left = records([0, 3, 5]).without(np.array([False, True, False]), refuse("odd"))
    assert left.rows.tolist() == [0, 5]
    assert left.columns[0].to_pylist() == ["cell 0", "cell 5"]
    assert [fault.rows.tolist() for fault in left.faults] == [[3]]
    assert left.without(np.zeros(2, bool), refuse("never")) is left


def test_settle_raises_the_first_row_or_lists_all_in_order() -> None:
    left = records([0, 3, 5, 6])
    left = left.without(np.array([False, False, True, True]), refuse("late"))
    left = left.without(np.array([True, False]), refuse("early"))
    with pytest.raises(DataError, match="source:1: early"):
        settle(left.faults, "raise")
    assert [str(error) for error in settle(left.faults, "skip")] == [
        "source:1: early",
        "source:6: late",
        "source:7: late",
    ]
    assert settle((), "raise") == settle((), "skip") == ()


def test_shortened() -> None:
    assert shortened("abc", 3) == "abc"
    assert shortened("abcd", 3) == "ab…"
