"""Work in numbered parts: alone, all of it, in order."""

from r2n.evaluation.ranking import ALONE, Share, in_order


def test_who_is_alone_does_everything() -> None:
    assert isinstance(ALONE, Share)
    assert ALONE.count == 1
    assert all(ALONE.takes(number) for number in range(5))
    assert ALONE.together([(1, "b"), (0, "a")]) == ["a", "b"]


def test_parts_go_by_their_numbers() -> None:
    assert in_order([(10, "c"), (2, "b"), (1, "a")]) == ["a", "b", "c"]
    assert in_order([]) == []
