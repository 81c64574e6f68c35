"""An explanation, shown: Explanation -> a page that needs nothing from elsewhere: its drawing, and all lines below."""

from collections.abc import Sequence
from functools import cache

from jinja2 import Environment
from markupsafe import Markup

from r2n.explanation.drawing.picture import explanation_picture
from r2n.explanation.drawing.styles import DARK, LIGHT
from r2n.explanation.drawing.svg import picture_svg
from r2n.explanation.records import Explanation
from r2n.explanation.text import answer_texts, printable, probability_text, render
from r2n.reporting.pages import templates_of


def explanation_page(explanation: Explanation, *, about: Sequence[tuple[str, str]] = ()) -> str:
    """A whole page of HTML, light or dark as its reader likes it.

    `about` are names and values for its foot: the run, the problem, what else was known.
    """
    shown = [(name, printable(value)) for name, value in about]
    return _templates().get_template("page.html").render(_told(explanation), about=shown)


def explanation_fragment(explanation: Explanation) -> Markup:
    """The drawing and the lines for a page of others; the page has to hold `explanation_style()` once."""
    return Markup(_templates().get_template("fragment.html").render(_told(explanation)))


def explanation_style() -> Markup:
    """The style sheet of fragments."""
    return Markup(_templates().get_template("style.css").render())


def _told(explanation: Explanation) -> dict[str, object]:
    picture = explanation_picture(explanation)
    return {
        "atom": printable(explanation.atom),
        "probability": probability_text(explanation.belief.probability),
        "answer": answer_texts(explanation),
        "side": "for" if explanation.belief.probability >= 0.5 else "against",
        "drawing": Markup(picture_svg(picture)),
        "width": round(picture.width),
        "told": render(explanation),
    }


@cache
def _templates() -> Environment:
    made = templates_of("r2n.reporting.explanations")
    made.globals.update(light=LIGHT, dark=DARK)
    return made
