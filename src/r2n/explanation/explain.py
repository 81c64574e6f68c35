"""Explanations of answers: ground rules ranked by what leaving each out does, and the reasons of their atoms."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64

from r2n.data.herbrand import Codes, QueryPattern, RowIndex
from r2n.explanation.counterfactuals import (
    HIDDEN,
    NO_CODES,
    NO_PAIRS,
    Changes,
    Counterfactuals,
    ExplainedModel,
    Flip,
    Neighbourhood,
)
from r2n.explanation.features import input_reasons
from r2n.explanation.records import Contrast, Explanation, Fidelity, LayerBelief, Member, Reason
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.counting import PatternCounts, RowCounts
from r2n.grounding.ground_rules import GroundRules
from r2n.logic.formula import And, Atom, Formula, Or, Variable
from r2n.logic.theory import Rule
from r2n.network.factor_graph import known_truths
from r2n.network.graph_sources import reachable_rules
from r2n.network.mixture import NETWORK_ALONE, log_odds, rule_probabilities
from r2n.network.regression import Regression
from r2n.scoring import AtomLogits

MOST_CANDIDATES = 5_000  # of a row, among which an atom may be the first
MOST_RIVALS = 10  # candidates that are scored again in every change
MOST_MEMBERS = 8  # atoms of a ground rule that are listed; those of a larger one have no reasons below them
MOST_BELOW = 3  # reasons of an atom that is itself a reason
MOST_FACTS = 30_000  # with more, nothing is counted again
COUNTED_ALIKE = (
    "rules are counted here: all ground rules of a rule that conclude the atom have the same effect; the first of the"
    " two beliefs is that without counted rules"
)
CLAUSES_ALIKE = (
    "ground rules are counted by the input layer: all of one rule that decide the atom have the same effect, that of"
    " one of them fewer"
)
MANY_FACTS = f"with more than {MOST_FACTS:,} facts, what would be said without one of them is not counted again"
LAYERS_UNSEEN = "the ground rules of rules that are not counted are not shown"
NOT_READ = (
    "this network does not read facts (model.evidence_input = off): they count as far as training learned them, and"
    " where ground rules are there because of them"
)

Identity = tuple[str, tuple[int, ...]]
"""Of a ground rule: its rule's name, and the codes of its atoms."""


def explain(
    model: ExplainedModel, code: int, *, depth: int = 2, top: int | None = 5, against: int | None = None
) -> Explanation:
    """Explain the answer for an atom, given by its code in the language of the training.

    `depth` is the number of levels of reasons, `top` the most reasons of an atom (None: all), and `against` the code of
    an atom to compare with.
    """
    belief = model.beliefs(np.array([code]))[0]
    flip = _flip(model, code, belief.logit)
    near = Neighbourhood.around(model.members, flip.codes)
    is_counted = model.members[0].model.counted is not None
    top = 0 if is_counted and not depth else top
    make, effects = (_by_counts, _effects_of_counts) if is_counted else (_by_layers, _effects_of_layers)
    if not near.layers and model.members[0].model.atom_embedding.reads_facts:
        make, effects = _by_clauses, _effects_of_clauses
    found = make(model, near, flip, depth, top)
    listed = model.plain(np.concatenate([NO_CODES, *(part.codes for part in found.listed)]))
    facts = np.intersect1d(listed, model.knowledge.evidence.atoms)
    changed, turned_by = Counterfactuals(model, near, flip, facts, found.rules, found.logits).largest(top)
    known = "" if belief.known is None else f"it is known to be {str(belief.known).lower()}"
    known = "it is no fact of a closed predicate, and so false" if belief.closed else known
    contrast = None
    if against is not None:
        pair = np.array([code, against])
        parts = [replace(part, effect=float(own - other)) for part, (own, other) in effects(model, pair)]
        reasons = tuple(_flat_reason(model, part) for part in ranked(parts, top))
        other = model.beliefs(pair[1:])[0]
        contrast = Contrast(model.names(pair[1:])[0], other, belief.logit - other.logit, reasons)
    layers = [*found.layers, *[belief.logit] * (is_counted or not found.layers)]
    probabilities = model.probability(np.array(layers, np.float64)).tolist()
    return Explanation(
        model.names(flip.codes[:1])[0],
        belief,
        tuple(LayerBelief(i, *pair) for i, pair in enumerate(zip(layers, probabilities, strict=True))),
        found.reasons,
        changed,
        turned_by,
        found.fidelity,
        input_reasons(model.members, model.knowledge, code),
        contrast,
        (*[f"{known}: explained is what the network says by itself"] * bool(known), *found.notes),
    )


class _Found(NamedTuple):
    """What ground rules of layers, or counted rules, explain.

    `layers` are the atom's logits layer by layer, `listed` all ground rules with facts that are left out in turn,
    `rules` the names of rules that are left out in turn, and `logits` those of the flip's atoms.
    """

    layers: list[float]
    reasons: tuple[Reason, ...]
    listed: list["RankedRule"]
    rules: tuple[str, ...]
    logits: np.ndarray
    fidelity: Fidelity | None
    notes: tuple[str, ...]


def _flip(model: ExplainedModel, code: int, logit: float) -> Flip:
    """When the answer flips: below one half, or if it is not above it, out of first place among the unknown atoms."""
    own = np.array([code], np.int64)
    if logit >= model.half:
        return Flip(own, "half", model.half)
    index = int(model.base.decode(own)[0][0])
    pattern, rivals = QueryPattern.from_base(model.base, index, len(model.base.shapes[index]) - 1), NO_CODES
    if pattern.candidates <= MOST_CANDIDATES:
        rivals = pattern.located(own)[0] + pattern.stride * np.arange(pattern.candidates)
        rivals = rivals[(rivals != code) & (known_truths(model.base, rivals, model.knowledge.evidence) < 0)]
    logits = model.logits(rivals) if len(rivals) else np.zeros(0)
    if not len(rivals) or logit < logits.max():
        return Flip(own, None)
    return Flip(np.concatenate([own, rivals[np.argsort(-logits, kind="stable")[:MOST_RIVALS]]]), "first")


def _by_layers(model: ExplainedModel, near: Neighbourhood, flip: Flip, depth: int, top: int | None) -> _Found:
    """By the ground rules of reasoning layers."""
    code, first, fidelity = int(flip.codes[0]), model.members[0], None
    tree = ReasonTree(model, top)
    every = tree.grow(code, near, depth)
    is_full = first.source.full_graph is not None
    rules = () if is_full else tuple(sorted(reachable_rules(first.source, flip.codes, near.layers)))
    notes = (NOT_READ,) if first.model.evidence_input == "off" and not first.source.known_in_bodies else ()
    if not near.layers or not every:
        why = "no ground rule holds it" if near.layers else "the network has no reasoning layer"
        notes = (f"{why}: the answer is that of the input layer",)
    if every:
        shown = tree.below[code]
        chosen = {part.identity for part in shown}
        others = [part for part in every if part.identity not in chosen]
        logits = near.changed(_leaving_out([others, shown, every]))[:, 0].tolist()
        fidelity = Fidelity(len(chosen), len(every), float(near.logits[0]), *logits)
    layers = [float(near.out(layer)[0]) for layer in range(near.layers + 1)]
    listed = [part for parts in tree.below.values() for part in parts]
    return _Found(layers, tree.reasons(code), listed, rules, near.logits, fidelity, notes)


Effects = Iterator[tuple["RankedRule", Sequence[float]]]
"""Ground rules, and the effect of each on some atoms."""


def _effects_of_layers(model: ExplainedModel, codes: Codes) -> Effects:
    """Of the ground rules of reasoning layers that hold one of the atoms."""
    near = Neighbourhood.around(model.members, codes)
    found = _located(near, np.unique(np.concatenate([near.ground_rules_of(i) for i in range(len(codes))])))
    return zip(found, near.logits - near.changed(_leaving_out([[part] for part in found])), strict=True)


def _flat_reason(model: ExplainedModel, part: "RankedRule") -> Reason:
    """A ground rule with its first atoms but the concluded one, and nothing below them."""
    others = dict.fromkeys(model.plain(part.codes).tolist())
    codes = np.array([other for other in others if other != part.concluded][:MOST_MEMBERS], np.int64)
    members = tuple(Member(*pair) for pair in zip(model.names(codes), model.beliefs(codes), strict=True))
    return Reason(part.rule.name, ground_text(part.rule, model.names(part.codes)), part.effect, members)


def _by_counts(model: ExplainedModel, near: Neighbourhood, flip: Flip, _: int, top: int | None) -> _Found:
    """By counted rules; the bodies of its reasons are known, so that there is nothing below them."""
    code = int(flip.codes[0])
    atom, is_small = CountedAtom(model.members, code), len(model.knowledge.evidence) <= MOST_FACTS
    every = [replace(part, effect=effect) for part, (effect,) in _effects_among([atom])]
    shown = ranked(every, top)
    number = Counter(part.numbers[0] for part in shown)
    others = {rule: count - number[rule] for rule, count in atom.numbers.items()}
    without = [atom.logit(fewer) for fewer in (others, number, atom.numbers)] if every else []
    return _Found(
        [atom.network],
        tuple(_flat_reason(model, part) for part in shown),
        shown if is_small else [],
        tuple(dict.fromkeys(part.rule.name for part in ranked(every))),
        model.logits(flip.codes),
        Fidelity(len(shown), sum(atom.numbers.values()), atom.logit(), *without) if every else None,
        (COUNTED_ALIKE, *[LAYERS_UNSEEN] * bool(near.layers), *[MANY_FACTS] * (not is_small)),
    )


def _effects_of_counts(model: ExplainedModel, codes: Codes) -> Effects:
    """Of the ground rules of counted rules that conclude one of the atoms."""
    return _effects_among([CountedAtom(model.members, code) for code in codes.tolist()])


def _effects_among(atoms: "Sequence[CountedAtom]") -> Effects:
    full = [atom.logit() for atom in atoms]
    for one in atoms:
        for number, part in one.ground_rules():
            effects = [all_ - each.logit({number: 1}, of=one.code) for all_, each in zip(full, atoms, strict=True)]
            yield from ((RankedRule((number,), part.rule, c, concluded=one.code), effects) for c in part.atoms)


def _effects_of_clauses(model: ExplainedModel, codes: Codes) -> Effects:
    """Of the ground clauses that decide the atoms, the means over the networks."""
    layers = (member.model.atom_embedding for member in model.members)
    regressions = [layer for layer in layers if isinstance(layer, Regression)]
    for i, code in enumerate(codes.tolist()):
        for each in zip(*(layer.clauses(model.base, code) for layer in regressions), strict=True):
            effects = np.zeros(len(codes))
            effects[i] = np.mean([effect for _, _, effect in each])
            yield RankedRule((0,), *each[0][:2], concluded=code), effects.tolist()


def _by_clauses(model: ExplainedModel, near: Neighbourhood, flip: Flip, _: int, top: int | None) -> _Found:
    """By the ground clauses that the input layer counts; all other atoms of them are known."""
    every = [replace(part, effect=effect) for part, (effect,) in _effects_of_clauses(model, flip.codes[:1])]
    shown, is_small = ranked(every, top), len(model.knowledge.evidence) <= MOST_FACTS
    reasons, notes = tuple(_flat_reason(model, part) for part in shown), (CLAUSES_ALIKE,)
    notes = notes if every else ("no ground rule decides it: the answer is that of the input layer",)
    logits, listed = model.logits(flip.codes), shown if is_small else []
    return _Found([], reasons, listed, (), logits, None, (*notes, *[MANY_FACTS] * (not is_small)))


@dataclass(frozen=True, eq=False)
class RankedRule:
    """A ground rule, its effect on an atom, and its `numbers` in the graph: one for each copy of it.

    `concluded` is the code of the atom that it concludes, if it is counted.
    """

    numbers: tuple[int, ...]
    rule: Rule
    codes: Int64[np.ndarray, " positions"]
    effect: float = 0.0
    concluded: int | None = None

    @property
    def identity(self) -> Identity:
        """Distinguishes it from all other ground rules, in whatever graph."""
        return self.rule.name, tuple(self.codes.tolist())


def rules_with_effects(near: Neighbourhood, count: int) -> list[list[RankedRule]]:
    """For each of the first `count` atoms, all its ground rules, with the effect of each on the logit."""
    found = [_located(near, near.ground_rules_of(index)) for index in range(count)]
    every = [part for parts in found for part in parts]
    of = np.repeat(np.arange(count), list(map(len, found)))
    logits = near.changed(_leaving_out([[part] for part in every]))[np.arange(len(every)), of]
    effects = iter((near.logits[of] - logits).tolist())
    return [[replace(part, effect=next(effects)) for part in parts] for parts in found]


def _leaving_out(sets: Sequence[Sequence[RankedRule]]) -> Changes:
    """Changes that leave out one set of ground rules each."""
    pairs = [[k, number] for k, parts in enumerate(sets) for part in parts for number in part.numbers]
    return Changes(len(sets), np.array(pairs, np.int64).reshape(-1, 2))


def _located(near: Neighbourhood, numbers: Int64[np.ndarray, " _"]) -> list[RankedRule]:
    """Ground rules of a graph by their numbers, each once."""
    found: dict[Identity, RankedRule] = {}
    for number in numbers.tolist():
        rule, rows = near.located(number)
        part = RankedRule(near.copies(number), near.graph.rules[rule], near.graph.atoms.numpy()[rows])
        found.setdefault(part.identity, part)
    return list(found.values())


def ranked(found: Sequence[RankedRule], top: int | None = None) -> list[RankedRule]:
    """Ground rules that speak for an atom, the strongest first, then those that do not, the strongest first."""
    every = sorted(found, key=lambda part: (part.effect <= 0, -abs(part.effect), part.identity))
    return [every[i] for i in strongest_places([part.effect for part in every], top)]


def strongest_places(effects: Sequence[float], top: int | None) -> list[int]:
    """The places of at most `top` effects, which are in order: those for an atom, then the others.

    The strongest for the atom have at least half of the places, those that are stronger than the remaining ones, for
    or against it, have the others.
    """
    if top is None or len(effects) <= top:
        return [*range(len(effects))]
    own = min(-(-top // 2), sum(effect > 0 for effect in effects))
    others = sorted(range(own, len(effects)), key=lambda i: -abs(effects[i]))[: top - own]
    return [*range(own), *sorted(others)]


@dataclass
class ReasonTree:
    """Reasons and, for atoms of which nothing is known, their reasons in turn; each atom is explained once.

    `below` are the listed ground rules of each atom, `effects` those of atoms (code, other), and `homes` the atom and
    ground rule under which the reasons of an atom are listed.
    """

    model: ExplainedModel
    top: int | None
    below: dict[int, list[RankedRule]] = field(default_factory=dict)
    effects: dict[tuple[int, int], float] = field(default_factory=dict)
    homes: dict[int, tuple[int, Identity]] = field(default_factory=dict)

    def grow(self, code: int, near: Neighbourhood, depth: int) -> list[RankedRule]:
        """Find the reasons of a neighbourhood's first atom, and of those below it to a depth; return all its own.

        `effects` are those on the first atom of what the network reads of each atom of its listed ground rules.
        """
        every = rules_with_effects(near, 1)[0]
        self.below[code] = ranked(every, self.top) if depth else []
        listed = np.concatenate([NO_CODES, *(part.codes for part in self.below[code])])
        rows = np.flatnonzero(np.isin(near.graph.atoms.numpy(), listed))  # all copies of an atom
        atoms, change = np.unique(self.model.plain(near.graph.atoms.numpy()[rows]), return_inverse=True)
        states = np.full(len(rows), HIDDEN, np.int64)
        changes = Changes(len(atoms), NO_PAIRS, np.stack([change, rows], axis=1), states)
        effects = near.logits[0] - near.changed(changes)[:, 0]
        self.effects = {(code, atom): effect for atom, effect in zip(atoms.tolist(), effects.tolist(), strict=True)}
        above: dict[int, set[Identity]] = {code: set()}
        most = MOST_BELOW if self.top is None else min(self.top, MOST_BELOW)
        for _ in range(1, depth):
            above = self._next(above)
            if not above:
                break
            codes = list(above)
            around = Neighbourhood.around(self.model.members, np.array(codes, np.int64))
            for other, found in zip(codes, rules_with_effects(around, len(codes)), strict=True):
                self.below[other] = ranked([part for part in found if part.identity not in above[other]], most)
        return every

    def _next(self, above: dict[int, set[Identity]]) -> dict[int, set[Identity]]:
        """The unknown atoms of a level's reasons that are not explained yet, each with the ground rules above it."""
        found: dict[int, set[Identity]] = {}
        for code in above:
            for part in (part for part in self.below[code] if len(part.codes) <= MOST_MEMBERS):
                codes = self.model.plain(part.codes)
                unknown = known_truths(self.model.base, codes, self.model.knowledge.evidence) < 0
                for other in codes[unknown].tolist():
                    if other not in self.below and other not in found:
                        found[other] = above[code] | {part.identity}
                        self.homes[other] = code, part.identity
        return found

    def reasons(self, code: int) -> tuple[Reason, ...]:
        """The reasons of an atom, as records; of a ground rule with many atoms, those with the largest effects."""
        model = self.model
        listed = [model.plain(part.codes) for parts in self.below.values() for part in parts]
        codes = np.unique(np.concatenate([NO_CODES, *listed]))
        beliefs = model.beliefs(codes) if len(codes) else ()
        texts = dict(zip(codes.tolist(), zip(model.names(codes), beliefs, strict=True), strict=True))

        def records(code: int) -> tuple[Reason, ...]:
            found = []
            for part in self.below[code]:
                atoms, because = model.plain(part.codes).tolist(), []
                others = [other for other in dict.fromkeys(atoms) if other != code]
                kept = sorted(others, key=lambda other: -abs(self.effects.get((code, other), 0.0)))[:MOST_MEMBERS]
                for other in (other for other in others if other in kept):
                    is_here = self.homes.get(other) == (code, part.identity)
                    below, is_above = records(other) if is_here else (), other in self.below and not is_here
                    because.append(Member(*texts[other], self.effects.get((code, other)), below, is_above))
                text = ground_text(part.rule, [texts[other][0] for other in atoms])
                found.append(Reason(part.rule.name, text, part.effect, tuple(because)))
            return tuple(found)

        return records(code)


def ground_text(rule: Rule, names: Sequence[str]) -> str:
    """`neighborOf(italy, france) & locatedIn(italy, europe) -> locatedIn(france, europe)`, by its atoms' names."""
    if rule.formula is None:
        return f"[{', '.join(dict.fromkeys(names))}]"  # a reciprocal has the name of what it says
    by_atom = dict(zip(rule.atoms, names, strict=True))

    def named(formula: Formula) -> Formula:
        if isinstance(formula, Atom):
            return _Named(by_atom[formula], (Variable("x"),))
        parts = tuple(map(named, formula.operands()))
        return type(formula)(parts) if isinstance(formula, And | Or) else type(formula)(*parts)

    return str(named(rule.formula))


class _Named(Atom):
    """An atom that is printed by its name."""

    def __str__(self) -> str:
        return self.predicate


@dataclass(frozen=True, eq=False)
class Row:
    """The candidates of an atom's query at one position: its log-probabilities, counts and known ones."""

    counts: PatternCounts
    row: int
    candidate: int
    network: Float[np.ndarray, " candidates"]
    known: Int64[np.ndarray, " known"]

    @classmethod
    def from_atom(cls, member: AtomLogits, counts: RowCounts, code: int, position: int) -> "Row":
        """The row of an atom, with the counts of its candidates."""
        base = member.model.base
        index = int(base.decode(np.array([code]))[0][0])
        pattern = QueryPattern.from_base(base, index, position)
        row, candidate = (int(part[0]) for part in pattern.located(np.array([code])))
        every = counts.at(index, position, np.array([row]))
        _, entries = every.index.entries(np.array([row]))
        network = member.by(NETWORK_ALONE).rows(index, position, every.pattern.given(np.array([row])))[0]
        codes, evidence = row + every.pattern.stride * np.arange(every.pattern.candidates), member.evidence
        known = np.flatnonzero(np.isin(codes, evidence.facts))
        return cls(_entries(every, entries, row), row, candidate, network, known)

    def entries(self, code: int, rule: int) -> Bool[np.ndarray, " entries"]:
        """Which of the counts are those of a rule for an atom; none if the atom is in another row."""
        pattern = self.counts.pattern
        first, end = pattern.bounds
        if not first <= code < end:
            return np.zeros(len(self.counts.counts), bool)
        row, candidate = (int(part[0]) for part in pattern.located(np.array([code])))
        return (self.counts.candidates == candidate) & (self.counts.rules == rule) & (row == self.row)

    def log_odds(self, member: AtomLogits, counts: Int64[np.ndarray, " entries"]) -> float:
        """The logit of the atom's probability, with other counts."""
        model = member.model
        assert model.counted is not None
        assert model.combination is not None
        made = _entries(replace(self.counts, counts=counts), np.flatnonzero(counts > 0), self.row)
        with torch.no_grad():
            probabilities = rule_probabilities(model.counted, made, np.array([self.row]))
            network = torch.from_numpy(self.network[None].copy()).to(probabilities.log_others)
            known = np.zeros(len(self.known), np.int64), self.known
            assert member.mixture is not None
            popularity = member.mixture.popularity(self.counts.pattern)
            logs, _ = model.combination.mixed(network, known, probabilities, popularity, member.weighting)
        return float(log_odds(logs[0, self.candidate].double().cpu().numpy()[None])[0])


def _entries(counts: PatternCounts, entries: Int64[np.ndarray, " _"], row: int) -> PatternCounts:
    """Some of the counts, all of one row."""
    own = {name: getattr(counts, name)[entries] for name in ("candidates", "rules", "counts", "is_fact", "order")}
    return replace(counts, index=RowIndex.from_rows(np.full(len(entries), row)), **own)


class CountedAtom:
    """An atom that counted rules may conclude, and for each rule (by number) the `numbers` of ground rules that do."""

    def __init__(self, members: Sequence[AtomLogits], code: int) -> None:
        """`code` is that of the atom."""
        base, counts = members[0].model.base, members[0].source.row_counts
        assert counts is not None
        self.members, self.code, self._counts = members, code, counts
        arity = len(base.shapes[int(base.decode(np.array([code]))[0][0])])
        pairs = [(member, position) for member in members for position in range(arity)]
        self._rows = [(member, Row.from_atom(member, counts, code, position)) for member, position in pairs]
        row = self._rows[0][1]
        own = row.counts.candidates == row.candidate
        self.numbers = dict(zip(row.counts.rules[own].tolist(), row.counts.counts[own].tolist(), strict=True))

    def logit(self, fewer: Mapping[int, int] | None = None, *, of: int | None = None) -> float:
        """The atom's logit without `fewer` ground rules of some rules that conclude it, or the atom `of`."""
        code = self.code if of is None else of
        found = []
        for member, row in self._rows:
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
