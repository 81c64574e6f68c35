"""Why: the drawing of an explanation, its layers, and switches that move the answer."""

import json
import re
from collections.abc import Callable
from urllib.parse import urlencode

from playwright.sync_api import Locator, Route, expect

from r2n.explanation.records import probability_text
from tests.browser.watched_page import Look, WatchedPage

Open = Callable[..., WatchedPage]
ATOM = "liesIn(n2, north)"
FACT = "liesIn(n1, north)"
RULE = "neighbours"
VIEW = "/explain?" + urlencode({"atom": ATOM})


def explained(page: WatchedPage, **changes: list[str]) -> dict:
    return page.page.request.post(page.server + "/api/explain", data={"atom": ATOM, **changes}).json()


def shown(page: WatchedPage) -> str:
    return page.page.locator(".verdict .big").last.inner_text().split("\n")[-1]


def switch(page: WatchedPage, name: str) -> Locator:
    return page.page.locator(".switches").get_by_role("switch", name=name, exact=True)


def box(page: WatchedPage, name: str) -> Locator:
    return page.page.locator(".r2n-drawing").get_by_role("switch", name=re.compile(f"^{re.escape(name)}")).first


def test_an_answer_leads_to_its_explanation(opened: Open, narrow_or_wide: Look) -> None:
    page = opened("/?" + urlencode({"ask": "liesIn(n2, ?)"}), narrow_or_wide)
    page.page.get_by_role("link", name=ATOM).click()
    expect(page.heading()).to_have_text(f"Why {ATOM}?")
    found = explained(page)
    drawing = page.page.locator(".r2n-drawing")
    expect(drawing.locator(".node")).to_have_count(len(found["drawing"]["nodes"]))
    rows = page.page.locator(".layers tbody tr")
    expect(rows).to_have_count(len(found["layers"]))
    expect(rows.last.locator(".number")).to_have_text(probability_text(found["layers"][-1]["probability"]))


def test_the_drawing_of_the_server_has_the_colours_of_the_page(opened: Open, look: Look) -> None:
    page = opened(VIEW, look)
    drawing = page.page.locator(".r2n-drawing")
    rules = sum(node["kind"] == "rule" for node in explained(page)["drawing"]["nodes"])
    expect(drawing.locator("path:has(> title)")).to_have_count(rules)
    colour = "(one) => getComputedStyle(one)[{path: 'stroke', text: 'fill'}[one.tagName]]"
    shown = [drawing.locator(mark).first.evaluate(colour) for mark in ("path.flow-for", "text.atom")]
    expected = {"light": ["rgb(10, 95, 168)", "rgb(27, 33, 41)"], "dark": ["rgb(127, 189, 245)", "rgb(230, 234, 239)"]}
    assert shown == expected[look.scheme]


def test_a_drawing_that_could_act_is_stripped(opened: Open) -> None:
    page = opened("/")
    active = "<script>document.title = 'acted'</script><a href='javascript:alert(1)'><text>x</text></a>"

    def with_script(route: Route) -> None:
        document = route.fetch().json()
        wide = document["drawing"]["svg"].replace("<desc>", f"{active}<desc>")
        document["drawing"]["svg"] = wide.replace("<rect ", "<rect onclick='x()' ")
        route.fulfill(body=json.dumps(document), content_type="application/json")

    page.page.route("**/api/explain", with_script)
    page.visit(VIEW)
    drawing = page.page.locator(".r2n-drawing")
    expect(drawing.locator(".node").first).to_be_visible()
    expect(drawing.locator("script, [onclick], a[href^=javascript]")).to_have_count(0)
    assert all("Content Security Policy" in fault for fault in page.faults)  # which reports what it refuses
    page.faults.clear()


def test_a_fact_is_switched_off_and_on_by_mouse(opened: Open, narrow_or_wide: Look) -> None:
    page = opened(VIEW, narrow_or_wide)
    before, after = explained(page), explained(page, without=[FACT])
    assert before["logit"] != after["logit"]
    box(page, FACT).click()
    expect(page.page.locator("#verdict")).to_contain_text(f"logit {before['logit']:.2f} → {after['logit']:.2f}")
    page.expect_path("/explain?" + urlencode({"atom": ATOM, "without": FACT}))
    expect(switch(page, FACT)).to_have_attribute("aria-checked", "false")
    switch(page, FACT).click()
    expect(page.page.locator("#verdict")).to_have_count(0)
    page.expect_path(VIEW)


def test_a_fact_is_switched_off_by_keyboard(opened: Open, narrow_or_wide: Look) -> None:
    page = opened(VIEW, narrow_or_wide)
    page.tab_to(box(page, FACT))
    page.press("Space")
    expect(page.page.locator("#verdict")).to_be_visible()
    page.tab_to(switch(page, FACT), most=120)
    expect(switch(page, FACT)).to_have_attribute("aria-checked", "false")
    page.press("Enter")
    expect(page.page.locator("#verdict")).to_have_count(0)
    expect(switch(page, FACT)).to_be_focused()


def test_a_rule_is_switched_off(opened: Open, narrow_or_wide: Look) -> None:
    page = opened(VIEW, narrow_or_wide)
    after = explained(page, without_rules=[RULE])
    switch(page, RULE).press("Space")
    expect(page.page.locator("#verdict")).to_contain_text(f"→ {after['logit']:.2f}")
    expect(switch(page, RULE)).to_be_focused()
    page.page.go_back()
    expect(page.page.locator("#verdict")).to_have_count(0)


def test_a_link_shows_the_same_switches(opened: Open) -> None:
    query = urlencode({"atom": ATOM, "without": FACT, "without_rule": RULE})
    page = opened(f"/explain?{query}")
    after = explained(page, without=[FACT], without_rules=[RULE])
    expect(page.page.locator("#verdict")).to_contain_text(f"→ {after['logit']:.2f}")
    for name in (FACT, RULE):
        expect(switch(page, name)).to_have_attribute("aria-checked", "false")


def test_an_atom_is_held_against_another(opened: Open) -> None:
    page = opened(VIEW)
    page.find("combobox", "Rather than which atom?").fill("liesIn(n2, south)")
    page.press("Enter")
    expect(page.page.get_by_role("heading", name="Rather than liesIn(n2, south)")).to_be_visible()


def test_the_reasons_are_told_in_words(opened: Open) -> None:
    page = opened(VIEW)
    first = explained(page)["reasons"][0]
    words = page.page.locator(".reasons > li").first
    expect(words).to_contain_text(first["ground_rule"])
    words.get_by_role("link").first.click()
    expect(page.heading()).to_have_text(f"Why {first['because'][0]['atom']}?")
