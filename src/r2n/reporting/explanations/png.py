"""An explanation, drawn: Picture -> a PNG file, by matplotlib without a display."""

import warnings
from io import BytesIO
from pathlib import Path
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.path import Path as Outline

from r2n.explanation.drawing.marks import Mark, Number, Picture, Rectangle, Stroke, Words
from r2n.explanation.drawing.picture import explanation_picture
from r2n.explanation.drawing.styles import PALETTES, STYLES, Palette, Style
from r2n.explanation.records import Explanation
from r2n.reporting.files import write_file

DOTS = 100.0  # pixels of a picture to an inch
MOST_PIXELS = 8_000  # of a side
POINTS = 72 / DOTS  # to a pixel


def write_explanation_png(
    explanation: Explanation, path: Path | str, *, theme: Literal["light", "dark"] = "light", scale: Number = 2.0
) -> None:
    """Draw an explanation into a PNG file, `scale` dots to each pixel of the drawing, and fewer where it is large."""
    write_file(Path(path), picture_png(explanation_picture(explanation), theme, scale))


def picture_png(picture: Picture, theme: Literal["light", "dark"] = "light", scale: Number = 2.0) -> bytes:
    """A picture as the bytes of a PNG."""
    scale = min(scale, MOST_PIXELS / max(picture.width, picture.height))
    figure = Figure(figsize=(picture.width / DOTS, picture.height / DOTS), dpi=DOTS * scale)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, picture.width), ylim=(picture.height, 0))
    axes.set_axis_off()
    for group in picture.groups:
        for mark in group.marks:
            _add(axes, mark, PALETTES[theme])
    sink = BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a name may have letters that matplotlib's fonts lack: a box stands for them
        figure.savefig(sink, format="png", facecolor=PALETTES[theme]["page"], metadata={"Software": "r2n"})
    return sink.getvalue()


def _add(axes: Axes, mark: Mark, palette: Palette) -> None:
    style = STYLES[mark.style]
    if isinstance(mark, Words):
        axes.text(
            mark.x,
            mark.y,
            mark.text,
            color=palette[style.fill],
            fontsize=style.size * POINTS,
            fontfamily="DejaVu Sans Mono" if style.is_monospace else "DejaVu Sans",
            fontweight="bold" if style.is_bold else "normal",
            horizontalalignment={"start": "left", "middle": "center", "end": "right"}[mark.anchor],
            verticalalignment="baseline",
            parse_math=False,
        )
    elif isinstance(mark, Rectangle):
        _add_rectangle(axes, mark, style, palette)
    else:
        _add_stroke(axes, mark, style, palette)


def _add_rectangle(axes: Axes, mark: Rectangle, style: Style, palette: Palette) -> None:
    if mark.width <= 0 or mark.height <= 0:
        return
    radius = min(mark.radius, mark.width / 2, mark.height / 2)
    inside = mark.width - 2 * radius, mark.height - 2 * radius
    fill = "none" if style.fill == "none" else to_rgba(palette[style.fill], mark.strength)
    axes.add_patch(
        FancyBboxPatch(
            (mark.x + radius, mark.y + radius),
            *inside,
            boxstyle=f"round,pad={radius},rounding_size={radius}" if radius else "square,pad=0",
            facecolor=fill,
            edgecolor=palette[style.stroke],
            linewidth=style.line * POINTS if style.stroke != "none" else 0,
            linestyle=_dash(style, style.line),
        )
    )


def _add_stroke(axes: Axes, mark: Stroke, style: Style, palette: Palette) -> None:
    step = Outline.CURVE4 if mark.is_curve else Outline.LINETO
    outline = Outline(mark.points, [Outline.MOVETO, *[step] * (len(mark.points) - 1)])
    axes.add_patch(
        PathPatch(
            outline,
            facecolor="none",
            edgecolor=to_rgba(palette[style.stroke], style.opacity),
            linewidth=mark.width * POINTS,
            linestyle=_dash(style, mark.width),
            capstyle="butt",
            joinstyle="round",
        )
    )


def _dash(style: Style, width: Number) -> str | tuple[Number, tuple[Number, ...]]:
    """Dashes are counted in pixels here, in widths of the line by matplotlib."""
    return (0.0, tuple(length / width for length in style.dash)) if style.dash else "solid"
