"""Colours that can be read and told apart, in light and dark."""

import pytest

from r2n.explanation.drawing.styles import DARK, LIGHT, STYLES, Palette, text_width


def luminance(colour: str) -> float:
    """The relative luminance of WCAG 2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_words_stand_out_from_what_is_below_them(palette: Palette) -> None:
    for below in ("page", "card"):
        assert contrast(palette["ink"], palette[below]) > 7
        for words in ("quiet", "for", "against"):
            assert contrast(palette[words], palette[below]) > 4.5


def test_whatever_a_colour_says_a_dash_says_too() -> None:
    for name in ("edge", "pill", "flow"):
        assert not STYLES[f"{name}-for"].dash
        assert STYLES[f"{name}-against"].dash


def test_a_text_is_as_wide_as_its_letters() -> None:
    assert text_width("", "atom") == 0
    assert text_width("aaaa", "atom") == pytest.approx(2 * text_width("aa", "atom"))
    assert text_width("日", "atom") > 1.5 * text_width("a", "atom")
    assert text_width("a", "answer") > text_width("a", "atom")
