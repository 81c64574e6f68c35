"""Explanations as JSON, as lines and as a tree on the terminal."""

import json
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from r2n.explanation.records import (
    Belief,
    Explanation,
    Fidelity,
    LayerBelief,
    Member,
    Reason,
    all_reasons,
    change_text,
    effect_text,
    explanation_tree,
    fidelity_text,
    network_probability,
    probability_text,
    share_of,
    strongest,
)
from r2n.visible import printable, shortened
from tests.explanations import CLOSED, NASTY, TRUE, chain, italy
from tests.html_pages import read_page

GIVEN = Fidelity(5, 12, full=3.0, alone=2.86, without=1.24, none=1.0)


def of_reasons(*reasons: Reason) -> Explanation:
    return Explanation("p(a)", Belief(0.5, 0.0), (), reasons)


def test_the_document_has_the_keys_that_others_rely_on() -> None:
    inner = Member("p(b)", Belief(1.0, 2.0, known=True))
    made = Explanation(
        "p(a)",
        Belief(0.9, 2.2),
        (LayerBelief(0, 0.0, 0.5), LayerBelief(1, 2.2, 0.9)),
        (Reason("r", "p(b) -> p(a)", 1.5, (inner,)),),
        fidelity=Fidelity(1, 2, full=2.2, alone=2.0, without=0.7, none=0.2),
    )
    document = json.loads(json.dumps(made.to_dict()))
    assert (document["atom"], document["probability"], document["counterfactuals"]) == ("p(a)", 0.9, [])
    assert [layer["layer"] for layer in document["layers"]] == [0, 1]
    assert document["reasons"][0]["because"][0]["belief"]["known"] is True
    assert [document["fidelity"][name] for name in ("sufficiency", "necessity")] == pytest.approx([0.9, 0.75])
    assert of_reasons().to_dict()["fidelity"] is None
    nothing = replace(GIVEN, alone=1.0, without=1.0, full=1.0)
    assert (nothing.sufficiency, nothing.necessity) == (None, None)


@pytest.mark.parametrize("name", NASTY)
def test_a_notebook_shows_drawing_and_tree_and_names_are_text(name: str) -> None:
    made = Explanation(name, Belief(0.5, 0.0), (), (Reason(name, name, 1.0, (Member(name, Belief(0.5, 0.0)),)),))
    page = read_page(made._repr_html_())
    assert page.tags["svg"] == page.tags["details"] == 1
    assert page.tags["img"] == page.tags["script"] == 0
    assert not [name for name, _ in page.attributes if name.startswith("on")]


def test_numbers_keep_the_digits_that_distinguish_them() -> None:
    probabilities = {0.0: "0.00", 1.0: "1.00", 0.973: "0.97", 0.9972: "0.997", 0.99972: "0.9997"}
    probabilities |= {0.999996: ">0.9999", 0.004: "0.004", 0.00001: "<0.0001", float("nan"): "nan"}
    assert {probability: probability_text(probability) for probability in probabilities} == probabilities
    effects = {2.314: "+2.31", -0.42: "-0.42", 0.0: "+0.00", -0.00041: "-0.0004", float("inf"): "+inf"}
    assert {effect: effect_text(effect) for effect in effects} == effects
    changes = {(0.971, 0.41): "0.97 → 0.41", (0.9990, 0.9996): "0.9990 → 0.9996", (0.999, 0.45): "0.999 → 0.450"}
    changes |= {(1.0, 0.45): "1.00 → 0.45", (0.97, 0.97): "0.97 → 0.97", (0.5, 0.00001): "0.50 → <0.0001"}
    assert {pair: change_text(*pair) for pair in changes} == changes
    assert strongest([1.0, -2.0, float("nan"), float("inf")]) == 2
    assert [share_of(effect, 2.0) for effect in (1.0, -2.0, float("nan"), float("-inf"))] == [0.5, 1, 0, 1]


def test_names_are_on_one_line_and_long_ones_lose_their_middle() -> None:
    assert printable("a\nb\x00\x1b \ud800 \uffff \u2028 \u202e") == r"a\nb\x00\x1b \ud800 \uffff \u2028 \u202e"
    assert printable("[/]<b>\u00a0é日") == "[/]<b>\u00a0é日"
    assert (shortened("a" * 20, 20), shortened("abc" * 10, 12)) == ("a" * 20, "abc ... cabc")


def test_each_case_of_fidelity_has_its_sentence_and_the_network_its_probability() -> None:
    changes = ({}, {"listed": 12}, {"listed": 0, "ground_rules": 0}, {"listed": 0}, {"none": 3.0})
    texts = [fidelity_text(replace(GIVEN, **change)) for change in changes]
    assert len(set(texts)) == len(texts)
    assert {"0.93", "0.12"} <= set(texts[0].split())
    assert network_probability(replace(italy(), belief=CLOSED)) == 0.97  # as of its last layer
    assert network_probability(replace(italy(), belief=Belief(1.0, -1e4, known=True), layers=())) == 0


PRINTED = """\
p([red]a\\r[/red])  0.90  not known, believed by the network; not calibrated
├── layer by layer
│   ├── input layer  █████      0.50
│   └── layer 1      █████████  0.90
└── because of these ground rules, by their effect on the logit
    ├──  +1.50 ██████████ r
    │   q(a) & !s(a) -> p(a)
    │   ├── q(a): true by the facts  (effect -0.50)  (explained elsewhere)
    │   └── s(a): closed: no fact, so false
    └──  -0.30 ██         s
        q(a) | p(a)
        └── q(a): true by the facts
            └──  +0.10 █          t
                q(a)"""


def test_the_tree_as_text() -> None:
    first = Member("q(a)", TRUE, effect=-0.5, is_explained_above=True), Member("s(a)", CLOSED)
    later = Member("q(a)", TRUE, reasons=(Reason("t", "q(a)", 0.1),))
    small = Explanation(
        "p([red]a\r[/red])",
        Belief(0.9, 2.2),
        (LayerBelief(0, 0.0, 0.5), LayerBelief(1, 2.2, 0.9)),
        (Reason("r", "q(a) & !s(a) -> p(a)", 1.5, first), Reason("s", "q(a) | p(a)", -0.3, (later,))),
    )
    assert str(small) == PRINTED
    rules = [reason.ground_rule for reason in all_reasons(chain(3, rules=2).reasons)]
    assert rules == [f"p({i + 1}) & q({j}) -> p({i})" for i, j in ((0, 0), (1, 0), (2, 0), (2, 1), (1, 1), (0, 1))]
    console = Console(file=(file := StringIO()), width=100, _environ={})
    console.print(explanation_tree(italy(), in_ascii=True))
    assert file.getvalue().translate(str.maketrans("", "", "│├└─")).isascii()  # rich draws the tree by itself
