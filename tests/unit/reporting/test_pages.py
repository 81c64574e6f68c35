"""Pages and charts: sound, complete, every point at its place, and safe whatever names the data has."""

import re
from dataclasses import replace
from math import inf, nan
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2n.evaluation.by_query import PairedTest, RankCounts
from r2n.evaluation.metrics import calibration
from r2n.evaluation.report import Report
from r2n.explanation.records import Belief, Explanation
from r2n.explanation.rules import RuleAccount, RuleReport
from r2n.reporting import pages
from r2n.reporting.compare import ComparedSplit, Comparison, PairedTests
from r2n.reporting.pages import (
    BOTTOM,
    LEFT,
    MOST_POINTS,
    RIGHT,
    TOP,
    chart,
    compare_page,
    explanation_page,
    page,
    protocol_texts,
    run_charts,
    run_page,
)
from r2n.reporting.run_report import Curve, RunReport, SplitResult
from tests.explanations import italy
from tests.html_pages import Page, contrast, faults, read_page
from tests.report_samples import RULES, report

STYLE = (Path(pages.__file__).parent / "templates" / "style.css").read_text(encoding="utf-8")
TEST = PairedTest("ap", 1200, -0.25, -0.5, -0.125, 0.01)
EQUAL = PairedTest("brier", 1200, 0.0, 0.0, 0.0, 1.0)
NASTY = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "[/] [red]",
    "\u202eright to left\u2066",
    "{{ 7 * 7 }} {% raw %}",
    "&amp; &lt;b&gt; \" ' `",
    "\x00\x1b[31m\x7f",
    "x" * 10_000,
    "-->",
    "\u05d0\u05d1 \u0627",
    " ",
    "",
)


def comparison(name: str = "b") -> Comparison:
    split = ComparedSplit(
        "test",
        "classification of 1,200 queries",
        (("ap", (0.75, 0.5, None)), ("ece", (nan, 0.5, 0.25))),
        (PairedTests(name, (TEST, EQUAL)), PairedTests("c", why_not=f"the queries are not those of {name}")),
    )
    return Comparison(("a", name, "c"), ("p", name, "q"), (0, 1, 2), (("model.dim", ("8", name, "4")),), (split,))


# any page


@pytest.mark.parametrize("name", NASTY)
def test_names_from_data_are_text(name: str) -> None:
    usual = run_page(report()), compare_page(comparison()), explanation_page(italy(), about=[("run", "x")])
    nasty = run_page(report(name)), compare_page(comparison(name))
    named = replace(italy(), atom=name, notes=(name,))
    for html, safe in zip((*nasty, explanation_page(named, about=[("run", name)])), usual, strict=True):
        assert faults(html) == []
        assert {tag for tag, _ in Page(html).tags} == {tag for tag, _ in Page(safe).tags}
        assert len(html) < 400_000


@given(st.text(st.characters(codec=None), max_size=60))
def test_characters_that_no_page_may_hold_are_replaced(name: str) -> None:
    text = page("page.html.j2", title=name)
    assert not set(text) & {"\x00", "\x1b", "\u202e", "\u2066", "\x85"}
    title = re.search("<title>(.*)</title>", text, re.S)
    assert title is not None
    assert not set(title.group(1)) & set("<>\"'")
    text.encode("utf-8", "replace").decode()


def test_a_page_is_for_light_and_dark_for_paper_and_small_screens() -> None:
    for html in (run_page(report()), explanation_page(italy())):
        needs = "prefers-color-scheme: dark", "@media print", "width=device-width", 'content="light dark"'
        assert all(need in html for need in (*needs, "default-src 'none'", '<html lang="en"'))
        found = Page(html)
        scrolled = sum(attributes.get("class") == "scroll" for attributes in found.all("div"))
        assert scrolled == len(found.all("table"))  # a wide table scrolls in its own box


def colours(block: str) -> dict[str, str]:
    """The variables of a block that are colours."""
    found = re.findall(r"--(\w+): #([0-9a-f]{3}(?:[0-9a-f]{3})?);", block)
    return {name: f"#{code if len(code) == 6 else ''.join(2 * c for c in code)}" for name, code in found}


def test_colours_have_enough_contrast_light_dark_and_printed() -> None:
    """WCAG AA: 4.5 for text, 3 for what is drawn."""
    light, dark, printed = (colours(block) for block in re.findall(r":root \{(.*?)\}", STYLE, re.S))
    assert light.keys() == dark.keys() == printed.keys()
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    for scheme in (light, dark, printed):
        for behind in ("page", "card"):
            for name in ("text", "quiet", "accent", "good", "bad", "ink", "for", "against"):
                assert contrast(scheme[name], scheme[behind]) >= 4.5, (name, behind)
            for i in range(6):
                assert contrast(scheme[f"c{i}"], scheme[behind]) >= 3, (i, behind)
        assert contrast(scheme["r0"], scheme["r2"]) >= 2


# the page of a run


def test_every_section_is_there() -> None:
    html = run_page(report())
    found = Page(html)
    assert faults(html) == []
    names = ["trained-on", "results", "training", "predicates", "reliability", "rules", "answers", "phases", "options"]
    assert [a["id"] for a in found.all("section")] == names
    assert [a["href"] for a in found.all("a")] == [f"#{name}" for name in names]
    assert "ap 0.5000 0.2500" in found.text  # the metric and its baseline
    widths = re.findall(r'<rect class="r\d" x="([0-9.]+)" width="([0-9.]+)"', html)
    assert [(float(x), float(w)) for x, w in widths] == [(0, 25), (25, 25), (50, 50), (100, 0), (100, 0)]


def test_missing_parts_are_left_out_and_long_lists_are_folded_or_cut() -> None:
    html = run_page(RunReport("towns"))
    assert faults(html) == []
    assert [a["id"] for a in Page(html).all("section")] == ["trained-on"]
    assert Page(html).all("svg") == []
    counts = tuple(RankCounts(f"p{i}", (1, 0, 0, 0, 0)) for i in range(400))
    many = SplitResult(Report("test", {"mrr": 0.5}, {}, {"task": "ranking", "queries": 400}), ranks=counts)
    rules = RuleReport("p", None, 0, None, None, None, (RuleAccount(RULES[0], "explicit"),) * 60, left_out=5)
    domains = tuple((f"d{i}", 1) for i in range(60))
    theory = tuple(f"rule r{i}" for i in range(300))
    html = run_page(RunReport("towns", domains=domains, theory=theory, results=(many,), rules=rules))
    assert faults(html) == []
    for text in ("388 more predicates", "25 more: r2n rules RUN", "300 rules", "and 20 more"):
        assert text in Page(html).text


def test_ties_are_shown_only_if_they_matter_and_the_protocol_is_a_list_of_sentences() -> None:
    result = report().results[1]
    assert "optimistic ties" not in Page(run_page(report())).text
    ties = {"optimistic": {"mrr": 0.6}, "pessimistic": {"mrr": 0.4}}
    changed = replace(result, report=replace(result.report, ties=ties))
    assert "optimistic ties" in Page(run_page(replace(report(), results=(changed,)))).text
    protocol = {"task": "ranking", "queries": 1234, "ranks": 2468, "left_out": 0, "filter": "others are none"}
    texts = protocol_texts(protocol | {"reasoning_harms": "a note of the page"})
    assert texts == ["Ranking of 1,234 queries.", "ranks: 2,468.", "filter: others are none."]


def test_charts_of_training_and_reliability() -> None:
    charts = run_charts(report(networks=7))
    assert [card.heading for card in charts["training"]] == ["Loss", "Validation"]
    assert all(f">loss {i}<" in charts["training"][0].charts[0] for i in range(1, 8))
    (card,) = charts["reliability"]
    assert card.text.startswith("Brier 0.0")
    assert [chart.count("<circle") for chart in card.charts] == [10, 0]
    empty = calibration(np.zeros(0), np.zeros(0, bool))
    nothing = SplitResult(Report("test", {"ap": nan}, {}, {"task": "classification"}, calibration=empty))
    assert run_charts(RunReport("p", results=(nothing,))) == {"training": [], "reliability": []}


# other pages


def test_an_explanation_is_drawn_and_written_as_lists() -> None:
    html = explanation_page(italy(), about=[("run", "runs/s2"), ("problem", "<b>")])
    read = read_page(html)
    assert faults(html) == []
    assert (read.tags["svg"], read.tags["h2"], read.tags["b"]) == (1, 8, 0)
    assert [value for _, value in read.attributes if value and "//" in value] == ["http://www.w3.org/2000/svg"]
    bare = read_page(explanation_page(Explanation("p(a)", Belief(0.2, -1.4), (), ())))
    assert (bare.tags["h2"], bare.tags["footer"]) == (0, 0)


def test_a_comparison_has_metrics_and_tests() -> None:
    html = compare_page(comparison())
    assert faults(html) == []
    assert "\N{MINUS SIGN}0.2500 \N{MINUS SIGN}0.5000 to \N{MINUS SIGN}0.1250 0.0100 1,200" in Page(html).text
    equal = compare_page(Comparison(("a", "b"), ("p", "p"), (0, 0), (), ()))
    assert faults(equal) == []
    assert "How it was tested" not in Page(equal).text


ANY = st.floats(-1e12, 1e12) | st.sampled_from((nan, inf, -inf, 0.0))
FLOOR = 200 - BOTTOM
Points = list[tuple[float, float]]


def drawn(*series: Curve, **options: object) -> Element:
    given_ = {"x_label": "epoch", "y_label": "loss"} | options
    return ElementTree.fromstring(chart("label", series, **given_))  # pyright: ignore[reportArgumentType]


def lines(root: Element) -> list[Points]:
    paths = [e.get("points", "") for e in root.iter() if e.tag.endswith("polyline")]
    return [[(float(a), float(b)) for a, b in (point.split(",") for point in path.split())] for path in paths]


def dots(root: Element) -> Points:
    return [(float(e.get("cx", 0)), float(e.get("cy", 0))) for e in root.iter() if e.tag.endswith("circle")]


def texts(root: Element) -> list[str]:
    return [e.text or "" for e in root.iter() if e.tag.endswith("text")]


def test_points_stand_where_the_axes_say() -> None:
    root = drawn(Curve("a", (0, 10), (0.0, 1.0)), x_range=(0, 10), y_range=(0, 1))
    assert lines(root) == [[(LEFT, FLOOR), (RIGHT, TOP)]]
    assert texts(root) == ["0", "0.5", "1", "0", "2", "4", "6", "8", "10", "epoch", "loss"]
    assert (root.get("role"), root.get("aria-label")) == ("img", "label")


def test_values_that_are_no_numbers_are_left_out_and_few_points_are_dots() -> None:
    root = drawn(Curve("a", (1, 2, 3, 4, 5, 6), (1.0, 2.0, nan, 3.0, inf, 2.0)))
    assert [len(line) for line in lines(root)] == [4]
    assert len(dots(root)) == 4
    assert dots(drawn(Curve("a", tuple(range(20)), (1.0,) * 20))) == []
    alone = drawn(Curve("a", (7,), (0.5,)))
    assert (lines(alone), len(dots(alone))) == ([], 1)
    assert lines(drawn(Curve("a", (), ()))) == lines(drawn()) == []


def test_many_points_are_thinned_and_epochs_have_whole_ticks() -> None:
    root = drawn(Curve("a", tuple(range(5000)), tuple(float(i) for i in range(5000))))
    assert len(lines(root)[0]) == MOST_POINTS
    few = drawn(Curve("a", (1, 2), (1.0, 2.0)))
    assert texts(few)[-4:-2] == ["1", "2"]


def test_several_lines_have_a_legend_below_in_which_names_are_text() -> None:
    names = [f"<b>{i}" * 5 for i in range(8)]
    root = drawn(*(Curve(name, (1, 2), (1.0, 2.0)) for name in names))
    assert texts(root)[-8:] == names
    assert float((root.get("viewBox") or "").split()[3]) == 203 + 8 * 15
    short = drawn(*(Curve(f"valid {i}", (1, 2), (1.0, 2.0)) for i in range(8)))
    assert float((short.get("viewBox") or "").split()[3]) == 203 + 4 * 15  # two columns


def test_bars_fill_the_room_between_edges() -> None:
    def bars(*given: tuple[float, float, int]) -> list[dict[str, float]]:
        most = max(1, *(count for *_, count in given))
        root = drawn(bars=given, x_range=(0, 1), y_range=(0, most), height=110)
        found = [e for e in root.iter() if e.get("class") == "bar-mark"]
        return [{key: float(e.get(key, 0)) for key in ("x", "y", "width", "height")} for e in found]

    tall, flat = bars((0, 0.5, 4), (0.5, 1, 0))
    assert (tall["y"], tall["height"]) == (TOP, 110 - BOTTOM - TOP)
    assert (flat["y"], flat["height"]) == (110 - BOTTOM, 0)
    assert tall["x"] + tall["width"] <= flat["x"]
    assert bars((0, 0.5, 0), (0.5, 1, 0))[0]["height"] == 0


@given(st.lists(st.lists(ANY, max_size=6), max_size=8))
def test_any_numbers_are_drawn_inside(values: list[list[float]]) -> None:
    root = drawn(*(Curve(str(i), tuple(range(len(part))), part) for i, part in enumerate(values)))
    for x, y in (*dots(root), *(point for line in lines(root) for point in line)):
        assert LEFT <= x <= RIGHT
        assert TOP <= y <= FLOOR
    ticks = [float(e.get("y", 0)) - 3.5 for e in root.iter() if e.get("text-anchor") == "end"]
    assert ticks == sorted(ticks, reverse=True)
    assert len(ticks) <= 7
    assert all(TOP - 0.2 <= tick <= FLOOR + 0.2 for tick in ticks)
