"""A trained network, explained: the clauses that it has learned for an implicit rule.

A decision tree for each atom of the rule tells its truth by those of the others, over the ground rules; a leaf is a
clause, from which literals go as long as it stays as good. A clause that says the same as another, its literals moved
across the arrow or its variables renamed, is told once. Confidence and fidelity are counted afterwards: the first
against what is known, the second against what the network says of the head.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int64

from r2n.explanation.clause_form import Sign, Signed, canonical, clause_rule
from r2n.explanation.rule_records import LearnedClause
from r2n.logic.theory import Rule, Theory

DEPTH = 3  # literals of a body
LEAST_SUPPORT = 5  # ground rules
LEAST_SHARE = 0.005  # of them in all
LEAST_AGREEMENT = 0.8  # with the truths that the trees are grown on, and with what is known, where labels are
LEAST_FIDELITY = 0.6  # of a network that has not learned by heart what is known
LOSS = 0.01  # of agreement, for a literal less
MOST_GROUND_RULES = 200_000  # above, a sample
MOST = 10  # clauses of a rule


@dataclass(frozen=True, eq=False)
class Truths:
    """What is held of the atoms of a rule's ground rules, position by position.

    `known` is 1 true, 0 false, -1 unknown. `believed` is what is known, else what the network answers. `says` is what
    the network says of an atom as if it were not known, as far as it can be asked so.
    """

    known: Int64[np.ndarray, "ground_rules positions"]
    believed: Bool[np.ndarray, "ground_rules positions"]
    says: Bool[np.ndarray, "ground_rules positions"]

    def sampled(self, most: int = MOST_GROUND_RULES) -> "Truths":
        """At most so many of the ground rules, drawn at random."""
        if len(self.known) <= most:
            return self
        rows = np.sort(np.random.default_rng(0).permutation(len(self.known))[:most])
        return Truths(self.known[rows], self.believed[rows], self.says[rows])


def learned_clauses(
    rule: Rule, truths: Truths, theory: Theory, *, targets: Sequence[int] | None = None, most: int = MOST
) -> tuple[LearnedClause, ...]:
    """The clauses of an implicit rule, the best first; `targets` are the positions that may be heads, by default all.

    `theory` tells the domains of variables.
    """
    table = _Table.of(truths.sampled())
    heads = range(len(rule.atoms)) if targets is None else targets
    found = [clause for head in heads for clause in table.clauses(head)] if len(table.weights) else []
    best: dict[object, _Clause] = {}
    for clause in found:
        key = canonical(rule, clause.literals, theory)
        if key not in best or clause.preferred > best[key].preferred:
            best[key] = clause
    ranked = sorted(best.values(), key=lambda clause: (-clause.score, len(clause.body), clause.body, clause.head))
    return tuple(
        LearnedClause(
            clause_rule(rule, clause.body, clause.head, theory),
            clause.support,
            clause.fidelity,
            clause.known,
            clause.confidence,
            clause.score,
        )
        for clause in _without_refinements(ranked)[:most]
    )


@dataclass(frozen=True, slots=True)
class _Clause:
    """A body and a head, as signed positions, with what was counted."""

    body: tuple[Signed, ...]
    head: Signed
    support: int
    agreement: float
    fidelity: float
    known: int
    confidence: float | None
    score: float
    is_contradicted: bool

    @property
    def literals(self) -> tuple[Signed, ...]:
        """The clause as a disjunction."""
        return (*((position, not sign) for position, sign in self.body), self.head)

    @property
    def preferred(self) -> tuple[Sign, float]:
        """Of clauses that say the same: one with an undenied head, then the one that says more."""
        return self.head[1], self.score

    @property
    def is_worth_telling(self) -> bool:
        """Whether it agrees with the network and with what is known, and says what makes something so.

        That nothing makes it so, `!a & !b -> !c`, is no clause of its own: the others say what does.
        """
        says_why = self.head[1] or any(sign for _, sign in self.body)
        agrees = self.agreement >= LEAST_AGREEMENT and self.fidelity >= LEAST_FIDELITY
        return says_why and agrees and self.score > 0 and not self.is_contradicted


def _without_refinements(ranked: list[_Clause]) -> list[_Clause]:
    """Those that are no longer forms of a better one that is as good."""
    kept: list[_Clause] = []
    for clause in ranked:
        shorter = [other for other in kept if set(other.literals) < set(clause.literals)]
        if not any(other.agreement >= clause.agreement - 2 * LOSS for other in shorter):
            kept.append(clause)
    return kept


@dataclass(frozen=True, eq=False)
class _Table:
    """The distinct rows of the truths, and how many ground rules have each."""

    truths: Truths
    weights: Int64[np.ndarray, " rows"]

    @classmethod
    def of(cls, truths: Truths) -> "_Table":
        bits = np.concatenate([truths.known > 0, truths.known >= 0, truths.believed, truths.says], axis=1)
        packed = np.packbits(bits, axis=1)
        _, first, counts = np.unique(packed, axis=0, return_index=True, return_counts=True)
        return cls(Truths(truths.known[first], truths.believed[first], truths.says[first]), counts)

    def clauses(self, head: int) -> list[_Clause]:
        """Those of the leaves of one tree."""
        found = []
        for body in self._leaves(head):
            for sign in (True, False):
                clause = self._counted(body, (head, sign))
                if clause.agreement >= LEAST_AGREEMENT:
                    clause = self._shortened(clause)
                    found += [clause] if clause.body and clause.is_worth_telling else []
        return found

    def _leaves(self, head: int) -> list[tuple[Signed, ...]]:
        """The bodies: which literals lead to each leaf of a tree that tells the head by the other positions."""
        from sklearn.tree import DecisionTreeClassifier  # takes a second to import

        believed, weights = self.truths.believed, self.weights
        others = np.delete(np.arange(believed.shape[1]), head)
        least = max(LEAST_SUPPORT, LEAST_SHARE * weights.sum()) / weights.sum()
        if not len(others) or least > 0.5:
            return []
        grown = DecisionTreeClassifier(max_depth=DEPTH, min_weight_fraction_leaf=least, random_state=0)
        tree = grown.fit(believed[:, others], believed[:, head], sample_weight=weights).tree_
        leaves: list[tuple[Signed, ...]] = []
        open_nodes: list[tuple[int, tuple[Signed, ...]]] = [(0, ())]
        while open_nodes:
            node, path = open_nodes.pop()
            if tree.children_left[node] < 0:
                leaves.append(path)
                continue
            position = int(others[tree.feature[node]])
            open_nodes.append((int(tree.children_left[node]), (*path, (position, False))))
            open_nodes.append((int(tree.children_right[node]), (*path, (position, True))))
        return leaves

    def _shortened(self, clause: _Clause) -> _Clause:
        """Without the literals that it does as well without, the least needed first."""
        floor = clause.agreement - LOSS
        while len(clause.body) > 1:
            bodies = [tuple(part for part in clause.body if part != literal) for literal in clause.body]
            shorter = max((self._counted(body, clause.head) for body in bodies), key=lambda made: made.agreement)
            if shorter.agreement < floor:
                break
            clause = shorter
        return replace(clause, body=tuple(sorted(clause.body)))

    @cached_property
    def _labelled(self) -> Bool[np.ndarray, " positions"]:
        """The positions of which something is known to be false."""
        return (self.truths.known == 0).any(axis=0)

    @cached_property
    def _judges(self) -> Int64[np.ndarray, "rows positions"]:
        """What is known; where nothing is known to be false, what is no fact counts as such."""
        known = self.truths.known
        return np.where((known < 0) & ~self._labelled, 0, known)

    def _counted(self, body: tuple[Signed, ...], head: Signed) -> _Clause:
        (position, sign), truths, weights = head, self.truths, self.weights
        holds, judged, total = np.ones(len(weights), bool), self._judges[:, position] >= 0, int(weights.sum())
        for at, wanted in body:
            holds &= truths.believed[:, at] == wanted
            judged = judged & (self._judges[:, at] == int(wanted))
        head_believed = truths.believed[:, position] == sign
        support, known = int(weights[holds].sum()), int(weights[judged].sum())
        agreement = _share(weights, holds, head_believed)
        fidelity = _share(weights, holds, truths.says[:, position] == sign)
        confidence = _share(weights, judged, self._judges[:, position] == int(sign))
        chance = int(weights[head_believed].sum()) / total
        return _Clause(
            body,
            head,
            support,
            agreement,
            fidelity,
            known,
            confidence if known >= LEAST_SUPPORT else None,
            support / total * (min(agreement, fidelity) - chance),
            bool(known >= LEAST_SUPPORT and self._labelled[position] and confidence < LEAST_AGREEMENT),
        )


def _share(weights: np.ndarray, among: np.ndarray, which: np.ndarray) -> float:
    """The share of `which` among some; 0 of nothing."""
    return float(weights[among & which].sum() / max(1, weights[among].sum()))
