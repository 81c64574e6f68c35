"""Pages are whole files of text; names from data are nothing but text in them, and stay readable."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2n.reporting import pages
from r2n.reporting.pages import count, number, page, percent, probability, short, signed

STYLE = (Path(pages.__file__).parent / "templates" / "style.css").read_text(encoding="utf-8")


def test_numbers_in_words() -> None:
    assert (number(0.98765), number(None), number(float("nan")), number(1.5, 1)) == ("0.9877", "", "", "1.5")
    assert (signed(1.25), signed(-0.031), signed(None)) == ("+1.25", "\N{MINUS SIGN}0.03", "")
    assert (count(12345), count(None)) == ("12,345", "")
    assert (percent(0.983), percent(None)) == ("98.3\N{NO-BREAK SPACE}%", "")
    assert [probability(p) for p in (0.0, 0.0001, 0.25, 0.99999, 1.0)] == [
        "0.000",
        "under 0.001",
        "0.250",
        "over 0.999",
        "1.000",
    ]


def test_long_names_are_cut() -> None:
    assert short("x" * 160) == "x" * 160
    assert short("x" * 10_000) == "x" * 159 + "\N{HORIZONTAL ELLIPSIS}"
    assert short("abc", 2) == "a\N{HORIZONTAL ELLIPSIS}"


@given(st.text(st.characters(codec=None), max_size=60))
def test_what_no_page_may_hold_is_replaced(name: str) -> None:
    text = page("page.html.j2", title=name)
    assert not set(text) & {"\x00", "\x1b", "\u202e", "\u2066", "\x85"}
    title = re.search("<title>(.*)</title>", text, re.S)
    assert title is not None
    assert not set(title.group(1)) & set("<>\"'")
    text.encode("utf-8", "replace").decode()


def colours(block: str) -> dict[str, tuple[float, float, float]]:
    """The variables of a block that are colours, from 0 to 1."""
    found = re.findall(r"--(\w+): #([0-9a-f]{3}(?:[0-9a-f]{3})?);", block)
    whole = {name: code if len(code) == 6 else "".join(2 * c for c in code) for name, code in found}
    return {name: tuple(int(code[i : i + 2], 16) / 255 for i in (0, 2, 4)) for name, code in whole.items()}  # pyright: ignore[reportReturnType]


def contrast(one: tuple[float, float, float], other: tuple[float, float, float]) -> float:
    """As WCAG 2 defines it."""

    def luminance(colour: tuple[float, float, float]) -> float:
        red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_colours_can_be_told_apart_light_dark_and_printed() -> None:
    """WCAG AA: 4.5 for text, 3 for what is drawn."""
    light, dark, printed = (colours(block) for block in re.findall(r":root \{(.*?)\}", STYLE, re.S))
    assert light.keys() == dark.keys() == printed.keys()
    assert contrast((0, 0, 0), (1, 1, 1)) == pytest.approx(21)
    for scheme in (light, dark, printed):
        for behind in ("page", "card"):
            for name in ("text", "quiet", "accent", "good", "bad"):
                assert contrast(scheme[name], scheme[behind]) >= 4.5, (name, behind)
            for i in range(6):
                assert contrast(scheme[f"c{i}"], scheme[behind]) >= 3, (i, behind)
        assert contrast(scheme["r0"], scheme["r2"]) >= 2
