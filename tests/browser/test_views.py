"""Every view at two widths and in two schemes of colours: nothing is too wide, axe-core finds no violation."""

from collections.abc import Callable
from urllib.parse import urlencode

import pytest

from tests.browser.watched_page import Look, WatchedPage

Open = Callable[..., WatchedPage]

VIEWS = {
    "home": "/",
    "answers": "/?" + urlencode({"ask": "liesIn(?, ?)"}),
    "refused": "/?" + urlencode({"ask": "liesIn(n1, , ?)"}),
    "about": "/about/n0",
    "explanation": "/explain?" + urlencode({"atom": "liesIn(n2, north)"}),
    "contrast": "/explain?" + urlencode({"atom": "liesIn(n2, north)", "against": "liesIn(n2, south)", "depth": 1}),
    "switched": "/explain?" + urlencode({"atom": "liesIn(n2, north)", "without": "liesIn(n1, north)"}),
    "what-if": "/what-if?"
    + urlencode([("without", "liesIn(n1, north)"), ("with", "near(atlantis, n2)"), ("constant", "town=atlantis")]),
    "no-changes": "/what-if",
    "rules": "/rules",
    "run": "/run",
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_can_be_read(opened: Open, look: Look, view: str) -> None:
    opened(VIEWS[view], look).looked_at(view)


def test_suggestions_can_be_read(opened: Open, look: Look) -> None:
    page = opened("/", look)
    page.find("combobox", "Question").click()
    page.write("liesIn(")
    page.page.wait_for_selector("#query-list [role=option]")
    page.press("ArrowDown")
    page.looked_at("suggestions")


def test_there_is_a_word_for_an_unknown_constant(opened: Open, look: Look) -> None:
    page = opened("/", look)
    page.may_be_refused(404)
    page.visit("/about/n99")
    page.page.get_by_role("alert").get_by_text("n99").first.wait_for()
    page.looked_at("unknown-constant")
