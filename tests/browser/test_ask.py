"""Asking: completion, errors with a caret, and answers that sort, filter, hide what is known and can be taken along."""

import csv
import io
import json
from collections.abc import Callable
from urllib.parse import urlencode

from playwright.sync_api import Locator, expect

from tests.browser.watched_page import Look, WatchedPage

Open = Callable[..., WatchedPage]
EVERYTHING = "/?" + urlencode({"ask": "liesIn(?, ?)", "top": "44"})


def rows(page: WatchedPage) -> Locator:
    return page.page.locator("tbody tr")


def atoms(page: WatchedPage) -> list[str]:
    return page.page.locator("tbody th").all_inner_texts()


def numbers(page: WatchedPage) -> list[float]:
    return [float(text.strip("<>")) for text in page.page.locator("tbody .number").all_inner_texts()]


def test_a_question_is_completed_and_asked_by_mouse(opened: Open, narrow_or_wide: Look) -> None:
    page = opened("/", narrow_or_wide)
    field = page.find("combobox", "Question")
    field.click()
    page.write("lies")
    page.find("option", "liesIn(").click()
    page.page.locator("#query-list").get_by_text("n2", exact=False).first.wait_for()
    page.write("n2, ")
    page.find("option", "?)").click()
    expect(field).to_have_value("liesIn(n2, ?)")
    page.find("button", "Ask").click()
    expect(rows(page)).to_have_count(2)
    page.expect_path("/?" + urlencode({"ask": "liesIn(n2, ?)"}))


def test_a_question_is_completed_and_asked_by_keyboard(opened: Open, narrow_or_wide: Look) -> None:
    page = opened("/", narrow_or_wide)
    field = page.find("combobox", "Question")
    page.tab_to(field)
    page.write("nea")
    expect(page.page.locator("#query-list [role=option]")).to_have_count(1)
    page.press("ArrowDown")
    expect(field).to_have_attribute("aria-activedescendant", "query-list-0")
    page.press("Enter")
    expect(field).to_have_value("near(")
    page.write("n2, ?)")
    page.press("Enter")
    expect(rows(page).first).to_be_visible()
    expect(field).to_be_focused()
    expect(page.page.locator("#query-list")).to_be_hidden()
    expect(page.page.get_by_role("status")).to_contain_text("answers to near(n2, ?)")


def test_what_is_wrong_is_said_with_a_caret(opened: Open, narrow_or_wide: Look) -> None:
    page = opened("/", narrow_or_wide)
    page.find("combobox", "Question").fill("liesIn(n1, , ?)")
    page.press("Enter")
    alert = page.find("alert")
    expect(alert).to_contain_text("a constant or ? was expected")
    assert alert.locator("pre").inner_text().rstrip().split("\n") == ["liesIn(n1, , ?)", " " * 10 + "^"]
    page.find("combobox", "Question").fill("liesIn(n1, nort)")
    page.press("Enter")
    expect(alert).to_contain_text("north")


def test_answers_sort_by_mouse_and_by_keyboard(opened: Open, narrow_or_wide: Look) -> None:
    page = opened(EVERYTHING, narrow_or_wide)
    by_probability = page.find("button", "Probability")
    by_probability.click()
    assert numbers(page) == sorted(numbers(page), reverse=True)
    by_probability.press("Enter")
    assert numbers(page) == sorted(numbers(page))
    expect(by_probability).to_be_focused()
    expect(page.find("columnheader", "Probability")).to_have_attribute("aria-sort", "ascending")
    found = atoms(page)
    page.page.reload()
    page.ready()
    assert atoms(page) == found


def test_answers_are_filtered(opened: Open) -> None:
    page = opened(EVERYTHING)
    page.page.get_by_label("Filter").fill("(N2,")
    expect(rows(page)).to_have_count(2)
    page.page.reload()
    page.ready()
    expect(rows(page)).to_have_count(2)
    expect(page.page.get_by_label("Filter")).to_have_value("(N2,")


def test_what_is_known_can_be_hidden(opened: Open, narrow_or_wide: Look) -> None:
    page = opened(EVERYTHING, narrow_or_wide)
    expect(page.page.locator(".mark.is-true")).to_have_count(12)
    box = page.find("checkbox", "Hide what is known")
    box.press("Space")
    expect(page.page.locator(".mark.is-true")).to_have_count(0)
    expect(page.page.locator("#caption")).to_contain_text("12 known already and hidden")
    expect(box).to_be_focused()
    box.click()
    expect(page.page.locator(".mark.is-true")).to_have_count(12)


def test_answers_are_downloaded_as_they_are_shown(opened: Open) -> None:
    page = opened(EVERYTHING)
    page.page.get_by_label("Filter").fill("(n")
    asked = {"queries": ["liesIn(?, ?)"], "top": 44}
    reply = page.page.request.post(page.server + "/api/query", data=asked).json()["results"][0]["answers"]
    reply = [answer for answer in reply if "(n" in answer["atom"]]
    name, text = page.downloaded(page.find("button", "Download JSON"))
    assert name == "answers.json"
    assert json.loads(text)["answers"] == reply
    name, text = page.downloaded(page.find("button", "Download CSV"))
    assert name == "answers.csv"
    lines = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [(line["atom"], float(line["probability"])) for line in lines] == [
        (answer["atom"], answer["probability"]) for answer in reply
    ]


def test_back_and_forward_show_what_was_shown(opened: Open) -> None:
    page = opened("/?" + urlencode({"ask": "liesIn(n2, ?)"}))
    page.page.locator("tbody a.atom-link").first.click()
    expect(page.heading()).to_contain_text("Why")
    page.page.go_back()
    expect(rows(page)).to_have_count(2)
    expect(page.find("combobox", "Question")).to_have_value("liesIn(n2, ?)")
    page.page.go_forward()
    expect(page.heading()).to_contain_text("Why")


def test_more_answers_are_shown_on_demand(opened: Open) -> None:
    page = opened("/?" + urlencode({"ask": "liesIn(?, ?)", "top": "5"}))
    expect(rows(page)).to_have_count(5)
    page.find("button", "Show more").click()
    expect(rows(page)).to_have_count(25)
