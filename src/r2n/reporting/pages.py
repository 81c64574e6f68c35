"""Runs -> pages: templates -> self-contained HTML, in which names from data are text and nothing else.

A page has no script, and tells the browser to run none and to load nothing.
"""

from functools import cache
from math import isnan
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

LONGEST_NAME = 160
_CONTROLS = {*range(32), *range(127, 160), 0xFFFE, 0xFFFF} - {ord("\t"), ord("\n")}
_DIRECTIONS = {*range(0x202A, 0x202F), *range(0x2066, 0x206A)}  # left open, they would turn what stands behind a name
_UNSHOWN = dict.fromkeys(_CONTROLS | _DIRECTIONS, "\N{REPLACEMENT CHARACTER}")


def page(template: str, **values: Any) -> str:
    """A template filled in; characters that no page may hold are replaced."""
    text = _environment().get_template(template).render(**values)
    return text.translate(_UNSHOWN)


def templates_of(package: str) -> Environment:
    """The templates of a package: what they are filled with is text, and a name that is not given is an error."""
    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _environment() -> Environment:
    made = templates_of("r2n.reporting")
    made.filters |= {"short": short, "number": number, "signed": signed, "count": count, "percent": percent}
    made.filters["probability"] = probability
    return made


def short(name: str, longest: int = LONGEST_NAME) -> str:
    """A name, cut where it is very long."""
    return name if len(name) <= longest else f"{name[: longest - 1]}\N{HORIZONTAL ELLIPSIS}"


def number(value: int | float | None, digits: int = 4) -> str:
    """`0.9871`; nothing where nothing defines it."""
    return "" if value is None or isnan(value) else f"{value:.{digits}f}"


def probability(value: int | float) -> str:
    """`0.987`; one that is nearly certain is not told as certain."""
    return "under 0.001" if 0 < value < 0.0005 else "over 0.999" if 0.9995 < value < 1 else f"{value:.3f}"


def signed(value: int | float | None, digits: int = 2) -> str:
    """`+1.20`, `-0.03` with a minus sign as wide as the plus."""
    return "" if value is None or isnan(value) else f"{value:+.{digits}f}".replace("-", "\N{MINUS SIGN}")


def count(value: int | float | None) -> str:
    """`12,345`."""
    return "" if value is None else f"{value:,}"


def percent(value: int | float | None) -> str:
    """`98.3 %`."""
    return "" if value is None or isnan(value) else f"{100 * value:.1f}\N{NO-BREAK SPACE}%"
