"""Runs -> pages: numbers -> charts, laid out in the units of a small drawing that templates write as SVG.

A chart is as wide as a phone, so that its letters can be read there; on a wide screen several stand side by side.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import isfinite, log10

import numpy as np
from matplotlib.ticker import LogLocator, MaxNLocator

WIDTH = 320
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 10, 34
MOST_POINTS = 300
MUCH = 100.0  # between the largest and the smallest of a chart that may be drawn by logarithms
KINDS = 6  # of lines, told apart by colour and dashes

Number = int | float


@dataclass(frozen=True, slots=True)
class Series:
    """Points to be joined; one that is not finite leaves a gap. `steps`: as stairs, each level before its point."""

    name: str
    x: Sequence[Number]
    y: Sequence[Number]
    steps: bool = False
    dots: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar from the bottom of the drawing."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark of an axis: its place, and what stands there."""

    place: float
    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """A series as it is drawn: `kind` is the number of its colour; `paths` have no gap, as points of SVG."""

    name: str
    kind: int
    paths: tuple[str, ...]
    dots: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing; `words` tell those who do not see it what it shows."""

    words: str
    height: int
    x_label: str
    y_label: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    lines: tuple[Line, ...] = ()
    bars: tuple[Bar, ...] = ()
    guide: str = ""

    width = WIDTH
    left, right, top = LEFT, WIDTH - RIGHT, TOP

    @property
    def bottom(self) -> int:
        """Where the x-axis lies."""
        return self.height - BOTTOM


@dataclass(frozen=True, slots=True)
class Axis:
    """Numbers from `low` to `high` -> places from `start` to `end`; where they are whole, the ticks are."""

    low: Number
    high: Number
    start: Number
    end: Number
    by_log: bool = False
    is_whole: bool = False

    def __call__(self, value: Number) -> float:
        """Where a number stands."""
        low, high, value = (log10(v) if self.by_log else v for v in (self.low, self.high, value))
        share = (value - low) / (high - low) if high > low else 0.5
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self, most: int) -> tuple[Tick, ...]:
        """Round numbers on it."""
        steps = [1, 2, 5, 10] if self.is_whole else [1, 2, 2.5, 5, 10]
        in_steps = MaxNLocator(most, steps=steps, integer=self.is_whole)
        locator = LogLocator(numticks=most + 1) if self.by_log else in_steps
        values = [float(v) for v in locator.tick_values(self.low, self.high)]
        below, above = (self.low, self.high) if self.by_log else 2 * (self.high - self.low,)
        inside = [v for v in values if self.low - 1e-9 * below <= v <= self.high + 1e-9 * above]
        return tuple(Tick(self(v), _power_text(v) if self.by_log else _text(v)) for v in inside)


def _text(value: float) -> str:
    return f"{0.0 if abs(value) < 1e-12 else value:,.6g}"


def _power_text(value: float) -> str:
    """`0.01`, `1`, `100`, and the power of ten where that is shorter."""
    exponent = round(log10(value))
    if -2 <= exponent <= 3 or abs(log10(value) - exponent) > 1e-9:
        return _text(value)
    return "10" + str(exponent).translate(
        str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")
    )


def line_chart(
    words: str,
    series: Sequence[Series],
    *,
    x_label: str,
    y_label: str,
    x_range: tuple[Number, Number] | None = None,
    y_range: tuple[Number, Number] | None = None,
    guide: bool = False,
    height: int = 200,
) -> Chart:
    """Series in one pair of axes; `guide`: with the diagonal. Without a range, the numbers give it.

    Positive numbers far apart, without a range, are drawn by logarithms.
    """
    by_log = y_range is None and _are_far_apart(value for part in series for value in part.y)
    is_whole = all(isinstance(value, int) for part in series for value in part.x)
    x_range = x_range or _range(value for part in series for value in part.x)
    x = Axis(*x_range, LEFT, WIDTH - RIGHT, is_whole=is_whole)
    y = Axis(*(y_range or _range(value for part in series for value in part.y)), height - BOTTOM, TOP, by_log)
    lines = tuple(_line(part, i % KINDS, x, y) for i, part in enumerate(series))
    diagonal = f"{x(x.low)},{y(y.low)} {x(x.high)},{y(y.high)}" if guide else ""
    label = f"{y_label} (log scale)" if by_log else y_label
    return Chart(words, height, x_label, label, x.ticks(5), y.ticks(4), lines, guide=diagonal)


def bar_chart(
    words: str, edges: Sequence[Number], counts: Sequence[int], *, x_label: str, y_label: str, height: int = 110
) -> Chart:
    """A bar between each two edges."""
    x = Axis(edges[0], edges[-1], LEFT, WIDTH - RIGHT)
    y = Axis(0, max(1, *counts), height - BOTTOM, TOP, is_whole=True)
    bars = tuple(
        Bar(x(a) + 0.5, y(count), max(0.5, x(b) - x(a) - 1), round(y(0) - y(count), 1))
        for a, b, count in zip(edges[:-1], edges[1:], counts, strict=True)
    )
    return Chart(words, height, x_label, y_label, x.ticks(5), y.ticks(2), bars=bars)


def _are_far_apart(values: Iterable[Number]) -> bool:
    found = [value for value in values if isfinite(value)]
    return bool(found) and min(found) > 0 and max(found) / min(found) > MUCH


def _range(values: Iterable[Number]) -> tuple[Number, Number]:
    """From the smallest to the largest, or around the only one."""
    found = [value for value in values if isfinite(value)]
    if not found:
        return 0.0, 1.0
    low, high = min(found), max(found)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _line(series: Series, kind: int, x: Axis, y: Axis) -> Line:
    points = list(zip(series.x, series.y, strict=True))
    if len(points) > MOST_POINTS and not series.steps:
        points = [points[i] for i in np.linspace(0, len(points) - 1, MOST_POINTS).round().astype(int)]
    places = [(x(a), y(b)) if isfinite(a) and isfinite(b) else None for a, b in points]
    runs = [[p for p in run if p is not None] for there, run in groupby(places, lambda p: p is not None) if there]
    dots = (
        [place for place in places if place is not None] if series.dots else [run[0] for run in runs if len(run) == 1]
    )
    return Line(series.name, kind, tuple(_path(run, series.steps) for run in runs if len(run) > 1), tuple(dots))


def _path(places: Sequence[tuple[float, float]], steps: bool) -> str:
    if steps:
        corners = [(a[0], b[1]) for a, b in pairwise(places)]
        places = [places[0], *(point for pair in zip(corners, places[1:], strict=True) for point in pair)]
    return " ".join(f"{a:g},{b:g}" for a, b in places)
