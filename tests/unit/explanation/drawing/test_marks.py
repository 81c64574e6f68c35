"""Marks of a picture keep their size when they move."""

from r2n.explanation.drawing.marks import Group, Rectangle, Stroke, Words


def test_a_group_moves_as_one() -> None:
    marks = Rectangle(0, 1, 5, 6, "box", 2, 0.5), Words(1, 2, "a", "atom", "end"), Stroke(((0, 0), (1, 1)), "link", 2)
    moved = Group("title", marks).moved(10, 20)
    assert moved == Group(
        "title",
        (
            Rectangle(10, 21, 5, 6, "box", 2, 0.5),
            Words(11, 22, "a", "atom", "end"),
            Stroke(((10, 20), (11, 21)), "link", 2),
        ),
    )
