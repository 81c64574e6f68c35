"""How numbers and parts of explanations are said."""

from dataclasses import replace

import pytest

from r2n.explanation.records import Belief, Counterfactual, Fidelity, LayerBelief
from r2n.explanation.text import (
    answer_texts,
    change_text,
    condition_texts,
    effect_text,
    fidelity_logits,
    fidelity_text,
    layer_name,
    network_probability,
    printable,
    probability_text,
    share_of,
    shortened,
    status_text,
    strongest,
)
from tests.explanations import CLOSED, FALSE, TRUE, italy


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


def test_long_names_lose_their_middle() -> None:
    assert shortened("abcdef", 6) == "abcdef"
    assert shortened("abcdefg", 6) == "abc…fg"
    assert len(shortened("x" * 10_000, 42)) == 42


@pytest.mark.parametrize(
    ("probability", "text"),
    [
        (0.0, "0.00"),
        (1.0, "1.00"),
        (0.973, "0.97"),
        (0.9972, "0.997"),
        (0.99972, "0.9997"),
        (0.999996, ">0.9999"),
        (0.004, "0.004"),
        (0.00001, "<0.0001"),
        (float("nan"), "nan"),
    ],
)
def test_probabilities_near_the_ends_are_told_from_them(probability: float, text: str) -> None:
    assert probability_text(probability) == text


@pytest.mark.parametrize(
    ("effect", "text"),
    [(2.314, "+2.31"), (-0.42, "-0.42"), (0.0, "+0.00"), (-0.00041, "-0.0004"), (float("inf"), "+inf")],
)
def test_effects_have_a_sign(effect: float, text: str) -> None:
    assert effect_text(effect) == text


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (0.971, 0.41, "0.97 → 0.41"),
        (0.9990, 0.9996, "0.9990 → 0.9996"),
        (0.999, 0.45, "0.999 → 0.450"),
        (1.0, 0.45, "1.00 → 0.45"),
        (0.97, 0.97, "0.97 → 0.97"),
        (0.9999999, 0.9999998, ">0.9999 → >0.9999"),
        (0.5, 0.00001, "0.50 → <0.0001"),
    ],
)
def test_a_change_is_seen(before: float, after: float, text: str) -> None:
    assert change_text(before, after) == text


def test_shares_of_the_strongest_effect() -> None:
    assert strongest([]) == 0
    assert strongest([1.0, -2.0, float("nan"), float("inf")]) == 2
    assert [share_of(effect, 2.0) for effect in (1.0, -2.0, float("nan"), float("-inf"))] == [0.5, 1, 0, 1]
    assert share_of(1.0, 0.0) == 0


def test_what_is_known_comes_before_what_is_believed() -> None:
    told = [status_text(belief) for belief in (TRUE, FALSE, CLOSED, Belief(0.87, 1.9))]
    assert told == ["true by the facts", "false by the facts", "closed: no fact, so false", "believed 0.87"]


def test_how_sure_an_answer_is() -> None:
    assert answer_texts(italy()) == [
        "not known, believed by the network",
        "calibrated on 24 validation queries",
        "networks differ by ±0.31 (logit)",
    ]
    assert answer_texts(replace(italy(), belief=Belief(0.9, 2.2)))[1:] == ["not calibrated"]
    known = replace(italy(), belief=TRUE, layers=(LayerBelief(0, 1.0, 0.73),))
    assert answer_texts(known) == ["true by the facts", "the network predicts 0.73"]


def test_what_the_network_says_of_a_known_atom() -> None:
    assert network_probability(italy()) == 0.97
    assert network_probability(replace(italy(), belief=CLOSED)) == 0.97  # as of its last layer
    assert network_probability(replace(italy(), belief=Belief(1.0, 0.0, known=True), layers=())) == 0.5
    assert network_probability(replace(italy(), belief=Belief(1.0, -1e4, known=True), layers=())) == 0


def test_layers_and_conditions() -> None:
    assert [layer_name(layer) for layer in italy().layers] == ["input layer", "layer 1", "layer 2"]
    conditions = [condition_texts(item) for item in italy().counterfactuals]
    assert conditions == [("if ", " were not known"), ("if ", " were known to be false"), ("without rule ", "")]
    assert condition_texts(Counterfactual("not known", ("a", "b"), 0.0, 0.5, True))[1] == " were not known"


def test_fidelity_in_words() -> None:
    given = Fidelity(5, 12, full=3.0, alone=2.86, without=1.24, none=1.0)
    told = "these 5 of 12 ground rules alone give 0.93 of what ground rules do; without them 0.12 is left"
    assert fidelity_text(given) == told
    one = "this one of 12 ground rules alone gives 0.93 of what ground rules do; without it 0.12 is left"
    assert fidelity_text(replace(given, listed=1)) == one
    assert fidelity_text(replace(given, listed=12)) == "these are all 12 ground rules that the atom stands in"
    only = replace(given, listed=1, ground_rules=1)
    assert fidelity_text(only) == "this is the only ground rule that the atom stands in"
    assert fidelity_text(replace(given, listed=0, ground_rules=0)) == "the atom stands in no ground rule"
    none = "none of the 12 ground rules that the atom stands in is listed"
    assert fidelity_text(replace(given, listed=0)) == none
    assert fidelity_logits(replace(given, listed=0)) == "logit 3.00; without any ground rule 1.00"
    same = "the answer is the same without any of the 12 ground rules that the atom stands in"
    assert fidelity_text(replace(given, none=3.0)) == same
    logits = "logit 3.00; with these alone 2.86, without them 1.24, without any ground rule 1.00"
    assert fidelity_logits(given) == logits
