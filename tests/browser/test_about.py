"""A constant: found as one types, with its facts, predictions, features and neighbourhood."""

from collections.abc import Callable
from urllib.parse import quote, urlencode

import pytest
from playwright.sync_api import expect

from tests.browser.page_problem import HOSTILE, LONG, MARKUP, RIGHT_TO_LEFT
from tests.browser.watched_page import Look, WatchedPage

Open = Callable[..., WatchedPage]


def test_a_constant_is_found_by_mouse(opened: Open, narrow_or_wide: Look) -> None:
    page = opened("/rules", narrow_or_wide)
    page.find("combobox", "Find a constant").click()
    page.write("N")
    page.find("option", "n3 town").click()
    expect(page.heading()).to_have_text("n3")
    expect(page.heading()).to_be_focused()
    page.expect_path("/about/n3")


def test_a_constant_is_found_by_keyboard(opened: Open, narrow_or_wide: Look) -> None:
    page = opened("/", narrow_or_wide)
    field = page.find("combobox", "Find a constant")
    page.tab_to(field)
    page.write("nor")
    page.page.wait_for_selector("#search-constant-list [role=option]")
    page.press("ArrowDown", "Enter")
    expect(page.heading()).to_have_text("north")
    page.press("Shift+Tab")
    field.focus()
    page.write("s4")
    page.press("Enter")  # without a suggestion: the first that is found
    expect(page.heading()).to_have_text("s4")


def test_its_page_tells_what_is_known_and_predicted(opened: Open, narrow_or_wide: Look) -> None:
    page = opened("/about/n2", narrow_or_wide)
    reply = page.page.request.get(page.server + "/api/about/n2?top=5").json()
    facts = page.page.locator(".facts-list li")
    expect(facts).to_have_count(reply["facts_total"])
    expect(facts.first.locator(".atom-link")).to_have_text(reply["facts"][0]["atom"])
    answers = [answer for part in reply["predictions"] for answer in part["answers"]]
    assert {answer["atom"] for answer in answers} >= {"liesIn(n2, north)", "liesIn(n2, south)"}
    shown = page.page.locator(".answers li")
    expect(shown).to_have_count(len(answers))
    best = shown.filter(has_text="liesIn(n2, north)")
    share = best.locator(".fill").evaluate("(fill) => Number(getComputedStyle(fill).getPropertyValue('--share'))")
    assert share == pytest.approx(next(a["probability"] for a in answers if a["atom"] == "liesIn(n2, north)"))
    expect(best.locator(".whisker")).to_have_count(1)
    expect(page.page.get_by_text("a town of the north, with <b>no</b> markup")).to_be_visible()


def test_its_neighbourhood_is_drawn(opened: Open, narrow_or_wide: Look) -> None:
    page = opened("/about/n2", narrow_or_wide)
    drawing = page.page.get_by_role("group", name="The neighbourhood of n2")
    for name in ("n1", "n3"):
        expect(drawing.get_by_role("link", name=name)).to_be_visible()
    expect(drawing.locator("path.tie.known").first).to_be_attached()
    drawing.get_by_role("link", name="n3").focus()
    page.press("Enter")
    expect(page.heading()).to_have_text("n3")


def test_a_fact_can_be_taken_away_from_there(opened: Open) -> None:
    page = opened("/about/n1")
    page.page.get_by_role("link", name="what if liesIn(n1, north) were not?").click()
    expect(page.page.locator(".change.without")).to_contain_text("liesIn(n1, north)")


@pytest.mark.parametrize(
    "name", HOSTILE, ids=["markup", "brackets", "right-to-left", "slashed", "quoted", "long", "dots"]
)
def test_a_hostile_name_appears_as_itself(opened: Open, name: str) -> None:
    page = opened("/about?" + urlencode({"name": name}))
    assert page.heading().text_content() == name
    assert page.page.locator("img").count() == 0
    page.visit("/")
    page.find("combobox", "Find a constant").fill(name[:12])
    option = page.page.locator("#search-constant-list [role=option] bdi")
    expect(option.first).to_be_visible()
    assert option.first.text_content() == name
    option.first.click()
    page.ready()
    assert page.heading().text_content() == name


@pytest.mark.parametrize("name", [MARKUP, RIGHT_TO_LEFT, LONG], ids=["markup", "right-to-left", "long"])
def test_an_atom_of_a_hostile_name_is_explained(opened: Open, narrow_or_wide: Look, name: str) -> None:
    page = opened("/about/" + quote(name, safe=""), narrow_or_wide)
    page.page.locator(".answers .atom-link").first.click()
    page.ready()
    expect(page.page.locator(".r2n-drawing")).to_be_visible()
    assert name in (page.heading().text_content() or "")
