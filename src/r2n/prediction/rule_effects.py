"""A trained network, asked: what becomes of its answers where a rule is left out, or is the only one left."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isnan

import numpy as np
from jaxtyping import Float64
from scipy.special import expit, softmax

from r2n.evaluation.evaluate import Score
from r2n.evaluation.filters import Filter
from r2n.evaluation.network import evaluate_scores
from r2n.evaluation.ranking import ScoreByRow, row_memory
from r2n.explanation.rule_records import RuleEffect
from r2n.explanation.scene import Changes, Scene
from r2n.graph.left_out import counted_rules, layered_rules, rules_felt
from r2n.graph.sources import WholeGraph
from r2n.knowledge.herbrand import Codes, HerbrandBase
from r2n.knowledge.knowledge_base import Evidence
from r2n.knowledge.reciprocal import reciprocal_codes
from r2n.knowledge.sides import Side
from r2n.model.atom_logits import AtomLogits
from r2n.prediction.trained import Trained
from r2n.progress import Progress, no_progress

CANDIDATES_AT_ONCE = 2**23
FELT = 1e-3  # of a logit: below, a change is no change
CHANGES_AT_ONCE = 2**22  # of logits

Logits = Float64[np.ndarray, " _"]


@dataclass(frozen=True, eq=False)
class Answered:
    """The logits of queries, the probability of what is true of each, and how good they are.

    Of a query that is ranked, the probability is its share among the candidates of its rows: it is the comparison that
    is trained, and logits alone need not mean anything. `why_not` says why a ranking has no value.
    """

    logits: Logits
    of_truth: Logits
    metric: str
    value: float | None
    why_not: str = ""


@dataclass(frozen=True, eq=False)
class RuleSwitches:
    """A trained network and labelled queries, asked again and again, each time without some of the rules."""

    trained: Trained
    split: str
    queries: Evidence

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All rules that the network reads."""
        source = self.trained.source
        return tuple(rule.name for rule in (*layered_rules(source), *counted_rules(source)))

    @cached_property
    def whole(self) -> Answered:
        """With all rules."""
        return self.without(())

    @cached_property
    def none(self) -> Answered:
        """Without any."""
        return self.without(self.names)

    @cached_property
    def felt(self) -> frozenset[str]:
        """The rules that may make a difference to the queries' logits."""
        source = self.trained.source
        if counted_rules(source):
            return frozenset(self.names)
        return rules_felt(source, self._codes, len(self.trained.model.layers))

    def logits(self, names: Collection[str]) -> Logits:
        """The queries' logits without the rules of these names."""
        if self._near is None:
            return self.trained.logits.without_rules(names)(self.queries.atoms)
        return np.mean([member.without_rules(names)(self.queries.atoms) for member in self._near], axis=0)

    def changes(self, names: Sequence[str]) -> Iterator[Logits]:
        """How much each of the rules adds to each query's logit; many by one pass, where the graph is everybody's."""
        if self._near is None:
            for name in names:
                is_felt = name in self.felt
                yield self.whole.logits - self.logits([name]) if is_felt else np.zeros(len(self.queries))
            return
        size = max(1, CHANGES_AT_ONCE // max(1, len(self.queries)))
        for start in range(0, len(names), size):
            yield from self._changes(names[start : start + size])

    @cached_property
    def _scene(self) -> Scene:
        assert self._near is not None
        return Scene.around(self._near, self.queries.atoms)

    def _changes(self, names: Sequence[str]) -> Float64[np.ndarray, "_ queries"]:
        """The same of rules that are left out of one graph, each in turn."""
        scene = self._scene
        place = {rule.name: j for j, rule in enumerate(scene.graph.rules)}
        numbers = [scene.numbers(place[name]) for name in names]
        pairs = [np.stack([np.full(len(own), k), own], axis=1) for k, own in enumerate(numbers)]
        left_out = Changes.leaving_out(np.concatenate([np.zeros((0, 2), np.int64), *pairs]), len(names))
        return scene.logits - scene.changed(left_out)

    def without(self, names: Collection[str]) -> Answered:
        """What is answered without the rules of these names."""
        if not self._is_ranking:
            logits = self.logits(names)
            return self._judged(logits, lambda codes: logits)
        scores = self.trained.logits.without_rules(names)
        return self._judged(scores(self.queries.atoms), scores)

    def off(self, name: str) -> Answered:
        """Without one rule; in a ranking, the candidates may feel it too."""
        return self.without([name]) if self._is_ranking or name in self.felt else self.whole

    def gains(self, off: Answered) -> Logits:
        """How much less probable the truth of each query is without something."""
        return self.whole.of_truth - off.of_truth

    def alone(self, name: str) -> Answered:
        """With one rule only."""
        others = [other for other in self.names if other != name]
        if not others:
            return self.whole
        return self.without(others) if self._is_ranking or name in self.felt else self.none

    def _judged(self, logits: Logits, scores: Score) -> Answered:
        problem = self.trained.problem
        report = evaluate_scores(
            scores,
            self.queries,
            problem.knowledge.base,
            Filter.of(problem),
            split=self.split,
            memory=row_memory(self.trained.memory),
        )
        name, value = report.main
        if self._is_ranking and isinstance(scores, ScoreByRow):
            of_truth = _shares(scores, problem.knowledge.base, self.queries.atoms)
        else:
            of_truth = expit(np.where(self.queries.truth, logits, -logits))
        return Answered(logits, of_truth, name, None if isnan(value) else value, report.nothing_to_rank)

    @property
    def _is_ranking(self) -> bool:
        return bool(self.queries.truth.all())

    @property
    def _codes(self) -> Codes:
        """The queries, in both directions where there are reciprocals."""
        mirrored = reciprocal_codes(self.trained.model.base, self.queries.atoms)
        return np.union1d(self.queries.atoms, mirrored[mirrored >= 0])

    @cached_property
    def _near(self) -> tuple[AtomLogits, ...] | None:
        """The networks over the part of the graph that the queries can feel; None where they need more or other.

        A share needs whole rows, and a search from what is asked depends on the rules.
        """
        if self.trained.source.counts is not None or self.trained.source.whole is None:
            return None
        found = []
        for member in self.trained.members:
            graph = member.source.around(self._codes, steps=len(member.model.layers))
            found.append(AtomLogits(member.model, WholeGraph(graph), member.evidence, way=member.way))
        return tuple(found)


def rule_effects(
    switches: RuleSwitches, names: Iterable[str], most: int | None = None, progress: Progress = no_progress
) -> tuple[dict[str, RuleEffect], dict[str, Logits]]:
    """What each of the rules does, the largest effect first, and its gain for each query.

    Of more than `most` rules, only those with the largest effect are told, and asked what they do alone.
    """
    names, found, gains = list(names), {}, {}
    best = names if most is None or len(names) <= most else _largest(switches, names, most, progress)
    for done, name in enumerate(best):
        progress("without a rule, and with it alone", done, len(best))
        off = switches.off(name)
        found[name] = replace(_effect(switches, off), alone=switches.alone(name).value)
        gains[name] = switches.gains(off)
    best = sorted(best, key=lambda name: -found[name].effect)
    return {name: found[name] for name in best}, gains


def _largest(switches: RuleSwitches, names: list[str], most: int, progress: Progress) -> list[str]:
    """The rules that move the logits of the queries most."""
    sizes = []
    progress("which rules matter", 0, len(names))
    for done, change in enumerate(switches.changes(names), start=1):
        sizes.append(float(np.abs(change).mean()))
        progress("which rules matter", done, len(names))
    return [names[i] for i in np.argsort(-np.array(sizes), kind="stable")[:most]]


def _effect(switches: RuleSwitches, off: Answered) -> RuleEffect:
    change = np.abs(switches.whole.logits - off.logits)
    gain = float(switches.gains(off).mean())
    return RuleEffect(float(change.mean()), gain, int((change > FELT).sum()), switches.whole.value, off.value)


def _shares(scores: ScoreByRow, base: HerbrandBase, codes: Codes) -> Logits:
    """The share of each atom among the candidates of its rows, the mean over its positions."""
    index, arguments = base.decode(codes)
    found = np.zeros(len(codes))
    for predicate in np.unique(index).tolist():
        own, arity = np.flatnonzero(index == predicate), len(base.shapes[predicate])
        for position in range(arity):
            side = Side.of(base, predicate, position)
            for some in np.array_split(own, -(-len(own) * side.candidates // CANDIDATES_AT_ONCE)):
                rows = softmax(
                    np.asarray(scores.rows(predicate, position, arguments[some, :arity]), np.float64), axis=1
                )
                found[some] += rows[np.arange(len(some)), side.located(codes[some])[1]] / arity
    return found
