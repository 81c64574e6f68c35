"""An explanation, drawn: colours in light and dark, and what each style of a mark looks like.

Blue speaks for an atom and orange against it, in tones that colour-blind people tell apart; whatever a colour says is
said by a dash, a sign or a word too.
"""

from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len

from r2n.explanation.drawing.marks import Number

Colour = Literal["page", "card", "ink", "quiet", "line", "for", "against", "none"]
Palette = dict[Colour, str]

LIGHT: Palette = {
    "page": "#ffffff",
    "card": "#f6f8fa",
    "ink": "#1b1f24",
    "quiet": "#57606a",
    "line": "#afb8c1",
    "for": "#0a5fae",
    "against": "#b34700",
    "none": "none",
}
DARK: Palette = {
    "page": "#0d1117",
    "card": "#161b22",
    "ink": "#e6edf3",
    "quiet": "#9da7b1",
    "line": "#565f69",
    "for": "#6cb2ff",
    "against": "#f59a55",
    "none": "none",
}
PALETTES = {"light": LIGHT, "dark": DARK}

LAST_USUAL = "\u2030"
MONOSPACE = ("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "DejaVu Sans Mono", "monospace")
SANS = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "Helvetica Neue", "Arial", "DejaVu Sans", "sans-serif")


@dataclass(frozen=True, slots=True)
class Style:
    """How a mark looks: colours by name; `size` (pixels) of words, and whether they are bold and of one width."""

    fill: Colour = "none"
    stroke: Colour = "none"
    line: Number = 1.0
    dash: tuple[Number, ...] = ()
    size: Number = 0.0
    is_bold: bool = False
    is_monospace: bool = False
    opacity: Number = 1.0


STYLES: dict[str, Style] = {
    "page": Style(fill="page"),
    "panel": Style(fill="card", stroke="line", line=1.25),
    "box": Style(fill="page", stroke="line", line=1.25),
    "tint-for": Style(fill="for"),
    "tint-against": Style(fill="against"),
    "edge-for": Style(stroke="for", line=1.25),
    "edge-against": Style(stroke="against", line=1.25, dash=(4, 3)),
    "pill-for": Style(fill="page", stroke="for", line=1.5),
    "pill-against": Style(fill="page", stroke="against", line=1.5, dash=(4, 3)),
    "flow-for": Style(stroke="for", opacity=0.6),
    "flow-against": Style(stroke="against", dash=(9, 4), opacity=0.6),
    "link": Style(stroke="line"),
    "link-back": Style(stroke="line", dash=(2, 4)),
    "sign-for": Style(stroke="for"),
    "sign-against": Style(stroke="against"),
    "track": Style(fill="line"),
    "atom": Style(fill="ink", size=13, is_monospace=True),
    "answer": Style(fill="ink", size=15, is_bold=True, is_monospace=True),
    "figure": Style(fill="ink", size=34, is_bold=True),
    "rule": Style(fill="ink", size=12.5),
    "number-for": Style(fill="for", size=12.5, is_bold=True),
    "number-against": Style(fill="against", size=12.5, is_bold=True),
    "note": Style(fill="quiet", size=11.5),
    "strong-note": Style(fill="ink", size=11.5, is_bold=True),
    "small": Style(fill="quiet", size=10.5),
    "heading": Style(fill="quiet", size=12, is_bold=True),
}


def text_width(text: str, style: str) -> float:
    """About how many pixels wide a text is, rather more than less: fonts differ from place to place."""
    look = STYLES[style]
    em = 0.615 if look.is_monospace else 0.6 if look.is_bold else 0.555
    odd = sum(character > LAST_USUAL for character in text)  # another font may stand in for these, often a wider one
    return (cell_len(text) + odd) * em * look.size
