"""Numbers -> drawings: every point at its place, gaps where there is no number, ticks that are round."""

from itertools import pairwise
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2n.reporting.charts import BOTTOM, LEFT, MOST_POINTS, RIGHT, TOP, WIDTH, Axis, Series, bar_chart, line_chart

ANY = st.floats(-1e12, 1e12) | st.sampled_from((nan, inf, -inf, 0.0))


def points(path: str) -> list[tuple[float, float]]:
    return [(float(a), float(b)) for a, b in (point.split(",") for point in path.split())]


def chart(*series: Series, **options: object):
    given_ = {"x_label": "epoch", "y_label": "loss"} | options
    return line_chart("words", series, **given_)  # pyright: ignore[reportArgumentType]


def test_points_stand_where_the_axes_say() -> None:
    drawn = chart(Series("a", (0, 10), (0.0, 1.0)), x_range=(0, 10), y_range=(0, 1))
    assert points(drawn.lines[0].paths[0]) == [(LEFT, drawn.height - BOTTOM), (WIDTH - RIGHT, TOP)]
    assert [tick.text for tick in drawn.x_ticks] == ["0", "2", "4", "6", "8", "10"]
    assert drawn.y_ticks[0].place == drawn.bottom
    assert (drawn.y_label, drawn.guide) == ("loss", "")


def test_what_is_no_number_leaves_a_gap_and_one_alone_is_a_dot() -> None:
    drawn = chart(Series("a", (1, 2, 3, 4, 5, 6), (1.0, 2.0, nan, 3.0, inf, 2.0)))
    assert [len(points(path)) for path in drawn.lines[0].paths] == [2]
    assert len(drawn.lines[0].dots) == 2
    alone = chart(Series("a", (7,), (0.5,)))
    assert alone.lines[0].paths == ()
    assert len(alone.lines[0].dots) == 1
    empty = chart(Series("a", (), ()))
    assert (empty.lines[0].paths, empty.lines[0].dots) == ((), ())
    assert chart().lines == ()


def test_stairs_have_each_level_before_its_point() -> None:
    drawn = chart(Series("a", (0.0, 0.5, 1.0), (1.0, 1.0, 0.5), steps=True), x_range=(0, 1), y_range=(0, 1))
    path = points(drawn.lines[0].paths[0])
    assert all(a[0] == b[0] or a[1] == b[1] for a, b in pairwise(path))
    middle, end = path[2], path[-1]
    assert path[3] == (middle[0], end[1])


def test_far_apart_is_drawn_by_logarithms() -> None:
    drawn = chart(Series("a", (1, 2, 3), (1e-6, 1.0, 1e4)))
    assert drawn.y_label == "loss (log scale)"
    places = [y for _, y in points(drawn.lines[0].paths[0])]
    assert (places[0] - places[1]) / (places[0] - places[2]) == pytest.approx(0.6, abs=0.01)
    releases = "10⁻⁵ 10⁻³ 0.1 10 1,000", "10⁻⁶ 10⁻⁴ 0.01 1 100 10⁴"  # of matplotlib: it chooses the powers of ten
    assert " ".join(tick.text for tick in drawn.y_ticks) in releases
    assert chart(Series("a", (1, 2), (0.0, 1e4))).y_label == "loss"


def test_many_points_are_thinned_and_whole_numbers_have_whole_ticks() -> None:
    drawn = chart(Series("a", tuple(range(5000)), tuple(float(i) for i in range(5000))))
    assert len(points(drawn.lines[0].paths[0])) == MOST_POINTS
    few = chart(Series("a", (1, 2), (1.0, 2.0)))
    assert [tick.text for tick in few.x_ticks] == ["1", "2"]


def test_bars_fill_the_room_between_edges() -> None:
    drawn = bar_chart("words", [0, 0.5, 1], [4, 0], x_label="", y_label="atoms")
    tall, flat = drawn.bars
    assert tall.y == TOP
    assert tall.height == drawn.bottom - TOP
    assert (flat.height, flat.y) == (0, drawn.bottom)
    assert tall.x + tall.width <= flat.x
    assert bar_chart("words", [0, 1], [0], x_label="", y_label="").bars[0].height == 0


@given(st.lists(st.lists(ANY, max_size=6), max_size=8))
def test_any_numbers_are_drawn_inside(values: list[list[float]]) -> None:
    drawn = chart(*(Series(str(i), tuple(range(len(part))), part, dots=True) for i, part in enumerate(values)))
    for line in drawn.lines:
        for x, y in (*line.dots, *(point for path in line.paths for point in points(path))):
            assert LEFT <= x <= WIDTH - RIGHT
            assert TOP <= y <= drawn.bottom
    assert all(TOP <= tick.place <= drawn.bottom for tick in drawn.y_ticks)


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9))
def test_ticks_ascend_inside_their_axis(low: float, span: float) -> None:
    axis = Axis(low, low + span, 0.0, 100.0)
    places = [tick.place for tick in axis.ticks(5)]
    assert places == sorted(places)
    assert all(-0.11 <= place <= 100.11 for place in places)
