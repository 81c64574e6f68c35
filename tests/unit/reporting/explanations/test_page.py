"""The page of an explanation."""

import re

from r2n.explanation.records import Belief, Explanation
from r2n.reporting.explanations.page import explanation_fragment, explanation_page, explanation_style
from tests.explanations import italy
from tests.page_reader import read_page


def test_the_page_holds_the_drawing_and_the_same_as_lists() -> None:
    page = explanation_page(italy(), about=[("run", "runs/s2"), ("problem", "<b>")])
    read = read_page(page)
    assert read.tags["svg"] == 1
    assert read.tags["h2"] == 8
    assert "if neighborOf(france, italy) were not known: 0.97 → 0.78" in read.text
    assert "locatedIn(france, europe): believed 0.93" in read.text
    assert read.tags["b"] == 0
    assert "<b>" in read.text
    assert "<footer>" not in explanation_page(italy())


def test_it_needs_nothing_from_elsewhere() -> None:
    read = read_page(explanation_page(italy()))
    assert not {"script", "link", "img", "iframe", "object"} & set(read.tags)
    assert not [value for name, value in read.attributes if name in ("src", "href") or name.startswith("on")]
    outside = [value for _, value in read.attributes if value and "//" in value]
    assert outside == ["http://www.w3.org/2000/svg"]
    assert "url(" not in explanation_page(italy())
    assert "@import" not in explanation_page(italy())


def test_it_is_for_everybody() -> None:
    page = explanation_page(italy())
    assert '<html lang="en">' in page
    assert "width=device-width" in page
    assert page.count("prefers-color-scheme") >= 2
    assert re.search(r'role="region" aria-label="[^"]+"', page)
    assert '<span class="r2n-bar" aria-hidden="true">' in page


def test_a_bar_is_as_long_as_its_share() -> None:
    widths = re.findall(r'<i style="width:([0-9.]+)%">', explanation_page(italy()))
    assert widths[:4] == ["53.0", "91.0", "97.0", "56.5"]


def test_a_fragment_stands_in_a_page_of_others() -> None:
    fragment, style = explanation_fragment(italy()), explanation_style()
    assert fragment.startswith('<div class="r2n-scrolled"')
    assert "<html" not in fragment
    assert "--ink" in style
    classes = set(re.findall(r'class="(r2n-[a-z-]+)"', fragment)) - {"r2n-drawing"}
    unstyled = {name for name in classes if f".{name}" not in style}
    assert unstyled <= {"r2n-title", "r2n-atom-name"}


def test_an_answer_alone_is_a_page_too() -> None:
    read = read_page(explanation_page(Explanation("p(a)", Belief(0.2, -1.4), (), ())))
    assert read.tags["h2"] == 0
    assert "p(a)" in read.text
