"""Reasons of an answer by counted rules."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64

from r2n.data.herbrand import HerbrandBase, RowIndex, Side
from r2n.explanation.counterfactuals import Counterfactuals, Turn, largest
from r2n.explanation.neighbourhood import Scene, Subject
from r2n.explanation.reasons import Moved, ground_text, ranked
from r2n.explanation.records import Belief, Contrast, Explanation, Fidelity, LayerBelief, Member, Reason
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.counting import RuleCounts, SideCounts
from r2n.grounding.ground_rules import GroundRules
from r2n.network.mixture import NETWORK_ALONE, log_odds, rule_probabilities
from r2n.scoring import AtomLogits


@dataclass(frozen=True, eq=False)
class Row:
    """The row of an atom with one position open: what network and counts say of its candidates.

    `network` holds the log of each candidate's share, `known` the places of those known to be true.
    """

    counts: SideCounts
    row: int
    place: int
    network: Float[np.ndarray, " candidates"]
    known: Int64[np.ndarray, " known"]

    @classmethod
    def of(cls, member: AtomLogits, counts: RuleCounts, code: int, position: int) -> "Row":
        """The row of an atom, with the entries of the counts that stand in it."""
        base = member.model.base
        index = int(base.decode(np.array([code]))[0][0])
        whole = counts.side(index, position)
        row, place = (int(part[0]) for part in whole.side.located(np.array([code])))
        _, entries = whole.index.entries(np.array([row]))
        own = {name: getattr(whole, name)[entries] for name in ("places", "rules", "counts", "is_fact", "order")}
        counted = replace(whole, index=RowIndex.of(np.full(len(entries), row)), **own)
        network = member.by(NETWORK_ALONE).rows(index, position, whole.side.given(np.array([row])))[0]
        return cls(counted, row, place, network, _known(whole.side, row, member))

    def entries(self, code: int, rule: int) -> Bool[np.ndarray, " entries"]:
        """Which of the counts are those of a rule for an atom; none where the atom stands in another row."""
        side = self.counts.side
        first, end = side.bounds
        if not first <= code < end:
            return np.zeros(len(self.counts.counts), bool)
        row, place = (int(part[0]) for part in side.located(np.array([code])))
        return (self.counts.places == place) & (self.counts.rules == rule) & (row == self.row)

    def log_odds(self, member: AtomLogits, counts: Int64[np.ndarray, " entries"]) -> float:
        """The logit of the atom's share, with these counts in the place of those that there are."""
        model = member.model
        assert model.counted is not None
        assert model.combination is not None
        left = np.flatnonzero(counts > 0)
        own = {name: getattr(self.counts, name)[left] for name in ("places", "rules", "is_fact", "order")}
        index = RowIndex.of(np.full(len(left), self.row))
        made = replace(self.counts, index=index, counts=counts[left], **own)
        with torch.no_grad():
            shares = rule_probabilities(model.counted, made, np.array([self.row]))
            network = torch.from_numpy(self.network[None].copy()).to(shares.rest)
            known = np.zeros(len(self.known), np.int64), self.known
            logs = model.combination.mixed(network, known, shares, member.weighting)
        return float(log_odds(logs[0, self.place].double().cpu().numpy()[None])[0])


def _known(side: Side, row: int, member: AtomLogits) -> Int64[np.ndarray, " known"]:
    evidence = member.evidence
    codes = row + side.stride * np.arange(side.candidates)
    return np.flatnonzero(np.isin(codes, evidence.atoms[evidence.truth]))


@dataclass(frozen=True, eq=False)
class CountedAtom:
    """An atom that counted rules may conclude, as one or several networks see it."""

    members: Sequence[AtomLogits]
    code: int

    @property
    def _counts(self) -> RuleCounts:
        counts = self.members[0].source.counts
        assert counts is not None
        return counts

    @cached_property
    def numbers(self) -> dict[int, int]:
        """How many ground rules of each rule (by number) conclude the atom."""
        start, end = np.searchsorted(self._counts.codes, [self.code, self.code + 1])
        return dict(zip(self._counts.rule[start:end].tolist(), self._counts.counts[start:end].tolist(), strict=True))

    @cached_property
    def _rows(self) -> list[list[Row]]:
        base: HerbrandBase = self.members[0].model.base
        arity = len(base.shapes[int(base.decode(np.array([self.code]))[0][0])])
        return [[Row.of(m, self._counts, self.code, position) for position in range(arity)] for m in self.members]

    def logit(self, fewer: Mapping[int, int] | None = None, *, of: int | None = None) -> float:
        """The atom's logit; `fewer`: so many ground rules of some rules are left out, that conclude it, or another."""
        code = self.code if of is None else of
        found = []
        for member, rows in zip(self.members, self._rows, strict=True):
            for row in rows:
                counts = row.counts.counts.copy()
                for rule, number in (fewer or {}).items():
                    counts[row.entries(code, rule)] -= number
                found.append(row.log_odds(member, counts))
        return float(np.mean(found))

    @property
    def network(self) -> float:
        """The logit without the counted rules."""
        return float(np.mean([member.by(NETWORK_ALONE)(np.array([self.code]))[0] for member in self.members]))

    def ground_rules(self) -> list[tuple[int, GroundRules]]:
        """The ground rules that conclude the atom, with the number of their rule."""
        numbers = list(self.numbers)
        if not numbers:
            return []
        store = self._counts.store.with_rules(tuple(self._counts.rules[j] for j in numbers))
        found = BackwardGrounder(width=0, depth=1).neighbourhoods(store, np.array([self.code])).grounding.ground_rules
        return list(zip(numbers, found, strict=True))


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
