"""A trained network, explained: why an atom is answered as it is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from r2n.data.herbrand import Codes, Side
from r2n.explanation.counted import explain_counted
from r2n.explanation.counterfactuals import Counterfactuals, Turn, largest
from r2n.explanation.features import input_reasons
from r2n.explanation.neighbourhood import Changes, Scene, Subject
from r2n.explanation.reasons import Moved, Tree, ground_text, leaving_out, located, ranked
from r2n.explanation.records import Belief, Contrast, Counterfactual, Explanation, Fidelity, LayerBelief, Member, Reason
from r2n.network.factor_graph import known_truths
from r2n.network.graph_sources import reachable_rules

MOST_CANDIDATES = 5_000  # of a row, among which an atom may be the first
MOST_RIVALS = 10  # that are asked again in every change


@dataclass(frozen=True, slots=True)
class Wanted:
    """How much is told: levels of reasons, reasons of an atom (None: all), and an atom (code) to compare with."""

    depth: int = 2
    top: int | None = 5
    against: int | None = None


def explain(subject: Subject, code: int, wanted: Wanted) -> Explanation:
    """Why an atom (by its code, in the language of the training) is answered as it is."""
    belief = subject.beliefs(np.array([code]))[0]
    turn = _turn(subject, code, belief.logit)
    if subject.members[0].model.counted is not None:
        found = explain_counted(subject, code, belief, turn, wanted.top if wanted.depth else 0, wanted.against)
        read = input_reasons(subject.members, subject.knowledge, code)
        return replace(found, input=read, notes=(*_known(belief), *found.notes))
    scene = Scene.around(subject.members, turn.codes)
    tree = Tree(subject, wanted.top)
    every = tree.grow(code, scene, wanted.depth)
    return Explanation(
        subject.names(np.array([code]))[0],
        belief,
        _layers(subject, scene),
        tree.reasons(code),
        *_counterfactuals(subject, scene, turn, tree, wanted.top),
        fidelity=_fidelity(scene, every, tree.below[code]) if every else None,
        input=input_reasons(subject.members, subject.knowledge, code),
        contrast=None if wanted.against is None else _contrast(subject, code, wanted),
        notes=(*_known(belief), *_notes(subject, scene, every)),
    )


def _layers(subject: Subject, scene: Scene) -> tuple[LayerBelief, ...]:
    """out(a) read off every layer."""
    logits = np.array([scene.out(layer)[0] for layer in range(scene.layers + 1)])
    pairs = zip(logits.tolist(), subject.probability(logits).tolist(), strict=True)
    return tuple(LayerBelief(layer, logit, probability) for layer, (logit, probability) in enumerate(pairs))


def _rivals(subject: Subject, code: int) -> Codes:
    """The atoms that differ from an atom in its last constant, and are not known, the most probable first."""
    index = int(subject.base.decode(np.array([code]))[0][0])
    side = Side.of(subject.base, index, len(subject.base.shapes[index]) - 1)
    if side.candidates > MOST_CANDIDATES:
        return np.zeros(0, np.int64)
    row, _ = side.located(np.array([code]))
    codes = row + side.stride * np.arange(side.candidates)
    codes = codes[(codes != code) & (known_truths(subject.base, codes, subject.knowledge.evidence) < 0)]
    return codes[np.argsort(-subject.logits(codes), kind="stable")]


def _turn(subject: Subject, code: int, logit: float) -> Turn:
    """When the answer would be another."""
    own = np.array([code], np.int64)
    if logit >= subject.half:
        return Turn(own, "half", subject.half)
    rivals = _rivals(subject, code)
    if not len(rivals) or logit < subject.logits(rivals[:1])[0]:
        return Turn(own, None)
    return Turn(np.concatenate([own, rivals[:MOST_RIVALS]]), "first")


def _counterfactuals(
    subject: Subject, scene: Scene, turn: Turn, tree: Tree, top: int | None
) -> tuple[tuple[Counterfactual, ...], Counterfactual | None]:
    """The counterfactuals that matter most, facts first, and the set of facts that turns the answer."""
    told = [part.codes for parts in tree.below.values() for part in parts]
    codes = subject.plain(np.concatenate([np.zeros(0, np.int64), *told]))
    first = subject.members[0]
    rules = tuple(sorted(reachable_rules(first.source, turn.codes, scene.layers))) if first.source.whole is None else ()
    facts = np.intersect1d(codes, subject.knowledge.evidence.atoms)
    asked = Counterfactuals(subject, scene, turn, facts, rules, scene.logits)
    logit = float(scene.logits[0])
    return (*largest(asked.of_facts(), logit, top), *largest(asked.of_rules(), logit, top)), asked.turned_by()


def _fidelity(scene: Scene, every: Sequence[Moved], shown: Sequence[Moved]) -> Fidelity:
    """What the listed ground rules carry of the answer."""
    chosen = {part.identity for part in shown}
    others = [part for part in every if part.identity not in chosen]
    pairs = [[k, n] for k, parts in enumerate((others, shown, every)) for part in parts for n in part.numbers]
    logits = scene.changed(Changes.leaving_out(np.array(pairs, np.int64).reshape(-1, 2), 3))[:, 0].tolist()
    alone, without, none = logits
    return Fidelity(len(chosen), len(every), float(scene.logits[0]), alone, without, none)


def _contrast(subject: Subject, code: int, wanted: Wanted) -> Contrast:
    """Which ground rules make the difference to another atom."""
    assert wanted.against is not None
    scene = Scene.around(subject.members, np.array([code, wanted.against], np.int64))
    found = located(scene, np.unique(np.concatenate([scene.ground_rules_of(0), scene.ground_rules_of(1)])))
    logits = scene.changed(leaving_out(found))
    difference = float(scene.logits[0] - scene.logits[1])
    effects = (difference - (logits[:, 0] - logits[:, 1])).tolist()
    found = [replace(part, effect=effect) for part, effect in zip(found, effects, strict=True)]
    reasons = [_plain(subject, part) for part in ranked(found, wanted.top)]
    other = np.array([wanted.against])
    return Contrast(subject.names(other)[0], subject.beliefs(other)[0], difference, tuple(reasons))


def _plain(subject: Subject, part: Moved) -> Reason:
    """A ground rule with all its atoms, and nothing below them."""
    names = subject.names(part.codes)
    told = zip(names, subject.beliefs(part.codes), strict=True)
    members = tuple(Member(name, belief) for name, belief in dict(told).items())
    return Reason(part.rule.name, ground_text(part.rule, names), part.effect, members)


def _known(belief: Belief) -> tuple[str, ...]:
    if belief.closed:
        return ("it is no fact of a closed predicate, and so false: explained is what the network says by itself",)
    if belief.known is None:
        return ()
    return (f"it is known to be {str(belief.known).lower()}: explained is what the network says by itself",)


def _notes(subject: Subject, scene: Scene, every: Sequence[Moved]) -> Iterator[str]:
    first = subject.members[0]
    if not scene.layers:
        yield "the network has no reasoning layer: the answer is that of its input layer"
    elif not every:
        yield "no ground rule holds it: the answer is that of the input layer"
    elif first.model.evidence_input == "off" and not first.source.known_in_bodies:
        yield (
            "this network does not read facts (model.evidence_input = off): they count as far as training learned them,"
            " and where ground rules are there because of them"
        )
