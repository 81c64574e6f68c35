"""A trained network, explained: why an atom is answered as it is, where rules are counted beside the network."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from r2n.explanation.counted_row import CountedAtom
from r2n.explanation.counterfactuals import Counterfactuals, Turn, largest
from r2n.explanation.ground_text import ground_text
from r2n.explanation.reasons import Moved, ranked
from r2n.explanation.records import Belief, Contrast, Explanation, Fidelity, LayerBelief, Member, Reason
from r2n.explanation.scene import Scene
from r2n.explanation.subject import Subject

MOST_FACTS = 30_000  # with more, nothing is counted again
ALIKE = (
    "rules are counted here: all ground rules of a rule that conclude the atom have the same effect; the first of the"
    " two beliefs is that without counted rules"
)
MANY_FACTS = f"with more than {MOST_FACTS:,} facts, what would be said without one of them is not counted again"
LAYERS = "the ground rules of rules that are not counted are not told"


def explain_counted(
    subject: Subject, code: int, belief: Belief, turn: Turn, top: int | None, against: int | None
) -> Explanation:
    """Why an atom is answered as it is; the bodies of its reasons are known, so that there is nothing below them."""
    asked = CountedAtom(subject.members, code)
    every = _moved(asked)
    shown = ranked(every, top)
    is_small = len(subject.knowledge.evidence) <= MOST_FACTS
    codes = np.concatenate([np.zeros(0, np.int64), *(part.codes for part in shown)])
    told = np.intersect1d(subject.plain(codes), subject.knowledge.evidence.atoms)[: None if is_small else 0]
    names = tuple(dict.fromkeys(part.rule.name for part in ranked(every)))
    scene = Scene.around(subject.members, turn.codes)
    other = Counterfactuals(subject, scene, turn, told, names, subject.logits(turn.codes))
    has_layers = [LAYERS] if scene.layers else []
    return Explanation(
        subject.names(np.array([code]))[0],
        belief,
        _beliefs(subject, asked, belief.logit),
        tuple(_told(subject, code, part) for part in shown),
        (*largest(other.of_facts(), belief.logit, top), *largest(other.of_rules(), belief.logit, top)),
        other.turned_by(),
        _fidelity(asked, shown) if every else None,
        contrast=None if against is None else _contrast(subject, asked, CountedAtom(subject.members, against), top),
        notes=(ALIKE, *has_layers, *([] if is_small else [MANY_FACTS])),
    )


def _moved(asked: CountedAtom) -> list[Moved]:
    """The ground rules that conclude the atom, each with what leaving it out does to the atom's logit."""
    full, found = asked.logit(), []
    for number, part in asked.ground_rules():
        effect = full - asked.logit({number: 1})
        found += [Moved((number,), part.rule, codes, codes, effect) for codes in part.atoms]
    return found


def _beliefs(subject: Subject, asked: CountedAtom, logit: float) -> tuple[LayerBelief, ...]:
    """What the network says without the counted rules, and with them."""
    logits = np.array([asked.network, logit])
    pairs = zip(logits.tolist(), subject.probability(logits).tolist(), strict=True)
    return tuple(LayerBelief(i, *pair) for i, pair in enumerate(pairs))


def _told(subject: Subject, code: int, part: Moved) -> Reason:
    others = np.array([other for other in dict.fromkeys(part.codes.tolist()) if other != code], np.int64)
    pairs = zip(subject.names(others), subject.beliefs(others), strict=True)
    text = ground_text(part.rule, subject.names(part.codes))
    return Reason(part.rule.name, text, part.effect, tuple(Member(*pair) for pair in pairs))


def _fidelity(asked: CountedAtom, shown: Sequence[Moved]) -> Fidelity:
    """What the listed ground rules carry of the answer."""
    listed, whole = Counter(part.numbers[0] for part in shown), dict(asked.numbers)
    others = {rule: number - listed[rule] for rule, number in whole.items()}
    alone, without, none = asked.logit(others), asked.logit(listed), asked.logit(whole)
    return Fidelity(len(shown), sum(whole.values()), asked.logit(), alone, without, none)


def _contrast(subject: Subject, one: CountedAtom, other: CountedAtom, top: int | None) -> Contrast:
    """Which ground rules make the difference: one that concludes an atom takes from the shares of all in its rows."""
    difference, found = one.logit() - other.logit(), []
    for concluded in (one, other):
        for number, part in concluded.ground_rules():
            then = [atom.logit({number: 1}, of=concluded.code) for atom in (one, other)]
            effect = difference - (then[0] - then[1])
            found += [(concluded.code, Moved((number,), part.rule, codes, codes, effect)) for codes in part.atoms]
    concludes = {part.identity: code for code, part in found}
    order = ranked([part for _, part in found], top)
    code = np.array([other.code])
    reasons = tuple(_told(subject, concludes[part.identity], part) for part in order)
    return Contrast(subject.names(code)[0], subject.beliefs(code)[0], difference, reasons)
