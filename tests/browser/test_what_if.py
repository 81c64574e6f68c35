"""What if: facts, constants and rules otherwise, before and after, and the list as the command line reads it."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import expect

from tests.browser.watched_page import Look, WatchedPage

Open = Callable[..., WatchedPage]
FACT = "liesIn(n1, north)"


def test_facts_are_added_and_taken_away_by_mouse(opened: Open, narrow_or_wide: Look) -> None:
    page = opened("/what-if", narrow_or_wide)
    field = page.find("combobox", "Fact")
    field.fill(FACT)
    page.find("button", "Take it away").click()
    expect(page.page.locator(".change.without")).to_contain_text(FACT)
    row = page.page.locator("tbody tr").filter(has_text=FACT)
    expect(row.locator("td").first).to_contain_text("1.00")
    expect(row.locator("td").nth(1)).not_to_contain_text("1.00")
    page.find("combobox", "Fact").fill("liesIn(n2, north)")
    page.find("button", "Add it").first.click()
    expect(page.page.locator(".change")).to_have_count(2)
    page.find("button", f"Take back: {FACT}").click()
    expect(page.page.locator(".change")).to_have_count(1)
    page.expect_path("/what-if?" + urlencode({"with": "liesIn(n2, north)"}))


def test_new_constants_are_added_by_keyboard(opened: Open, narrow_or_wide: Look) -> None:
    page = opened("/what-if", narrow_or_wide)
    page.tab_to(page.page.get_by_label("A new constant"))
    page.write("atlantis")
    page.press("Enter")
    expect(page.page.locator(".change.constant")).to_contain_text("atlantis in town")
    page.tab_to(page.find("combobox", "Fact"))
    page.write("near(n2, atlantis)")
    page.press("Escape", "Enter")
    expect(page.page.locator(".change.with")).to_contain_text("near(n2, atlantis)")
    row = page.page.locator("tbody tr").filter(has_text="liesIn(atlantis, north)")
    expect(row).to_contain_text("no answer")
    expect(row).to_contain_text("new")


def test_a_rule_is_switched_off(opened: Open) -> None:
    page = opened("/what-if")
    page.page.get_by_label("A rule").select_option("neighbours")
    page.find("button", "Switch it off").click()
    expect(page.page.locator(".change.without_rules")).to_contain_text("neighbours")
    expect(page.page.locator("tbody tr").first).to_be_visible()


def test_the_answers_to_a_question_are_compared(opened: Open) -> None:
    page = opened("/what-if?" + urlencode({"without": FACT}))
    page.find("combobox", "Compare the answers to").fill("liesIn(n2, ?)")
    page.press("Escape", "Enter")
    expect(page.page.get_by_text("1 change of 2 answers compared; 1 did not move.")).to_be_visible()
    expect(page.page.locator("tbody tr")).to_have_count(1)
    page.find("button", "Change").click()
    expect(page.find("columnheader", "Change")).to_have_attribute("aria-sort", "descending")


def test_a_fact_that_is_none_is_refused(opened: Open, narrow_or_wide: Look) -> None:
    """Its button can be clicked while suggestions are shown."""
    page = opened("/what-if", narrow_or_wide)
    page.may_be_refused(422)
    page.find("combobox", "Fact").fill("liesIn(n1, north")
    expect(page.find("option", "north)").first).to_be_visible()
    page.find("button", "Add it").first.click()
    expect(page.find("alert")).to_be_visible()
    page.page.get_by_role("button", name="Take back").click()
    expect(page.page.locator(".change")).to_have_count(0)


def test_the_list_is_what_the_command_line_reads(opened: Open, run_folder: Path, tmp_path: Path) -> None:
    changes = [("without", FACT), ("with", "near(n2, new town)"), ("with", "!liesIn(n2, south)")]
    query = [*changes, ("constant", "town=new town"), ("ask", "liesIn(new town, ?)")]
    page = opened("/what-if?" + urlencode(query))
    files = {}
    for kind in ("with", "without"):
        name, text = page.downloaded(page.find("button", f"Download {kind}.pl"))
        assert name == f"{kind}.pl"
        files[kind] = tmp_path / name
        files[kind].write_text(text)
    shown = json.loads(page.downloaded(page.find("button", "Download JSON"))[1])["changes"]
    command = [sys.executable, "-m", "r2n", "predict", run_folder, "liesIn(new town, ?)", "--json"]
    options = ["--with", files["with"], "--without", files["without"], "--constant", "town=new town"]
    done = subprocess.run([str(part) for part in (*command, *options)], capture_output=True, text=True, check=True)
    reply = {answer["atom"]: answer["probability"] for answer in json.loads(done.stdout)["answers"]}
    assert {item["atom"]: item["after"]["probability"] for item in shown} == reply
