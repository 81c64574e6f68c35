"""Explanations as JSON, as lines and as a tree on the terminal."""

import json
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO

import pytest
from rich.cells import cell_len
from rich.console import Console

from r2n.explanation.records import MOST_LINES, Belief, Explanation, Fidelity, LayerBelief, Member, Reason
from r2n.explanation.text import (
    LONGEST_NAME,
    Line,
    all_reasons,
    answer_texts,
    bar,
    change_text,
    condition_texts,
    effect_text,
    explanation_text,
    explanation_tree,
    fidelity_text,
    network_probability,
    printable,
    probability_text,
    render,
    share_of,
    shortened,
    status_text,
    strongest,
)
from tests.explanations import CLOSED, FALSE, NASTY, TRUE, chain, italy
from tests.html_pages import read_page

GIVEN = Fidelity(5, 12, full=3.0, alone=2.86, without=1.24, none=1.0)


def of_reasons(*reasons: Reason) -> Explanation:
    return Explanation("p(a)", Belief(0.5, 0.0), (), reasons)


def lines_of(line: Line) -> Iterator[str]:
    yield str(line)
    for below in line.lines:
        yield from lines_of(below)


def part(explanation: Explanation, title: str) -> Line:
    return next(line for line in render(explanation).lines if str(line).startswith(title))


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


def test_printed_it_is_the_tree_and_shown_one_screen_of_it() -> None:
    assert str(italy()) == explanation_text(italy())
    short = replace(italy(), reasons=(), counterfactuals=(), contrast=None)
    assert repr(short) == str(short)
    many = replace(italy(), reasons=italy().reasons * 5)
    lines, whole = repr(many).splitlines(), str(many).splitlines()
    assert lines[:-1] == whole[:MOST_LINES]
    assert lines[-1] == f"... and {len(whole) - MOST_LINES:,} more lines: print it"


@pytest.mark.parametrize("name", NASTY)
def test_a_notebook_shows_drawing_and_tree_and_names_are_text(name: str) -> None:
    made = Explanation(name, Belief(0.5, 0.0), (), (Reason(name, name, 1.0, (Member(name, Belief(0.5, 0.0)),)),))
    page = read_page(made._repr_html_())
    assert page.tags["svg"] == page.tags["details"] == 1
    assert page.tags["img"] == page.tags["script"] == 0
    assert not [name for name, _ in page.attributes if name.startswith("on")]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("locatedIn(italy, europe)", "locatedIn(italy, europe)"),
        ("a\nb\tc\x00\x7f\x1b", "a␊b␉c␀␡␛"),
        ("\ud800 \ufffe \U0001ffff \x85 \u2028", "\ufffd \ufffd \ufffd \ufffd \ufffd"),
        ("\u202e[/]<b>\u200f\u00a0é日", "\u202e[/]<b>\u200f\u00a0é日"),
    ],
)
def test_what_has_no_picture_is_given_one(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_numbers_keep_the_digits_that_distinguish_them() -> None:
    probabilities = {0.0: "0.00", 1.0: "1.00", 0.973: "0.97", 0.9972: "0.997", 0.99972: "0.9997"}
    probabilities |= {0.999996: ">0.9999", 0.004: "0.004", 0.00001: "<0.0001", float("nan"): "nan"}
    assert {probability: probability_text(probability) for probability in probabilities} == probabilities
    effects = {2.314: "+2.31", -0.42: "-0.42", 0.0: "+0.00", -0.00041: "-0.0004", float("inf"): "+inf"}
    assert {effect: effect_text(effect) for effect in effects} == effects
    changes = {(0.971, 0.41): "0.97 → 0.41", (0.9990, 0.9996): "0.9990 → 0.9996", (0.999, 0.45): "0.999 → 0.450"}
    changes |= {(1.0, 0.45): "1.00 → 0.45", (0.97, 0.97): "0.97 → 0.97", (0.5, 0.00001): "0.50 → <0.0001"}
    changes |= {(0.9999999, 0.9999998): ">0.9999 → >0.9999"}
    assert {pair: change_text(*pair) for pair in changes} == changes
    assert (shortened("abcdef", 6), shortened("abcdefg", 6)) == ("abcdef", "abc…fg")
    drawn = {0.0: "", 0.001: "▏", 0.5: "█████", 0.55: "█████▌", 1.0: "██████████"}
    assert {share: bar(share).rstrip() for share in drawn} == drawn
    assert strongest([]) == 0
    assert strongest([1.0, -2.0, float("nan"), float("inf")]) == 2
    assert [share_of(effect, 2.0) for effect in (1.0, -2.0, float("nan"), float("-inf"))] == [0.5, 1, 0, 1]
    assert share_of(1.0, 0.0) == 0


def test_what_is_known_comes_before_what_is_believed() -> None:
    said = [status_text(belief) for belief in (TRUE, FALSE, CLOSED, Belief(0.87, 1.9))]
    assert said == ["true by the facts", "false by the facts", "closed: no fact, so false", "believed 0.87"]
    assert answer_texts(replace(italy(), belief=Belief(0.9, 2.2)))[1:] == ["not calibrated"]
    known = replace(italy(), belief=TRUE, layers=(LayerBelief(0, 1.0, 0.73),))
    assert answer_texts(known) == ["true by the facts", "the network predicts 0.73"]
    assert network_probability(italy()) == 0.97
    assert network_probability(replace(italy(), belief=CLOSED)) == 0.97  # as of its last layer
    assert network_probability(replace(italy(), belief=Belief(1.0, 0.0, known=True), layers=())) == 0.5
    assert network_probability(replace(italy(), belief=Belief(1.0, -1e4, known=True), layers=())) == 0


def test_each_case_of_fidelity_and_of_counterfactuals_has_its_sentence() -> None:
    cases = [
        GIVEN,
        replace(GIVEN, listed=12),
        replace(GIVEN, listed=0, ground_rules=0),
        replace(GIVEN, listed=0),
        replace(GIVEN, none=3.0),
    ]
    said = [fidelity_text(case) for case in cases]
    assert len(set(said)) == len(said)
    assert {"0.93", "0.12"} <= set(said[0].split())
    conditions = [condition_texts(item) for item in italy().counterfactuals]
    assert conditions == [("if ", " were not known"), ("if ", " were known to be false"), ("without rule ", "")]


def test_the_parts_stand_in_their_order_and_none_is_empty() -> None:
    titles = [str(line).split(" ")[0] for line in render(italy()).lines]
    assert titles == ["layer", "because", "what", "the", "rather", "share", "what", "notes"]
    assert render(of_reasons()).lines == ()
    bars = [span.share for line in part(italy(), "layer by").lines for span in line.spans if span.role == "bar"]
    assert bars == [0.53, 0.91, 0.97]


def test_reasons_have_sign_rule_ground_rule_and_atoms() -> None:
    reasons = part(italy(), "because").lines
    assert [span.role for span in reasons[0].spans] == ["for", "bar", "words", "rule", "formula"]
    assert reasons[0].spans[0].text == " +1.92 "
    assert reasons[0].spans[1].share == 1.92 / 3.4  # the strongest effect of all is further down
    assert reasons[-1].spans[0].role == "against"
    assert len(part(italy(), "rather than").lines) == 2
    rules = [reason.ground_rule for reason in all_reasons(chain(3, rules=2).reasons)]
    assert rules == [f"p({i + 1}) & q({j}) -> p({i})" for i, j in ((0, 0), (1, 0), (2, 0), (2, 1), (1, 1), (0, 1))]


def test_an_atom_that_is_met_again_is_referred_to() -> None:
    assert "locatedIn(italy, europe): believed 0.97  (explained above)" in lines_of(part(italy(), "because"))
    first = Reason("r", "q(a) -> p(a)", 1.0, (Member("q(a)", TRUE, effect=-0.5, is_explained_above=True),))
    later = Reason("s", "q(a) | p(a)", 0.5, (Member("q(a)", TRUE, reasons=(Reason("t", "q(a)", 0.1),)),))
    assert "q(a): true by the facts  (effect -0.50)  (explained elsewhere)" in lines_of(
        render(of_reasons(first, later))
    )


PRINTED = """\
p([red]a[/red])  0.90  not known, believed by the network; not calibrated
├── layer by layer
│   ├── input layer  █████      0.50
│   └── layer 1      █████████  0.90
└── because of these ground rules, by their effect on the logit
    └──  +1.50 ██████████ r
        q(a) & !s(a) -> p(a)
        ├── q(a): true by the facts
        └── s(a): closed: no fact, so false"""


def test_the_tree_as_text() -> None:
    small = Explanation(
        "p([red]a[/red])",
        Belief(0.9, 2.2),
        (LayerBelief(0, 0.0, 0.5), LayerBelief(1, 2.2, 0.9)),
        (Reason("r", "q(a) & !s(a) -> p(a)", 1.5, (Member("q(a)", TRUE), Member("s(a)", CLOSED))),),
    )
    assert explanation_text(small) == PRINTED
    lines = explanation_text(italy()).splitlines()
    assert max(map(cell_len, lines)) <= 80
    assert not any(line.endswith(" ") for line in lines)
    text = explanation_text(Explanation(f"p({'x' * 10_000})", Belief(0.5, 0.0), (), ()), width=1000)
    assert len(text) < LONGEST_NAME + 100


def test_names_do_not_steer_the_terminal_and_signs_may_be_plain() -> None:
    reason = Reason("r\x07", "q(a\r) -> p(b)", 1.5, (Member("q(a\r)", TRUE),))
    text = explanation_text(Explanation("p(\x1b[2J\u202e)", Belief(0.9, 2.2), (), (reason,)))
    assert not set("\r\x1b\x07\u202e") & set(text)
    for shown in (r"p(␛[2J\u202e)", "r␇", "q(a␍) -> p(b)"):
        assert shown in text
    console = Console(file=(file := StringIO()), width=100, _environ={})
    console.print(explanation_tree(italy(), in_ascii=True))
    own = file.getvalue().translate(str.maketrans("", "", "│├└─"))  # rich draws the tree by itself
    assert own.isascii()
    assert "0.97 -> 0.78" in own
    assert "######" in own
