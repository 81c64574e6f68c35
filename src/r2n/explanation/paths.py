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
from r2n.explanation.explain import ranked
from r2n.explanation.records import Contrast, Counterfactual, Explanation, LayerBelief, Member, Reason
from r2n.grounding.ground_rules import Adjacency
from r2n.grounding.paths import FactIndex, PathQueries, left_out
from r2n.network.paths import batches

MOST_FACTS = 200  # whose effects are measured
NO_EFFECT = 1e-6  # single precision tells no smaller one from none
UNMEASURED = -1e30  # below the effects of all facts of which one was asked
NONE_LEADS = "no known fact leads to it within {} steps: the answer is what the facts of its constant alone say"
OWN_DIRECTION = (
    "the atom is explained as an answer whose last position is asked: a reason is a fact, its effect that of leaving"
    " it out, and below it are the facts of a path from the first constant to the last"
)
LEFT_OUT = "what a rule, a false fact or several facts together would change is not asked along paths"
COUNTED = "counted rules are mixed in after the paths: effects are those on the first of the two logits"


_Widest = tuple[np.ndarray, np.ndarray]
_Joined = tuple[float, int, list[int]]


class CarryingFact(NamedTuple):
    """A fact (code), its effect, and the facts of a path from h to y through it; it alone if it is on none."""

    fact: int
    effect: float
    path: tuple[int, ...]

    @property
    def identity(self) -> tuple[int, ...]:
        """Distinguishes it from all others."""
        return (self.fact,)


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
        index, queries, _ = graph.parts
        y = int(model.base.decode(np.array([code]))[1][0, -1])
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
                logits = network(self.index, part, self.width).of(numbers)
                found[i, start : start + len(part)] = logits.double().cpu().numpy()
        return found.mean(axis=0)

    def strongest(self, effects: Mapping[int, float], top: int | None) -> list[CarryingFact]:
        """The most effective facts, each with a path, without those that are on the path of another one before.

        The smallest effect on a path is as large as it can be, and then it has as few steps as it can.
        """
        codes, own = self._codes
        _, z, y = (part[self.near] for part in self.index.facts)
        values = np.array([effects.get(code, UNMEASURED) for code in codes.tolist()])[own[self.near]]
        ahead = self._widest(z, y, values, int(self.queries.heads[0]))
        behind = self._widest(y, z, values, self.y)
        found, shown = list[CarryingFact](), set[int]()
        for code in sorted(effects, key=lambda code: (effects[code] < 0, -abs(effects[code]))):
            if code not in shown and abs(effects[code]) > NO_EFFECT:
                through = np.flatnonzero(codes[own[self.near]] == code).tolist()
                best = max((self._joined(ahead, behind, z, y, i) for i in through), default=None)
                steps = [] if best is None else best[2]
                path = tuple(dict.fromkeys(codes[own[self.near[steps]]].tolist())) or (code,)
                found.append(CarryingFact(code, effects[code], path))
                shown |= {*path}
        return ranked(found, top)

    def _widest(self, z: np.ndarray, y: np.ndarray, values: np.ndarray, start: int) -> _Widest:
        """By number of steps and constant: the largest smallest value on a way from the start, and its last fact."""
        shape = self.depth, self.index.constants
        width, last = np.full(shape, -np.inf), np.full(shape, -1, np.int64)
        width[0, start] = np.inf
        for step in range(1, self.depth):
            of_each = np.minimum(width[step - 1][z], values)
            order = np.argsort(of_each, kind="stable")
            order = order[of_each[order] > -np.inf]
            width[step, y[order]], last[step, y[order]] = of_each[order], order  # of several, the last one stays
        return width, last

    def _joined(self, ahead: _Widest, behind: _Widest, z: np.ndarray, y: np.ndarray, middle: int) -> _Joined:
        """The widest path through a fact: its width, minus its number of steps, and its facts."""
        pairs = [(first, last) for first in range(self.depth) for last in range(self.depth - first)]
        width, steps, first = max((min(ahead[0][i, z[middle]], behind[0][j, y[middle]]), -i - j, i) for i, j in pairs)
        found, at = [middle], int(z[middle])
        for step in range(first, 0, -1):
            found.insert(0, int(ahead[1][step, at]))
            at = int(z[found[0]])
        at = int(y[middle])
        for step in range(-steps - first, 0, -1):
            found.append(int(behind[1][step, at]))
            at = int(y[found[-1]])
        return width, steps, found


def explain_along_paths(
    model: ExplainedModel, code: int, *, depth: int = 2, top: int | None = 5, against: int | None = None
) -> Explanation:
    """As `explain`, for networks along paths: by the known facts that carry the answer.

    There is one level of reasons: with `depth` 0 none. `model` answers an atom q(h, y) as a query q(h, ?).
    """
    (belief,), (name,) = model.beliefs(np.array([code])), model.names(np.array([code]))
    is_pair = len(model.base.shapes[int(model.base.decode(np.array([code]))[0][0])]) == 2
    own = CarryingFacts.of_atom(model, code) if is_pair else None
    facts = own.promising if own is not None and depth else NO_CODES
    measured = facts[:MOST_FACTS].tolist()
    logits = np.array([belief.logit]) if own is None else own.alone(measured)
    effects = dict(zip(measured, (logits[0] - logits[1:]).tolist(), strict=True))
    reasons, contrast = (), None
    if own is not None:
        reasons = _reasons(model, own.strongest(effects, top), effects, f" -> {name}")
    if own is not None and against is not None and len(model.base.decode(np.array([against]))[1][0]) == 2:
        other = CarryingFacts.of_atom(model, against)
        both = list(dict.fromkeys([*measured, *other.promising[:MOST_FACTS].tolist()]))
        rows = own.alone(both) - other.alone(both)
        parts = [CarryingFact(fact, rows[0] - row, (fact,)) for fact, row in zip(both, rows[1:].tolist(), strict=True)]
        made = ranked([part for part in parts if abs(part.effect) > NO_EFFECT], top)
        (rival,), (rival_belief,) = model.names(np.array([against])), model.beliefs(np.array([against]))
        contrast = Contrast(rival, rival_belief, float(rows[0]), _reasons(model, made, {}))
    is_counted = model.members[0].model.counted is not None
    layers = [float(logits[0]), belief.logit] if is_counted else [float(logits[0])]
    steps = model.members[0].model.depth
    probabilities = model.probability(np.array(layers)).tolist()
    ordered = sorted(effects, key=lambda fact: -abs(effects[fact]))[:top]
    after = logits[0] - np.array([effects[fact] for fact in ordered])
    changed = [
        Counterfactual("not known", (what,), logit, probability, bool(logits[0] >= model.half > logit))
        for what, logit, probability in zip(
            model.names(np.array(ordered, np.int64)), after.tolist(), model.probability(after).tolist(), strict=True
        )
    ]
    known = f"it is known to be {str(belief.known).lower()}: explained is what the network says by itself"
    many = f"{len(facts):,} facts are on its paths: the {MOST_FACTS} most promising were left out in turn"
    notes = {
        known: belief.known is not None,
        OWN_DIRECTION: True,
        LEFT_OUT: True,
        many: len(facts) > MOST_FACTS,
        NONE_LEADS.format(steps): own is None or not len(own.near),
        COUNTED: is_counted,
    }
    return Explanation(
        name,
        belief,
        tuple(LayerBelief(steps + i, *pair) for i, pair in enumerate(zip(layers, probabilities, strict=True))),
        reasons,
        () if is_counted else tuple(changed),
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
