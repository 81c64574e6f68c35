"""Line and bar charts as SVG, for the report of a run and for the served page.

A chart is as wide as a phone, so that its text can be read there. Its colours are the CSS variables of the page.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import ceil, floor, isfinite, log10
from xml.etree.ElementTree import Element, tostring

import numpy as np

from r2n.explanation.drawing import svg_element, svg_text

WIDTH = 320
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 10, 34
LEGEND_LINE, LETTER = 15, 6.2  # pixels
MOST_POINTS = 300
LOG_RATIO = 100.0  # from this ratio of the largest to the smallest value on, the axis is logarithmic
KINDS = 6  # of lines, with different colours and dashes
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

Number = int | float


@dataclass(frozen=True, slots=True)
class Series:
    """Points that a line joins; a value that is not finite leaves a gap. `steps` draws stairs, `dots` marks points."""

    name: str
    x: Sequence[Number]
    y: Sequence[Number]
    steps: bool = False
    dots: bool = False


@dataclass(frozen=True, slots=True)
class Axis:
    """Maps the values from `low` to `high` to the coordinates from `start` to `end`."""

    low: Number
    high: Number
    start: Number
    end: Number
    by_log: bool = False
    is_whole: bool = False

    def __call__(self, value: Number) -> float:
        """The coordinate of a value."""
        low, high, value = (log10(v) if self.by_log else v for v in (self.low, self.high, value))
        share = (value - low) / (high - low) if high > low else 0.5
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """About `most` round values with their coordinates and texts."""
        if not self.high > self.low:
            return []
        if self.by_log:
            first, last = ceil(log10(self.low) - 1e-9), floor(log10(self.high) + 1e-9)
            exponents = range(first, last + 1, max(1, ceil((last - first) / most)))
            powers = {e: f"10{str(e).translate(SUPERSCRIPTS)}" for e in exponents}
            return [(self(10.0**e), f"{10.0**e:,.6g}" if -2 <= e <= 3 else power) for e, power in powers.items()]
        rough = (self.high - self.low) / most
        power = 10.0 ** floor(log10(rough))
        step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
        step = max(step, 1.0) if self.is_whole else step
        values = (i * step for i in range(ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9) + 1))
        edge = 1e-9 * (self.high - self.low)
        inside = (v for v in values if self.low - edge <= v <= self.high + edge)
        return [(self(v), f"{0.0 if abs(v) < 1e-12 else v:,.6g}") for v in inside]


def line_chart(
    label: str,
    series: Sequence[Series],
    *,
    x_label: str,
    y_label: str,
    x_range: tuple[Number, Number] | None = None,
    y_range: tuple[Number, Number] | None = None,
    diagonal: bool = False,
    height: int = 200,
) -> str:
    """Series in one pair of axes with a legend below; `label` is for screen readers.

    Without a range the values give it. Without a range of y, positive values far apart get a logarithmic axis.
    """
    values = [value for part in series for value in part.y if isfinite(value)]
    by_log = y_range is None and bool(values) and min(values) > 0 and max(values) / min(values) > LOG_RATIO
    x_values = [value for part in series for value in part.x]
    is_whole = all(isinstance(value, int) for value in x_values)
    x = Axis(*(x_range or _range(x_values)), LEFT, WIDTH - RIGHT, is_whole=is_whole)
    y = Axis(*(y_range or _range(values)), height - BOTTOM, TOP, by_log)
    legend, legend_height = _legend([part.name for part in series], height) if len(series) > 1 else ([], 0)
    root = _frame(label, height + legend_height, x, y, x_label, f"{y_label} (log scale)" if by_log else y_label, 4)
    if diagonal:
        root.append(svg_element("path", "guide", d=f"M{x.start} {y.start}L{x.end} {y.end}"))
    for i, part in enumerate(series):
        kind, points = f"k{i % KINDS}", list(zip(part.x, part.y, strict=True))
        if len(points) > MOST_POINTS and not part.steps:
            points = [points[k] for k in np.linspace(0, len(points) - 1, MOST_POINTS).round().astype(int)]
        places = [(x(a), y(b)) if isfinite(a) and isfinite(b) else None for a, b in points]
        runs = [[p for p in run if p is not None] for there, run in groupby(places, lambda p: p is not None) if there]
        if part.steps:  # each level before its point
            runs = [[run[0], *(p for a, b in pairwise(run) for p in ((a[0], b[1]), b))] for run in runs]
        texts = (" ".join(f"{a:g},{b:g}" for a, b in run) for run in runs if len(run) > 1)
        dots = [at for run in runs for at in run if part.dots or len(run) == 1]
        root.extend(svg_element("polyline", f"line {kind}", points=text) for text in texts)
        root.extend(svg_element("circle", f"dot {kind}", cx=a, cy=b, r=3.2) for a, b in dots)
    root.extend(legend)
    return tostring(root, encoding="unicode")


def bar_chart(
    label: str, edges: Sequence[Number], counts: Sequence[int], *, x_label: str, y_label: str, height: int = 110
) -> str:
    """A bar between each two edges."""
    x = Axis(edges[0], edges[-1], LEFT, WIDTH - RIGHT)
    y = Axis(0, max(1, *counts), height - BOTTOM, TOP, is_whole=True)
    root = _frame(label, height, x, y, x_label, y_label, 2)
    for (left, right), count in zip(pairwise(edges), counts, strict=True):
        width = max(0.5, x(right) - x(left) - 1)
        root.append(svg_element("rect", "bar-mark", x=x(left) + 0.5, y=y(count), width=width, height=y(0) - y(count)))
    return tostring(root, encoding="unicode")


def _range(values: Iterable[Number]) -> tuple[Number, Number]:
    """From the smallest to the largest finite value, or around the only one."""
    found = [value for value in values if isfinite(value)] or [0.0, 1.0]
    low, high = min(found), max(found)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _frame(label: str, height: Number, x: Axis, y: Axis, x_label: str, y_label: str, most: int) -> Element:
    """The drawing with its axes, ticks and labels."""
    root = svg_element("svg", "chart", viewBox=f"0 0 {WIDTH} {height}")
    root.attrib |= {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "aria-label": label}
    for at, text in y.ticks(most):
        root.append(svg_element("path", "grid", d=f"M{x.start} {at:g}H{x.end}"))
        root.append(svg_text(x.start - 5, at + 3.5, text, "tick", text_anchor="end"))
    for at, text in x.ticks(5):
        root.append(svg_text(at, y.start + 14, text, "tick", text_anchor="middle"))
    root.append(svg_element("path", "axis", d=f"M{x.start} {y.end}V{y.start}H{x.end}"))
    root.append(svg_text((x.start + x.end) / 2, y.start + 29, x_label, "tick", text_anchor="middle"))
    turned = f"translate(10 {(y.start + y.end) / 2:g}) rotate(-90)"
    root.append(svg_text(0, 0, y_label, "tick", text_anchor="middle", transform=turned))
    return root


def _legend(names: Sequence[str], top: Number) -> tuple[list[Element], int]:
    """A sample of each line with its name, in as many rows as needed; and its height."""
    marks, x, y = [], LEFT, 0
    for i, name in enumerate(names):
        width = 32 + LETTER * len(name)
        x, y = (x, y or LEGEND_LINE) if x + width <= WIDTH else (LEFT, y + LEGEND_LINE)
        marks.append(svg_element("path", f"line k{i % KINDS}", d=f"M{x:g} {top + y - 7:g}h26"))
        marks.append(svg_text(x + 32, top + y - 3, name, "tick"))
        x += width + 12
    return marks, y + 3
