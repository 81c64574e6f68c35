"""Charts: every point at its place, gaps where there is no number, round ticks, and names as text."""

from itertools import pairwise
from math import inf, nan
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2n.reporting.pages import BOTTOM, LEFT, MOST_POINTS, RIGHT, TOP, WIDTH, Series, bar_chart, line_chart

ANY = st.floats(-1e12, 1e12) | st.sampled_from((nan, inf, -inf, 0.0))
FLOOR = 200 - BOTTOM
Points = list[tuple[float, float]]


def chart(*series: Series, **options: object) -> Element:
    given_ = {"x_label": "epoch", "y_label": "loss"} | options
    return ElementTree.fromstring(line_chart("label", series, **given_))  # pyright: ignore[reportArgumentType]


def lines(root: Element) -> list[Points]:
    paths = [e.get("points", "") for e in root.iter() if e.tag.endswith("polyline")]
    return [[(float(a), float(b)) for a, b in (point.split(",") for point in path.split())] for path in paths]


def dots(root: Element) -> Points:
    return [(float(e.get("cx", 0)), float(e.get("cy", 0))) for e in root.iter() if e.tag.endswith("circle")]


def texts(root: Element) -> list[str]:
    return [e.text or "" for e in root.iter() if e.tag.endswith("text")]


def test_points_stand_where_the_axes_say() -> None:
    root = chart(Series("a", (0, 10), (0.0, 1.0)), x_range=(0, 10), y_range=(0, 1))
    assert lines(root) == [[(LEFT, FLOOR), (WIDTH - RIGHT, TOP)]]
    assert texts(root) == ["0", "0.5", "1", "0", "2", "4", "6", "8", "10", "epoch", "loss"]
    assert (root.get("role"), root.get("aria-label")) == ("img", "label")


def test_a_value_that_is_no_number_leaves_a_gap_and_a_single_one_is_a_dot() -> None:
    root = chart(Series("a", (1, 2, 3, 4, 5, 6), (1.0, 2.0, nan, 3.0, inf, 2.0)))
    assert [len(line) for line in lines(root)] == [2]
    assert len(dots(root)) == 2
    alone = chart(Series("a", (7,), (0.5,)))
    assert (lines(alone), len(dots(alone))) == ([], 1)
    assert lines(chart(Series("a", (), ()))) == lines(chart()) == []


def test_stairs_have_each_level_before_its_point() -> None:
    root = chart(Series("a", (0.0, 0.5, 1.0), (1.0, 1.0, 0.5), steps=True), x_range=(0, 1), y_range=(0, 1))
    (path,) = lines(root)
    assert all(a[0] == b[0] or a[1] == b[1] for a, b in pairwise(path))
    assert path[3] == (path[2][0], path[-1][1])


def test_values_far_apart_have_a_logarithmic_axis() -> None:
    root = chart(Series("a", (1, 2, 3), (1e-6, 1.0, 1e4)))
    assert "loss (log scale)" in texts(root)
    places = [y for _, y in lines(root)[0]]
    assert (places[0] - places[1]) / (places[0] - places[2]) == pytest.approx(0.6, abs=0.01)
    assert texts(root)[:4] == ["10⁻⁶", "10⁻³", "1", "1,000"]
    assert "loss" in texts(chart(Series("a", (1, 2), (0.0, 1e4))))


def test_many_points_are_thinned_and_epochs_have_whole_ticks() -> None:
    root = chart(Series("a", tuple(range(5000)), tuple(float(i) for i in range(5000))))
    assert len(lines(root)[0]) == MOST_POINTS
    few = chart(Series("a", (1, 2), (1.0, 2.0)))
    assert texts(few)[-4:-2] == ["1", "2"]


def test_several_lines_have_a_legend_below_in_which_names_are_text() -> None:
    names = [f"<b>{i}" * 5 for i in range(8)]
    root = chart(*(Series(name, (1, 2), (1.0, 2.0)) for name in names))
    assert texts(root)[-8:] == names
    assert float((root.get("viewBox") or "").split()[3]) == 203 + 8 * 15


def test_bars_fill_the_room_between_edges() -> None:
    def bars(edges: list[float], counts: list[int]) -> list[dict[str, float]]:
        root = ElementTree.fromstring(bar_chart("label", edges, counts, x_label="", y_label="atoms"))
        found = [e for e in root.iter() if e.get("class") == "bar-mark"]
        return [{key: float(e.get(key, 0)) for key in ("x", "y", "width", "height")} for e in found]

    tall, flat = bars([0, 0.5, 1], [4, 0])
    assert (tall["y"], tall["height"]) == (TOP, 110 - BOTTOM - TOP)
    assert (flat["y"], flat["height"]) == (110 - BOTTOM, 0)
    assert tall["x"] + tall["width"] <= flat["x"]
    assert bars([0, 1], [0])[0]["height"] == 0


@given(st.lists(st.lists(ANY, max_size=6), max_size=8))
def test_any_numbers_are_drawn_inside(values: list[list[float]]) -> None:
    root = chart(*(Series(str(i), tuple(range(len(part))), part, dots=True) for i, part in enumerate(values)))
    for x, y in (*dots(root), *(point for line in lines(root) for point in line)):
        assert LEFT <= x <= WIDTH - RIGHT
        assert TOP <= y <= FLOOR
    ticks = [float(e.get("y", 0)) - 3.5 for e in root.iter() if e.get("text-anchor") == "end"]
    assert ticks == sorted(ticks, reverse=True)
    assert len(ticks) <= 7
    assert all(TOP - 0.2 <= tick <= FLOOR + 0.2 for tick in ticks)
