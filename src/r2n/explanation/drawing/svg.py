"""An explanation, drawn: Picture -> SVG that stands alone, or within a page."""

from typing import Literal
from xml.etree.ElementTree import Element, SubElement, tostring

from r2n.explanation.drawing.marks import Mark, Number, Picture, Rectangle, Stroke, Words
from r2n.explanation.drawing.picture import explanation_picture
from r2n.explanation.drawing.styles import DARK, LIGHT, MONOSPACE, PALETTES, SANS, STYLES, Palette, Style
from r2n.explanation.records import Explanation

Theme = Literal["auto", "light", "dark"]


def explanation_svg(explanation: Explanation, *, theme: Theme = "auto") -> str:
    """The drawing of an explanation; `auto` is light or dark as its reader likes it (`prefers-color-scheme`).

    It needs nothing from elsewhere and has no ids, so that several can stand in one page.
    """
    return picture_svg(explanation_picture(explanation), theme)


def picture_svg(picture: Picture, theme: Theme = "auto") -> str:
    """A picture as SVG."""
    width, height = _number(picture.width), _number(picture.height)
    names = {"xmlns": "http://www.w3.org/2000/svg", "class": "r2n-drawing", "role": "img", "aria-label": picture.title}
    root = Element("svg", {**names, "width": width, "height": height, "viewBox": f"0 0 {width} {height}"})
    SubElement(root, "title").text = picture.title
    SubElement(root, "desc").text = picture.description
    SubElement(root, "style").text = _sheet(theme)
    for group in picture.groups:
        parent = SubElement(root, "g")
        if group.title:
            SubElement(parent, "title").text = group.title
        for mark in group.marks:
            _add(parent, mark)
    return tostring(root, encoding="unicode")


def _add(parent: Element, mark: Mark) -> None:
    kind = {"class": mark.style}
    if isinstance(mark, Rectangle):
        numbers = {"x": mark.x, "y": mark.y, "width": mark.width, "height": mark.height, "rx": mark.radius}
        shown = {"fill-opacity": _number(mark.strength)} if mark.strength < 1 else {}
        shown |= {"stroke-width": _number(STYLES[mark.style].line)} if STYLES[mark.style].stroke != "none" else {}
        SubElement(parent, "rect", {**kind, **{name: _number(value) for name, value in numbers.items()}, **shown})
    elif isinstance(mark, Words):
        place = {"x": _number(mark.x), "y": _number(mark.y)}
        anchor = {} if mark.anchor == "start" else {"text-anchor": mark.anchor}
        SubElement(parent, "text", {**kind, **place, **anchor}).text = mark.text
    else:
        SubElement(parent, "path", {**kind, "d": _path(mark), "stroke-width": _number(mark.width)})


def _path(stroke: Stroke) -> str:
    points = [f"{_number(x)} {_number(y)}" for x, y in stroke.points]
    return f"M{points[0]} {'C' if stroke.is_curve else 'L'}{' '.join(points[1:])}"


def _number(value: Number) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _sheet(theme: Theme) -> str:
    """The styles of all marks; colours twice where the reader's browser is to choose."""
    shapes = [f".r2n-drawing .{name}{{{_shape(style)}}}" for name, style in STYLES.items()]
    if theme != "auto":
        return "".join([*shapes, *_colours(PALETTES[theme])])
    dark = "".join(_colours(DARK))
    return "".join([*shapes, *_colours(LIGHT), f"@media (prefers-color-scheme:dark){{{dark}}}"])


def _shape(style: Style) -> str:
    if style.size:
        family = ",".join(f"'{name}'" if " " in name else name for name in (MONOSPACE if style.is_monospace else SANS))
        weight = 600 if style.is_bold else 400
        return f"font:{weight} {_number(style.size)}px {family};white-space:pre"
    dash = f";stroke-dasharray:{' '.join(map(_number, style.dash))}" if style.dash else ""
    opacity = f";stroke-opacity:{style.opacity}" if style.opacity < 1 else ""
    return f"stroke-linejoin:round{dash}{opacity}"


def _colours(palette: Palette) -> list[str]:
    return [
        f".r2n-drawing .{name}{{fill:{palette[style.fill]};stroke:{palette[style.stroke]}}}"
        for name, style in STYLES.items()
    ]
