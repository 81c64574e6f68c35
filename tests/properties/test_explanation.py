"""What an explanation says is what a real re-run says, on a changed graph or a changed problem."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

from r2n.explanation.records import Explanation, Reason
from tests.examples import first_of
from tests.explained_problems import ALL_STRATEGIES, Explained, draw
from tests.oracles.explanation import GroundRule, Rerun

CLOSE: dict[str, Any] = {"rtol": 1e-6, "atol": 1e-6}
ATOM = re.compile(r"""[^][\s(!&|"',]+\([^()]*\)""")
MOST_MEMBERS = 8  # of a ground rule that are told beside its text
Key = tuple[str, frozenset[str]]
"""A rule, and the atoms of one of its ground rules. Two ground rules may have one key: `p(x) -> p(y)`."""


def bare(text: str) -> str:
    return text.replace('"', "").replace("'", "")


def key_of(reason: Reason) -> Key:
    """What a reason is about, read off its text."""
    return reason.rule, frozenset(ATOM.findall(bare(reason.ground_rule)))


def key(rerun: Rerun, ground_rule: GroundRule) -> Key:
    j, codes = ground_rule
    return rerun.knowledge.theory.rules[j].name, frozenset(map(bare, plain_names(rerun, codes)))


def plain_names(rerun: Rerun, codes: Sequence[int]) -> list[str]:
    """Atoms as text; a reciprocal as the atom that it says the same as."""
    reciprocal = {rerun.directions(code)[-1]: code for code in range(rerun.known.base.size)}
    return rerun.base.names(np.array([reciprocal.get(code, code) for code in codes]))


def by_key(pairs: Iterable[tuple[Key, float]]) -> dict[Key, list[float]]:
    found: dict[Key, list[float]] = defaultdict(list)
    for each, effect in pairs:
        found[each].append(effect)
    return {each: sorted(effects) for each, effects in found.items()}


def check_effects(found: Iterable[tuple[Key, float]], expected: Iterable[tuple[Key, float]]) -> None:
    answers, right = by_key(found), by_key(expected)
    assert answers.keys() == right.keys()
    for each, effects in right.items():
        np.testing.assert_allclose(answers[each], effects, err_msg=str(each), **CLOSE)


def explained(drawn: Explained, code: int, **options: Any) -> Explanation:
    return drawn.predictor.explain(drawn.base.names(np.array([code]))[0], **options)


def listed(rerun: Rerun, code: int, reasons: Sequence[Reason]) -> list[GroundRule]:
    """The ground rules that reasons speak of, where no two have the same key."""
    keys = {key_of(reason) for reason in reasons}
    return [g for g in rerun.standing_in(code) if key(rerun, g) in keys]


def check_order(reasons: Sequence[Reason], effects: Sequence[float]) -> None:
    """What speaks for the atom comes first, the strongest before all; what is left out is weaker."""
    shown = [reason.effect for reason in reasons]
    assert shown == sorted(shown, key=lambda effect: (effect <= 0, -abs(effect)))
    if not shown:
        return
    np.testing.assert_allclose(shown[0], max(effects) if max(effects) > 0 else min(effects), **CLOSE)
    by_size = sorted(effects, key=lambda effect: (effect <= 0, -abs(effect)))
    first = [effect for effect in by_size if effect > 0][: -(-len(shown) // 2)]
    others = sorted(by_size[len(first) :], key=abs, reverse=True)[: len(shown) - len(first)]
    np.testing.assert_allclose(sorted(map(abs, shown)), sorted(map(abs, [*first, *others])), **CLOSE)


def check_reasons(drawn: Explained, code: int, found: Explanation) -> None:
    """Every ground rule that the atom stands in is listed, with its effect, the greatest change first."""
    rerun = drawn.rerun
    expected = [(key(rerun, g), rerun.effect(code, g)) for g in rerun.standing_in(code)]
    check_effects([(key_of(reason), reason.effect) for reason in found.reasons], expected)
    check_order(found.reasons, [effect for _, effect in expected])
    own = {bare(name) for name in plain_names(rerun, [code])}
    for reason in found.reasons:
        because, others = {bare(member.atom) for member in reason.because}, key_of(reason)[1] - own
        assert because <= others
        assert len(because) == len(others) or len(reason.because) == MOST_MEMBERS


def check_beliefs(drawn: Explained, code: int, found: Explanation) -> None:
    """The belief, and out(a) read off every layer."""
    np.testing.assert_allclose(found.belief.logit, drawn.rerun.logit(code), **CLOSE)
    np.testing.assert_allclose([layer.logit for layer in found.layers], drawn.rerun.layers(code), **CLOSE)
    assert [layer.layer for layer in found.layers] == list(range(len(found.layers)))


def check_fidelity(drawn: Explained, code: int, found: Explanation) -> None:
    """The listed ground rules alone, and all but these."""
    everything = drawn.rerun.standing_in(code)
    if not everything:
        return
    chosen = listed(drawn.rerun, code, found.reasons)
    assert found.fidelity is not None
    assert found.fidelity.ground_rules == len(everything)
    assert found.fidelity.listed == len(found.reasons)
    if len(chosen) != len(found.reasons):  # one key, two ground rules, one of them listed
        return
    for name, logit in drawn.rerun.fidelity(code, chosen).items():
        np.testing.assert_allclose(getattr(found.fidelity, name), logit, err_msg=name, **CLOSE)


def check_counterfactuals(drawn: Explained, code: int, found: Explanation) -> None:
    rerun, codes = drawn.rerun, {bare(name): c for name, c in drawn.codes.items()}
    for counterfactual in found.counterfactuals:
        (what,) = counterfactual.what
        if counterfactual.kind == "without rule":
            expected = rerun.without(what)
        else:
            fact = codes[bare(what).lstrip("! ")]
            assert fact in rerun.known.evidence.atoms
            expected = rerun.with_known([fact], None if counterfactual.kind == "not known" else False)
        np.testing.assert_allclose(counterfactual.logit, expected.logit(code), err_msg=str(counterfactual), **CLOSE)
    answers = [(c.kind, c.what) for c in found.counterfactuals]
    assert len(set(answers)) == len(answers)


def check_tree(drawn: Explained, found: Explanation, depth: int, top: int) -> None:
    """Reasons of unknown atoms are those that the atom would be explained by alone; each atom is told once."""
    rerun, codes = drawn.rerun, {bare(name): code for name, code in drawn.codes.items()}
    answers = {codes[bare(found.atom)]}

    def walk(code: int, reasons: Sequence[Reason], levels: int) -> None:
        assert len(reasons) <= top
        assert levels > 0 or not reasons
        effects = by_key((key(rerun, g), rerun.effect(code, g)) for g in rerun.standing_in(code))
        for reason in reasons:
            nearest = min(abs(effect - reason.effect) for effect in effects[key_of(reason)])
            assert nearest <= 1e-6 * (1 + abs(reason.effect)), reason
        for member in [member for reason in reasons for member in reason.because]:
            inner = codes[bare(member.atom)]
            np.testing.assert_allclose(member.belief.logit, rerun.logit(inner), **CLOSE)
            if member.effect is not None and not rerun.reciprocal:
                np.testing.assert_allclose(member.effect, rerun.hiding(code, inner), **CLOSE)
            if member.reasons:
                assert member.belief.known is None
                assert not member.belief.closed
                assert inner not in answers
                answers.add(inner)
                walk(inner, member.reasons, levels - 1)

    walk(codes[bare(found.atom)], found.reasons, depth)


def check_turns(drawn: Explained, code: int, found: Explanation) -> None:
    """A counterfactual turns an answer that falls below one half, or out of the first place."""
    codes = {bare(name): each for name, each in drawn.codes.items()}
    facts = [
        (c, [codes[bare(what).lstrip("! ")] for what in c.what]) for c in found.counterfactuals if c.kind == "not known"
    ]
    if found.turned_by is not None:
        assert found.turned_by.turns
        facts.append((found.turned_by, [codes[bare(what).lstrip("! ")] for what in found.turned_by.what]))
    for counterfactual, gone in facts:
        changed = drawn.rerun.with_known(gone, None)
        np.testing.assert_allclose(counterfactual.logit, changed.logit(code), **CLOSE)
        assert counterfactual.turns == turned(drawn.rerun, changed, code), counterfactual


def turned(before: Rerun, after: Rerun, code: int) -> bool:
    """Held true before, and not after: at least one half, or else the first of the candidates."""
    if before.logit(code) >= 0:
        return after.logit(code) < 0
    rivals = before.rivals(code)
    first = [all(rerun.logit(code) >= rerun.logit(other) for other in rivals) for rerun in (before, after)]
    return first == [True, False]


def check_contrast(drawn: Explained, code: int, other: int) -> None:
    rerun, name = drawn.rerun, drawn.base.names(np.array([other]))[0]
    found = explained(drawn, code, depth=1, top=None, against=name)
    assert found.contrast is not None
    np.testing.assert_allclose(found.contrast.belief.logit, rerun.logit(other), **CLOSE)
    np.testing.assert_allclose(found.contrast.difference, rerun.logit(code) - rerun.logit(other), **CLOSE)
    both = dict.fromkeys([*rerun.standing_in(code), *rerun.standing_in(other)])
    expected = [(key(rerun, g), rerun.contrast(code, other, g)) for g in both]
    check_effects([(key_of(reason), reason.effect) for reason in found.contrast.reasons], expected)
    check_order(found.contrast.reasons, [effect for _, effect in expected])


@pytest.mark.parametrize("seed", first_of(range(100), 5))
@pytest.mark.parametrize("strategy", ALL_STRATEGIES)
def test_an_explanation_is_what_a_rerun_says(strategy: str, seed: int) -> None:
    dice = Random(seed)
    drawn = draw(dice, strategy)
    asked = drawn.asked(dice)
    for code in asked:
        found = explained(drawn, code, depth=1, top=None)
        check_beliefs(drawn, code, found)
        check_reasons(drawn, code, found)
        check_counterfactuals(drawn, code, found)
        check_fidelity(drawn, code, found)
        few = explained(drawn, code, depth=3, top=2)
        check_order(few.reasons, [reason.effect for reason in found.reasons])
        check_fidelity(drawn, code, few)
        check_tree(drawn, few, depth=3, top=2)
        check_turns(drawn, code, few)
    if len(asked) == 2:
        check_contrast(drawn, *asked)


def test_what_stands_in_both_neighbourhoods_is_left_out_of_both() -> None:
    """Two atoms, each with a neighbourhood of its own, and a ground rule in both that one of them stands in."""
    dice = Random(48)
    drawn = draw(dice, "backward(1,2)")
    check_contrast(drawn, *drawn.asked(dice))
