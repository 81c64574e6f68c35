"""Explanations made by hand and by Hypothesis, for all that shows them."""

from random import Random
from typing import TypeVar

from hypothesis.strategies import SearchStrategy

from r2n.explanation.records import (
    Belief,
    Contrast,
    Counterfactual,
    Explanation,
    FeatureEffect,
    Fidelity,
    InputReasons,
    Kind,
    LayerBelief,
    Member,
    Reason,
    Similar,
)
from tests.theory_strategies import dice, one_in

T = TypeVar("T")

TRUE, FALSE = Belief(1.0, 6.0, known=True), Belief(0.0, -5.0, known=False)
CLOSED = Belief(0.0, -4.0, closed=True)
NASTY = (
    *(
        "<img src=x onerror=alert(1)>",
        "[/]",
        "[red]x[/red]",
        "a & b < c > \"d\" 'e'",
        "]]>",
        "{{ 7 * 7 }}",
        "$x^2$",
        "",
    ),
    *(
        "\u202egnp.exe",
        "\u05d0\u05d1\u200f",
        "日本語のとても長い名前",
        "line\nbreak\ttab\x00\x1b[31m",
        "\ud800",
        "\ufffe",
    ),
    "x" * 10_000,
)


def neighbour(country: str, effect: float, belief: Belief = TRUE, reasons: tuple[Reason, ...] = ()) -> Reason:
    border, place = f"neighborOf({country}, italy)", f"locatedIn({country}, europe)"
    return Reason(
        "manifold",
        f"{border} & {place} -> locatedIn(italy, europe)",
        effect,
        (Member(border, TRUE), Member(place, belief, reasons=reasons)),
    )


def italy() -> Explanation:

    def reason(rule: str, effect: float, head: str, *members: Member) -> Reason:
        return Reason(rule, f"{' & '.join(member.atom for member in members)} -> {head}", effect, members)

    western = (Member(f"locatedIn({pair})", TRUE) for pair in ("france, western_europe", "western_europe, europe"))
    here = Member("locatedIn(italy, europe)", Belief(0.97, 3.6), is_explained_above=True)
    border, africa = Member("neighborOf(italy, france)", TRUE), "locatedIn(northern_africa, europe)"
    france = (
        reason("hierarchy", 3.4, "locatedIn(france, europe)", *western),
        reason("manifold", 0.4, "locatedIn(france, europe)", border, here),
    )
    there = Member("locatedIn(italy, northern_africa)", Belief(0.08, -2.4))
    reasons = (
        neighbour("france", 1.92, Belief(0.93, 2.6), france),
        *(neighbour(name, effect) for name, effect in (("austria", 1.31), ("switzerland", 1.18), ("slovenia", 0.63))),
        reason("hierarchy", -0.42, "locatedIn(italy, europe)", there, Member(africa, CLOSED)),
    )
    other = Member("neighborOf(france, italy)", TRUE), Member("locatedIn(france, africa)", Belief(0.03, -3.5))
    contrast = neighbour("france", 2.0), reason("manifold", 1.1, "locatedIn(italy, africa)", *other)
    return Explanation(
        "locatedIn(italy, europe)",
        Belief(0.97, 3.6, spread=0.31, calibrated="calibrated on 24 validation queries"),
        (LayerBelief(0, 0.12, 0.53), LayerBelief(1, 2.3, 0.91), LayerBelief(2, 3.6, 0.97)),
        reasons,
        (
            Counterfactual("not known", ("neighborOf(france, italy)",), 1.7, 0.78, turns=False),
            Counterfactual("known to be false", ("locatedIn(france, europe)",), 0.9, 0.64, turns=False),
            Counterfactual("without rule", ("manifold",), -0.4, 0.41, turns=True),
        ),
        Counterfactual("not known", tuple(f"neighborOf({c}, italy)" for c in ("france", "austria")), -0.2, 0.45, True),
        Fidelity(5, 8, full=3.6, alone=3.36, without=0.55, none=0.12),
        InputReasons(
            (Similar("locatedIn(malta, europe)", True, 0.91), Similar("locatedIn(malta, africa)", False, 0.40)),
            (FeatureEffect("peninsula", "italy", 0.8), FeatureEffect("desert", "italy", -0.2)),
        ),
        Contrast("locatedIn(italy, africa)", Belief(0.03, -3.5), 7.1, contrast),
        ("the network reads facts: a fact that is not known is read as unknown",),
    )


def chain(length: int, rules: int = 1) -> Explanation:
    """p(0), because of p(1), because of p(2), ...; each by several ground rules."""
    reasons: tuple[Reason, ...] = ()
    for i in reversed(range(length)):
        first = Member(f"p({i + 1})", Belief(0.7, 0.8), reasons=reasons)
        others = Member(f"p({i + 1})", Belief(0.7, 0.8), is_explained_above=bool(reasons))
        reasons = tuple(
            Reason(f"r{j}", f"p({i + 1}) & q({j}) -> p({i})", 1.0 / (j + 1), (others if j else first,))
            for j in range(rules)
        )
    return Explanation("p(0)", Belief(0.8, 1.4), (LayerBelief(0, 1.4, 0.8),), reasons)


# Hypothesis

KINDS: tuple[Kind, ...] = ("not known", "known to be false", "without rule")
USUAL = tuple(f"p({a}, {b})" for a in "abc" for b in "abc")


def number(dice: Random) -> float:
    odd = float("inf"), float("-inf"), float("nan"), 0.0, 1e-9
    return dice.choice(odd) if one_in(8, dice) else dice.uniform(-9, 9)


def probability(dice: Random) -> float:
    return dice.choice((0.0, 1.0, 0.5, 1e-9, 1 - 1e-9)) if one_in(4, dice) else dice.random()


def name(dice: Random) -> str:
    """A usual name, one that is meant to break something, or any characters at all."""
    if one_in(8, dice):
        return dice.choice(NASTY)
    if one_in(4, dice):
        return "".join(chr(dice.choice((dice.randrange(0x250), dice.randrange(0x110000)))) for _ in range(6))
    return dice.choice(USUAL)


def maybe(made: T, dice: Random) -> T | None:
    return None if one_in(2, dice) else made


def make_belief(dice: Random) -> Belief:
    known = dice.choice((None, None, True, False))
    closed = known is None and one_in(2, dice)
    believed = 0.0 if closed else probability(dice) if known is None else float(known)
    spread, calibrated = maybe(dice.random(), dice), maybe(name(dice), dice)
    return Belief(believed, number(dice), known, closed, spread, calibrated)


def make_reasons(dice: Random, depth: int, above: set[str], most: int = 3) -> tuple[Reason, ...]:
    """Ground rules with their atoms; an atom that has reasons has them once, elsewhere it is referred to."""
    return tuple(
        Reason(
            name(dice),
            name(dice),
            number(dice),
            tuple(make_member(dice, depth - 1, above) for _ in range(dice.randint(0, 3))),
        )
        for _ in range(dice.randint(0, most))
    )


def make_member(dice: Random, depth: int, above: set[str]) -> Member:
    atom, belief, effect = name(dice), make_belief(dice), maybe(number(dice), dice)
    if atom in above:
        return Member(atom, belief, effect, is_explained_above=True)
    if depth <= 0 or one_in(2, dice):
        return Member(atom, belief, effect)
    above.add(atom)
    return Member(atom, belief, effect, make_reasons(dice, depth, above, most=2))


def make_counterfactual(dice: Random) -> Counterfactual:
    what = tuple(name(dice) for _ in range(dice.randint(1, 3)))
    return Counterfactual(dice.choice(KINDS), what, number(dice), probability(dice), one_in(2, dice))


def make_input(dice: Random) -> InputReasons:
    return InputReasons(
        tuple(Similar(name(dice), one_in(2, dice), dice.random()) for _ in range(dice.randint(0, 2))),
        tuple(FeatureEffect(name(dice), name(dice), number(dice)) for _ in range(dice.randint(0, 2))),
    )


def make_explanation(dice: Random) -> Explanation:
    atom, logits = name(dice), [number(dice) for _ in range(4)]
    return Explanation(
        atom,
        make_belief(dice),
        tuple(LayerBelief(i, number(dice), probability(dice)) for i in range(dice.randint(0, 3))),
        make_reasons(dice, 2, {atom}),
        tuple(make_counterfactual(dice) for _ in range(dice.randint(0, 2))),
        maybe(make_counterfactual(dice), dice),
        maybe(Fidelity(dice.randint(0, 5), dice.randint(0, 9), *logits), dice),
        maybe(make_input(dice), dice),
        maybe(Contrast(name(dice), make_belief(dice), number(dice), make_reasons(dice, 1, set())), dice),
        tuple(name(dice) for _ in range(dice.randint(0, 2))),
    )


def explanations() -> SearchStrategy[Explanation]:
    return dice().map(make_explanation)
