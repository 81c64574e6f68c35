"""The page of a run: every section that there is something to say in, sound and safe whatever names the data has."""

from dataclasses import replace
from math import nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2n.evaluation.by_query import RankCounts
from r2n.evaluation.metrics import calibration
from r2n.evaluation.report import Report
from r2n.explanation.records import Belief, Explanation
from r2n.reporting.records import Result, RuleLine, RuleTable, RunReport, ToldAnswer, ToldAnswers, TrainedOn
from r2n.reporting.run_page import (
    HEADINGS,
    metric_rows,
    protocol_words,
    rank_rows,
    reliability_cards,
    run_page,
    training_cards,
)
from tests.examples import at_most
from tests.html_pages import Page, faults
from tests.report_samples import explanation, report

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


def test_every_section_is_there_and_the_page_is_sound() -> None:
    html = run_page(report())
    assert faults(html) == []
    page = Page(html)
    for name, heading in HEADINGS:
        assert heading in page.text
        assert {"href": f"#{name}"} in page.all("a")
    for words in (
        "978 true atoms",
        "rule manifold: near(countries, y)",
        "and 3 more",
        "Classification of 40 queries, 24 of them true.",
        "ap: pooled over all queries.",
        "0.4000 to 0.6000",
        "75.0\N{NO-BREAK SPACE}%",
        "With all rules the valid ap is 0.8750",
        "chosen: many facts of countries",
        "a note about countries",
        "31.00",
    ):
        assert words.replace("\N{NO-BREAK SPACE}", " ") in page.text


def test_an_explanation_is_told_whole() -> None:
    text = Page(run_page(report())).text
    for words in (
        "probability 0.970 (spread of the logit 0.20)",
        "input 0.401 \N{RIGHTWARDS ARROW} layer 1 0.750 \N{RIGHTWARDS ARROW} layer 2 0.971.",
        "The probability is calibrated on valid .",
        "+2.12 neighborOf(france, countries) & locatedIn(france, europe) -> locatedIn(countries, europe)",
        "\N{MINUS SIGN}0.50",
        "closed: false; its reasons stand above",
        "Against locatedIn(countries, africa) (probability 0.020) the logit is +7.40.",
        "known to be true, similarity 0.91",
        "+0.30 word 'rome' of countries",
        "if neighborOf(france, countries) were known to be false: 0.200 (another answer)",
        "without the rule manifold : 0.290",
        "The 2 listed of 7 ground rules alone give 90.2 % of what ground rules do; without them 75.6 % of it goes.",
        "a note about the explanation",
    ):
        assert words in text


def test_a_bare_explanation_says_so() -> None:
    told = ToldAnswer("p(a)", 0.5, True, explanation=Explanation("p(a)", Belief(0.5, 0.0, known=False), (), ()))
    html = run_page(RunReport(TrainedOn("towns", ()), answers=(ToldAnswers("h", "w", (told,)),)))
    assert faults(html) == []
    assert "known to be false" in Page(html).text
    assert "No ground rule speaks of it." in Page(html).text


def test_what_is_missing_is_left_out() -> None:
    html = run_page(RunReport(TrainedOn("towns", ())))
    page = Page(html)
    assert faults(html) == []
    assert [a["id"] for a in page.all("section")] == ["trained-on"]
    assert "There are no rules." in page.text
    assert page.all("svg") == []


@pytest.mark.parametrize("name", NASTY)
def test_names_from_data_are_text(name: str) -> None:
    html = run_page(report(name))
    assert faults(html) == []
    assert {tag for tag, _ in Page(html).tags} == {tag for tag, _ in Page(run_page(report())).tags}
    assert len(html) < 200_000


@at_most(25, "a whole page is written and read for each")
@given(st.text(max_size=30))
def test_any_name_is_text(name: str) -> None:
    assert faults(run_page(report(name))) == []


def test_a_page_is_for_light_and_dark_for_paper_and_small_screens() -> None:
    html = run_page(report())
    for needed in ("prefers-color-scheme: dark", "@media print", "width=device-width", 'content="light dark"'):
        assert needed in html
    assert "default-src 'none'" in html
    page = Page(html)
    scrolled = sum(attributes.get("class") == "scroll" for attributes in page.all("div"))
    assert scrolled == len(page.all("table"))  # a wide table scrolls in its own box


def test_many_things_are_folded_or_cut() -> None:
    counts = tuple(RankCounts(f"p{i}", (1, 0, 0, 0, 0)) for i in range(400))
    many = Result(Report("test", {"mrr": 0.5}, {}, {"task": "ranking", "queries": 400}), ranks=counts)
    rules = RuleTable(tuple(RuleLine(f"r{i}", "p(x)") for i in range(60)), left_out=5)
    about = TrainedOn(
        "towns", (), tuple((f"d{i}", 1) for i in range(60)), rules=tuple(f"rule r{i}" for i in range(300))
    )
    html = run_page(RunReport(about, (many,), rules=rules))
    text = Page(html).text
    assert faults(html) == []
    assert "388 more predicates" in text
    assert "25 more: r2n rules RUN" in text
    assert "300 rules" in text
    assert "and 20 more" in text


def test_a_large_ensemble_has_a_line_for_each_network() -> None:
    cards = training_cards(report(networks=7).networks)
    assert [card.heading for card in cards] == ["Loss", "Validation"]
    assert [line.name for line in cards[0].charts[0].lines] == [f"loss {i}" for i in range(1, 8)]
    assert training_cards(((),)) == []
    assert [card.heading for card in training_cards(report().networks)] == ["Loss", "Validation"]


def test_metrics_stand_beside_those_of_parts() -> None:
    classified = report().results[0]
    assert metric_rows(classified)[0] == ("ap", [0.5, 0.25])
    assert [name for name, _ in metric_rows(classified)] == ["ap", "roc_auc_macro", "brier"]
    assert metric_rows(classified)[2][1] == [0.125, None]


def test_ties_are_told_only_where_they_matter() -> None:
    result = report().results[1]
    assert "optimistic ties" not in Page(run_page(report())).text
    ties = {"optimistic": {"mrr": 0.6}, "pessimistic": {"mrr": 0.4}}
    changed = replace(result, report=replace(result.report, ties=ties))
    assert "optimistic ties" in Page(run_page(replace(report(), results=(changed,)))).text


def test_the_protocol_in_words() -> None:
    said = protocol_words(
        {"task": "ranking", "queries": 1234, "ranks": 2468, "left_out": 0, "filter": "others are none"}
        | {"reasoning_harms": "a note of the page"}
    )
    assert said == ["Ranking of 1,234 queries.", "ranks: 2,468.", "filter: others are none."]


def test_bars_of_ranks_fill_the_row() -> None:
    ((part, metrics, bars),) = rank_rows(report().results[1])
    assert metrics["mrr"] == 0.5
    assert bars == [(0.0, 25.0), (25.0, 25.0), (50.0, 50.0), (100.0, 0.0), (100.0, 0.0)]
    assert part.ranks == 4
    nothing = Result(Report("test", {}, {}, {"task": "ranking"}), ranks=(RankCounts("p", (0, 0, 0, 0, 0)),))
    assert {share for _, share in rank_rows(nothing)[0][2]} == {0.0}


def test_reliability_is_drawn_where_something_was_predicted() -> None:
    empty = calibration(np.zeros(0), np.zeros(0, bool))
    result = Result(Report("test", {"ap": nan}, {}, {"task": "classification"}, calibration=empty))
    assert reliability_cards([result]) == []
    (card,) = reliability_cards(report().results)
    assert card.words.startswith("Brier 0.0")
    assert len(card.charts) == 2
    assert len(card.charts[0].lines[0].dots) == 10


def test_an_explanation_for_each_answer() -> None:
    assert explanation("italy").atom == "locatedIn(italy, europe)"
