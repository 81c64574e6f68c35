"""Explanations along paths: the known facts that carry an answer q(h, y), and the paths from h to y that they form."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float64, Int64

from r2n.data.herbrand import Codes, index_among
from r2n.explanation.counterfactuals import NO_CODES, ExplainedModel
from r2n.explanation.explain import explain, strongest_places
from r2n.explanation.records import Contrast, Counterfactual, Explanation, LayerBelief, Member, Reason
from r2n.grounding.ground_rules import Adjacency
from r2n.grounding.paths import FactIndex, PathQueries, left_out
from r2n.network.paths import UNREACHED, batches

MOST_FACTS = 200  # whose effects are measured
NO_EFFECT = 1e-6  # single precision tells no smaller one from none
UNMEASURED = -1e30  # below the effects of all facts of which one was asked
NONE_LEADS = "no known fact leads to it within {} steps: the answer is what the facts of its constant alone say"
OWN_DIRECTION = (
    "the atom is explained as an answer whose last position is asked: a reason is a fact, its effect that of leaving"
    " it out, and below it are the facts of a path from the first constant to the last"
)
LEFT_OUT = "what a rule, a false fact or several facts together would change is not asked along paths"
MANY = f"{{:,}} facts are on its paths: the {MOST_FACTS} most promising were left out in turn"
COUNTED = "counted rules are mixed in after the paths: effects are those on the first of the two logits"
BLENDED = (
    "of the answer, {:.0%} is what paths say, the rest what the input layer says: effects of facts are those along"
    " paths, times that share"
)


class CarryingFact(NamedTuple):
    """A fact (code), its effect, and the facts of a path from h to y through it; it alone if it is on none."""

    fact: int
    effect: float
    path: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class CarryingFacts:
    """An atom q(h, y) and the facts that can make a difference to it.

    These are on a path of at most `depth` steps from h to y, or they are facts of y. `index` has them, and all others
    if a `width` lets those compete with them. `near` are the places in the index of those on paths.
    """

    model: ExplainedModel
    depth: int
    width: int
    index: FactIndex
    queries: PathQueries
    y: int
    near: Int64[np.ndarray, " _"]
    lengths: Int64[np.ndarray, " _"]
    constants: Codes

    @classmethod
    def of_atom(cls, model: ExplainedModel, code: int) -> "CarryingFacts":
        """What is left out if the atom is known is left out here too."""
        source = model.members[0].source.paths
        assert source is not None
        graph, depth, width = source.around(np.array([code])), source.grounder.depth, source.grounder.width
        index, queries = graph.index, graph.queries
        y = int(model.base.decode(np.array([code]))[1][0, 1])
        if queries.without is not None:
            r, z, target = index.facts
            index = index.only(~left_out(index, queries, z, r, target.astype(np.int64)))
        h = int(queries.heads[0])
        _, z, target = index.facts
        # facts lead in both directions: the steps to y are those from y
        lengths = index.distances(h, depth)[z] + 1 + index.distances(y, depth)[target]
        constants = np.arange(index.constants)
        if not width:
            kept = (lengths <= depth) | (z == y)
            constants = np.unique(np.concatenate([z[kept], target[kept], [h, y]]))
            index, lengths = index.only(kept, constants), lengths[kept]
            h, y = np.searchsorted(constants, [h, y]).tolist()
        own = PathQueries(queries.predicates, np.array([h]))
        return cls(model, depth, width, index, own, y, np.flatnonzero(lengths <= depth), lengths, constants)

    @cached_property
    def _codes(self) -> tuple[Codes, Int64[np.ndarray, " _"]]:
        """The facts, none as a reciprocal, and the one of each place in the index."""
        r, z, y = self.index.facts
        base, found = self.model.base, np.zeros(len(r), np.int64)
        for predicate in np.unique(r).tolist():
            own = r == predicate
            arguments = self.constants[np.stack([z[own], y[own]], axis=1)]
            found[own] = base.encode(base.language.predicates[predicate], arguments)
        return np.unique(self.model.plain(found), return_inverse=True)

    @cached_property
    def promising(self) -> Codes:
        """The facts, those on the shortest paths first, among them those of the constants with the fewest facts.

        Where y has a single fact of a predicate, that says something by itself, as a path of two steps does.
        """
        _, z, y = self.index.facts
        codes, own = self._codes
        pair = np.repeat(np.arange(len(self.index.predicates)), np.diff(self.index.starts))
        single = (z == self.y) & (np.diff(self.index.starts)[pair] == 1)
        lengths = np.where(single, np.minimum(self.lengths, min(2, self.depth)), self.lengths)
        degrees = np.bincount(z, minlength=self.index.constants).astype(np.float64)
        order = np.lexsort((own, degrees[z] * degrees[y], lengths))
        found = codes[own[order[lengths[order] <= self.depth]]]
        return found[np.sort(np.unique(found, return_index=True)[1])]

    @torch.no_grad()
    def alone(self, facts: Sequence[int]) -> Float64[np.ndarray, " facts_and_one"]:
        """The mean logit of the atom as it is, and without each fact (code); others than these make no difference."""
        codes, own = self._codes
        fact = index_among(np.array(facts, np.int64), codes)
        which, count = np.flatnonzero(fact >= 0), len(facts) + 1
        owner, places = Adjacency.build(own, np.arange(len(own)), len(codes)).follow(fact[which])
        predicate, head = (np.repeat(part, count) for part in (self.queries.predicates, self.queries.heads))
        queries = PathQueries(predicate, head, facts=(which[owner] + 1, places))
        found = np.zeros((len(self.model.members), count))
        for i, member in enumerate(self.model.members):
            network = member.model.eval().paths
            assert network is not None
            for start, part in batches(self.index, queries):
                numbers = np.arange(len(part)) * self.index.constants + self.y
                logits = network(self.index, part, self.width).of(numbers, 0.0 if member.model.blends else UNREACHED)
                found[i, start : start + len(part)] = logits.double().cpu().numpy()
        return found.mean(axis=0)

    def strongest(self, effects: Mapping[int, float], top: int | None) -> list[CarryingFact]:
        """The most effective facts, each with a path, without those that are on the path of another one before.

        The smallest effect on a path is as large as it can be, and then it has as few steps as it can.
        """
        codes, own = self._codes
        _, z, y = (part[self.near] for part in self.index.facts)
        fact = codes[own[self.near]]
        values = np.array([effects.get(code, UNMEASURED) for code in codes.tolist()])[own[self.near]]
        ahead, last = self._widest(z, y, values, int(self.queries.heads[0]))
        behind, next_one = self._widest(y, z, values, self.y)
        pairs = [(first, then) for first in range(self.depth) for then in range(self.depth - first)]
        found, shown = list[CarryingFact](), set[int]()
        for code, effect in _in_order(effects):
            if code in shown:
                continue
            ways = [
                (min(ahead[i, z[at]], behind[j, y[at]]), -i - j, i, at)
                for at in np.flatnonzero(fact == code).tolist()
                for i, j in pairs
            ]
            path = [code]
            if ways:
                _, steps, first, at = max(ways)
                before, after = _followed(last, z, at, first), _followed(next_one, y, at, -steps - first)
                path = dict.fromkeys(fact[[*before[::-1], at, *after]].tolist())
            found.append(CarryingFact(code, effect, tuple(path)))
            shown |= {*path}
        return [found[i] for i in strongest_places([part.effect for part in found], top)]

    def _widest(self, z: np.ndarray, y: np.ndarray, values: np.ndarray, start: int) -> tuple[np.ndarray, np.ndarray]:
        """By number of steps and constant: the largest smallest value on a way from the start, and its last fact."""
        shape = self.depth, self.index.constants
        width, last = np.full(shape, -np.inf), np.full(shape, -1, np.int64)
        width[0, start] = np.inf
        for step in range(1, self.depth):
            of_each = np.minimum(width[step - 1][z], values)
            order = np.argsort(of_each, kind="stable")
            width[step, y[order]], last[step, y[order]] = of_each[order], order  # of several, the last one stays
        return width, last


def _followed(last: np.ndarray, ends: np.ndarray, fact: int, steps: int) -> list[int]:
    """The facts before (or after) one, the nearest first."""
    found = [fact]
    for step in range(steps, 0, -1):
        found.append(int(last[step, ends[found[-1]]]))
    return found[1:]


def _in_order(effects: Mapping[int, float]) -> list[tuple[int, float]]:
    """Facts that have an effect: those for an atom, the strongest first, then those against it."""
    own = [(fact, effect) for fact, effect in effects.items() if abs(effect) > NO_EFFECT]
    return sorted(own, key=lambda pair: (pair[1] < 0, -abs(pair[1])))


def explain_along_paths(
    model: ExplainedModel, code: int, *, depth: int = 2, top: int | None = 5, against: int | None = None
) -> Explanation:
    """As `explain`, for networks along paths: by the known facts that carry the answer.

    There is one level of reasons: with `depth` 0 none. `model` answers an atom q(h, y) as a query q(h, ?).
    """
    asked = np.array([code] if against is None else [code, against], np.int64)
    beliefs, names = model.beliefs(asked), model.names(asked)
    belief, name, first = beliefs[0], names[0], model.members[0].model
    is_pair = [len(model.base.shapes[i]) == 2 for i in model.base.decode(asked)[0].tolist()]
    own = CarryingFacts.of_atom(model, code) if is_pair[0] else None
    facts = own.promising if own is not None and depth else NO_CODES
    measured, reasons, contrast = facts[:MOST_FACTS].tolist(), (), None
    logits = np.array([belief.logit]) if own is None else own.alone(measured)
    chosen = [member.model.combination.chosen for member in model.members if member.model.combination is not None]
    share = float(np.mean([weighting.paths or 0.0 for weighting in chosen])) if first.blends else 1.0
    effects = dict(zip(measured, (share * (logits[0] - logits[1:])).tolist(), strict=True))
    if own is not None:
        reasons = _reasons(model, own.strongest(effects, top), effects, f" -> {name}")
    if own is not None and against is not None and is_pair[1]:
        other = CarryingFacts.of_atom(model, against)
        both = list(dict.fromkeys([*measured, *other.promising[:MOST_FACTS].tolist()]))
        rows = own.alone(both) - other.alone(both)
        made = _in_order(dict(zip(both, (share * (rows[0] - rows[1:])).tolist(), strict=True)))
        strongest = [made[i] for i in strongest_places([effect for _, effect in made], top)]
        parts = _reasons(model, [CarryingFact(fact, effect, (fact,)) for fact, effect in strongest], {})
        contrast = Contrast(names[1], beliefs[1], share * float(rows[0]), parts)
    is_counted = first.counted is not None
    if first.blends and first.counted is not None and first.counted.rules and depth:
        every = [*reasons, *explain(model, code, depth=depth, top=top).reasons]
        every.sort(key=lambda reason: (reason.effect < 0, -abs(reason.effect)))
        reasons = tuple(every[i] for i in strongest_places([reason.effect for reason in every], top))
    layers = np.array([logits[0], belief.logit][int(first.blends) : 1 + is_counted])
    layer_beliefs = zip(layers.tolist(), model.probability(layers).tolist(), strict=True)
    largest = np.array(sorted(effects, key=lambda fact: -abs(effects[fact]))[: 0 if is_counted else top], np.int64)
    after = logits[0] - np.array([effects[fact] for fact in largest.tolist()])
    changed = zip(model.names(largest), after.tolist(), model.probability(after).tolist(), strict=True)
    is_above = float(logits[0]) >= model.half
    known = f"it is known to be {str(belief.known).lower()}: explained is what the network says by itself"
    notes = {
        known: belief.known is not None,
        OWN_DIRECTION: True,
        LEFT_OUT: True,
        MANY.format(len(facts)): len(facts) > MOST_FACTS,
        NONE_LEADS.format(first.depth): own is None or not len(own.near),
        COUNTED: is_counted and not first.blends,
        BLENDED.format(share): first.blends,
    }
    return Explanation(
        name,
        belief,
        tuple(LayerBelief(first.depth + i, *pair) for i, pair in enumerate(layer_beliefs)),  # of a blend only the last
        reasons,
        tuple(Counterfactual("not known", (what,), a, p, is_above and a < model.half) for what, a, p in changed),
        contrast=contrast,
        notes=tuple(note for note, is_so in notes.items() if is_so),
    )


def _reasons(
    model: ExplainedModel, found: Sequence[CarryingFact], effects: Mapping[int, float], concluded: str = ""
) -> tuple[Reason, ...]:
    """Facts as records, each with its path as a ground rule, and all facts of that with their own effects."""
    codes = np.unique(np.array([code for part in found for code in part.path], np.int64))
    pairs = zip(model.names(codes), model.beliefs(codes) if len(codes) else (), strict=True)
    texts, records = dict(zip(codes.tolist(), pairs, strict=True)), list[Reason]()
    for part in found:
        path = " & ".join(texts[code][0] for code in part.path) + concluded
        members = tuple(Member(*texts[code], effects.get(code)) for code in part.path)
        records.append(Reason(texts[part.fact][0], path, part.effect, members))
    return tuple(records)
