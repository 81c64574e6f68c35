"""Runs side by side as a page: sound, safe, and the tests at their places."""

from math import nan

import pytest

from r2n.evaluation.by_query import PairedTest
from r2n.reporting.against import Against
from r2n.reporting.compare import ComparedSplit, Comparison
from r2n.reporting.compare_page import compare_page, interval_places
from tests.html_pages import Page, faults
from tests.unit.reporting.test_run_page import NASTY

TEST = PairedTest("ap", 1200, -0.25, -0.5, -0.125, 0.01)
SURE = PairedTest("brier", 1200, 0.0, 0.0, 0.0, 1.0)


def comparison(name: str = "b") -> Comparison:
    split = ComparedSplit(
        "test",
        "classification of 1,200 queries",
        (("ap", (0.75, 0.5, None)), ("ece", (nan, 0.5, 0.25))),
        (Against(name, (TEST, SURE)), Against("c", why_not=f"the queries are not those of {name}")),
    )
    return Comparison(("a", name, "c"), ("p", name, "q"), (0, 1, 2), (("model.dim", ("8", name, "4")),), (split,))


def test_a_page_has_all_that_the_comparison_has() -> None:
    html = compare_page(comparison())
    assert faults(html) == []
    text = Page(html).text
    for words in (
        "3 runs side by side",
        "model.dim 8 b 4",
        "ap 0.7500 0.5000",
        "\N{MINUS SIGN}0.2500 \N{MINUS SIGN}0.5000 to \N{MINUS SIGN}0.1250 0.0100 1,200",
        "c is not tested against a : the queries are not those of b.",
        "2 tests were made",
    ):
        assert words in text


def test_runs_that_differ_in_nothing_and_have_no_queries() -> None:
    html = compare_page(Comparison(("a", "b"), ("p", "p"), (0, 0), (), ()))
    assert faults(html) == []
    assert "Nothing that a result depends on." in Page(html).text
    assert "How it was tested" not in Page(html).text


@pytest.mark.parametrize("name", NASTY)
def test_names_from_data_are_text(name: str) -> None:
    html = compare_page(comparison(name))
    assert faults(html) == []
    assert {tag for tag, _ in Page(html).tags} == {tag for tag, _ in Page(compare_page(comparison())).tags}


def test_an_interval_stands_on_the_axis_of_its_metric() -> None:
    zero, low, high, middle = interval_places(TEST, (TEST, SURE))
    assert (zero, low) == (50.0, 4.0)
    assert low < middle < high < zero
    assert interval_places(SURE, (TEST, SURE)) == (50.0, 50.0, 50.0, 50.0)
    unknown = PairedTest("ap", 1, 0.5, nan, nan, 1.0)
    assert interval_places(unknown, (unknown,)) == (50.0, 96.0, 96.0, 96.0)
