"""The rules, and the run: curves, metrics with their protocol, reliability; tokens."""

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import Route, expect

from tests.browser.page_fixtures import LOOKS, TOKEN
from tests.browser.watched_page import Look, WatchedPage

Open = Callable[..., WatchedPage]


def test_the_rules_are_a_table_that_sorts(opened: Open, narrow_or_wide: Look) -> None:
    page = opened("/", narrow_or_wide)
    page.page.get_by_role("navigation").get_by_role("link", name="Rules").click()
    reply = page.page.request.get(page.server + "/api/rules").json()
    rows = page.page.locator("tbody tr")
    expect(rows).to_have_count(len(reply["rules"]))
    for row, rule in zip(rows.all(), reply["rules"], strict=True):
        expect(row).to_contain_text(rule["name"])
        expect(row).to_contain_text(f"{rule['ground_rules']:,}")
    page.tab_to(page.find("button", "Ground rules"))
    page.press("Enter")
    numbers = sorted((rule["ground_rules"] for rule in reply["rules"]), reverse=True)
    shown = page.page.locator("tbody td[data-title='Ground rules']").all_inner_texts()
    assert [int(text.replace("Ground rules", "").replace(",", "")) for text in shown] == numbers
    page.page.get_by_text("learned clause").first.click()
    clauses = next(rule["clauses"] for rule in reply["rules"] if rule["clauses"])
    opened_clauses = page.page.locator("details[open]")  # a rule of the table may say the same
    expect(opened_clauses.get_by_text(clauses[0]["clause"])).to_be_visible()


def test_a_rule_leads_to_what_if(opened: Open) -> None:
    page = opened("/rules")
    page.page.get_by_role("link", name="what if neighbours were switched off?").click()
    expect(page.page.locator(".change.without_rules")).to_contain_text("neighbours")


def test_the_run_shows_curves_metrics_and_reliability(opened: Open, narrow_or_wide: Look) -> None:
    page = opened("/run", narrow_or_wide)
    reply = page.page.request.get(page.server + "/api/report").json()
    shown = page.page.locator(".figures > div").all_inner_texts()
    assert ["\n".join(figure) for figure in reply["figures"]] == shown[: len(reply["figures"])]
    expect(page.page.get_by_role("img", name="Loss over the epochs")).to_be_visible()
    for result in reply["results"]:
        report = result["report"]
        table = page.find("region", f"Metrics of {report['split']}")
        expect(table).to_contain_text(f"{report['metrics']['ap']:.4f}")
        expect(table).to_contain_text(f"Classification of {report['protocol']['queries']} queries")
    page.page.get_by_text("How it was measured").first.click()
    expect(page.page.locator(".protocol").first).to_be_visible()
    expect(page.page.get_by_role("img", name="Share of true atoms").first).to_be_visible()


FOUR_HUNDRED = [Look(width, scheme) for width in (400, 1280) for scheme in ("light", "dark")]
CUT = """() => [...document.querySelectorAll('.scroll, .pieces, td, th')]
    .filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.outerHTML.slice(0, 200))"""


@pytest.mark.parametrize("look", FOUR_HUNDRED, ids=str)
def test_tables_and_rank_bars_fit_their_page(opened: Open, look: Look) -> None:
    page = opened("/", look)
    part = {"name": "has_a_rather_long_name_of_its_own", "ranks": 100, "counts": [65, 15, 10, 6, 4]}

    def with_ranks(route: Route) -> None:
        document = route.fetch().json()
        for result in document["results"]:
            result["ranks"] = [part, {**part, "name": "near", "counts": [100, 0, 0, 0, 0]}]
            result["report"]["baselines"] = dict.fromkeys(("input layer", "rules alone"), result["report"]["metrics"])
        route.fulfill(body=json.dumps(document), content_type="application/json")

    page.page.route("**/api/report", with_ranks)
    for path in ("/run", "/rules"):
        page.visit(path)
        page.looked_at(f"fits{path.replace('/', '-')}")
        assert page.page.evaluate(CUT) == []
    page.visit("/run")
    bars = page.page.locator(".pieces").all()[:2]
    seen = [[piece.bounding_box() for piece in bar.locator(".piece").all()] for bar in bars]
    for boxes, bar, shares in zip(seen, bars, ([0.65, 0.15], [1.0, 0.0]), strict=True):
        whole = bar.bounding_box()
        assert whole is not None
        assert whole["x"] + whole["width"] <= look.width
        assert [box["width"] / whole["width"] for box in boxes[:2] if box] == pytest.approx(shares, abs=0.02)


@pytest.mark.parametrize("look", FOUR_HUNDRED[:2], ids=str)
@pytest.mark.parametrize(("path", "api"), [("/rules", "rules"), ("/run", "report")])
def test_what_takes_its_time_says_what_it_does(path: str, api: str, opened: Open, look: Look) -> None:
    page = opened("/", look)
    held: list[Route] = []
    page.page.route(f"**/api/{api}", lambda route: held.append(route))
    page.page.goto(page.server + path)
    expect(page.page.locator("main")).to_contain_text("Computing")
    expect(page.page.locator("#status")).to_contain_text("Computing")
    page.looked_at(f"waiting{path.replace('/', '-')}")
    held[0].continue_()
    page.ready()
    expect(page.page.locator("main")).not_to_contain_text("Computing")


def test_underlines_leave_underscores_to_be_seen(opened: Open) -> None:
    """DejaVu Sans Mono draws an underscore down to 0.24 em below the line; others less."""
    page = opened("/about/n2")
    offsets = page.page.locator("main a").evaluate_all(
        "(all) => all.map((one) => getComputedStyle(one)).filter((style) => style.textDecorationLine !== 'none')"
        ".map((style) => parseFloat(style.textUnderlineOffset) / parseFloat(style.fontSize))"
    )
    assert offsets
    assert all(offset >= 0.3 for offset in offsets)


def test_the_keyboard_reaches_all_views(opened: Open) -> None:
    page = opened("/")
    page.press("Tab")
    expect(page.find("link", "To the content")).to_be_focused()
    for name, title in (("What if", "What if?"), ("Rules", "Rules"), ("Run", "towns")):
        page.page.get_by_role("navigation").get_by_role("link", name=name, exact=True).focus()
        page.press("Enter")
        expect(page.heading()).to_have_text(title)
        expect(page.heading()).to_be_focused()


def test_a_token_is_asked_for(opened: Open, guarded_server: str, look: Look) -> None:
    page = opened("/", look, at=guarded_server)
    page.faults.clear()  # the first answer is 401, before one can say so
    page.may_be_refused(401)
    page.looked_at("token")
    field = page.page.get_by_label("Token")
    field.fill("a wrong one, and long")
    page.press("Enter")
    expect(field).to_have_value("")
    field.fill(TOKEN)
    page.press("Enter")
    expect(page.heading()).to_have_text("Ask towns")
    page.visit("/rules")
    expect(field).to_be_visible()  # nothing keeps it


def test_an_unknown_view_is_told_apart(opened: Open) -> None:
    page = opened("/", LOOKS[0])
    page.page.evaluate("history.pushState(null, '', '/elsewhere'); dispatchEvent(new PopStateEvent('popstate'))")
    expect(page.heading()).to_have_text("There is no such view")
