"""What rules do: how often they hold, where they are used, and what implicit rules have learned."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import permutations
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int64
from scipy.special import expit

from r2n.data.knowledge_base import Evidence
from r2n.files import finite
from r2n.grounding.counting import RuleCounts
from r2n.grounding.paths import FactIndex, PathQueries
from r2n.logic.formula import And, Implies, Not, Variable
from r2n.logic.theory import Rule, Theory
from r2n.network.factor_graph import FactorGraph, known_truths
from r2n.network.paths import PathReasoner

Kind = Literal["explicit", "implicit", "counted"]
"""How a network reads a rule."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """The number of ground rules of a rule, and whether they hold.

    `known` ground rules have atoms that are all known, and `satisfied` is the share of these that hold (None for
    implicit rules). `out` is the mean of out(g), the probability that a ground rule holds, if the network predicts it.
    """

    ground_rules: int
    known: int = 0
    satisfied: float | None = None
    out: float | None = None


@dataclass(frozen=True, slots=True)
class RuleEffect:
    """The answers without a rule, and with it alone.

    `effect` is the mean absolute change of the queries' logits, `gain` the mean change of the probability of the truth,
    `changed` the number of changed logits. `without` and `alone` are the metric without the rule, and without others.
    """

    effect: float
    gain: float
    changed: int
    metric: float | None = None
    without: float | None = None
    alone: float | None = None


@dataclass(frozen=True, slots=True)
class LearnedClause:
    """A clause that a network has learned for an implicit rule, as an explicit rule that could replace it.

    `support` is the number of ground rules whose body is believed, `fidelity` the share of these for which the network
    predicts the head, and `confidence` the share where the head is known to hold, of `known` ground rules (None without
    any). `score` ranks clauses: the share of ground rules with this body, times the lift of the head above chance.
    """

    rule: Rule
    support: int
    fidelity: float
    known: int
    confidence: float | None
    score: float

    def __str__(self) -> str:
        """The clause without a name."""
        return str(self.rule).partition(": ")[2]

    @property
    def counts(self) -> str:
        """The counts, for a comment in a theory file."""
        confidence = "nothing known" if self.confidence is None else f"{self.confidence:.3f} of {self.known:,} known"
        return f"support {self.support:,}, confidence {confidence}, fidelity {self.fidelity:.3f}"

    def to_dict(self) -> dict[str, Any]:
        """As one JSON document."""
        names = ("support", "confidence", "known", "fidelity", "score")
        return {"clause": str(self), **{name: getattr(self, name) for name in names}}


@dataclass(frozen=True, slots=True)
class RuleAccount:
    """The report on one rule; parts that were not computed are None or empty."""

    rule: Rule
    kind: Kind
    occurrence: Occurrence | None = None
    effect: RuleEffect | None = None
    clauses: tuple[LearnedClause, ...] = ()

    @property
    def name(self) -> str:
        """The name of the rule."""
        return self.rule.name

    def to_dict(self) -> dict[str, Any]:
        """As one JSON document."""
        numbers = dict.fromkeys((*Occurrence.__dataclass_fields__, *RuleEffect.__dataclass_fields__))
        for part in (self.occurrence, self.effect):
            numbers |= {} if part is None else asdict(part)
        named = {"name": self.name, "text": str(self.rule), "kind": self.kind}
        return {**named, **numbers, "clauses": [part.to_dict() for part in self.clauses]}


@dataclass(frozen=True, slots=True)
class PathRule:
    """What a network along paths has learned of a chain of predicates: by how much it raises the logit of the head.

    The chain joins `pairs` of constants, of which `support` are facts of the head, each joined without that fact.
    """

    head: str
    rule: Rule
    weight: float
    support: int
    pairs: int

    def __str__(self) -> str:
        """The chain and its head, without a name."""
        return str(self.rule).partition(": ")[2]

    def to_dict(self) -> dict[str, Any]:
        """As one JSON document."""
        return {**asdict(self), "rule": str(self), "confidence": self.support / self.pairs}


@dataclass(frozen=True, slots=True)
class RuleReport:
    """What the rules of a trained network do, those with the largest effect first.

    `metric` is the name of the metric, `value` its value with all rules, `none` that without any. `left_out` is the
    number of rules that are not reported. `paths` is what a network along paths has learned, head by head.
    """

    problem: str
    split: str | None
    queries: int
    metric: str | None
    value: float | None
    none: float | None
    rules: tuple[RuleAccount, ...]
    left_out: int = 0
    notes: tuple[str, ...] = ()
    paths: tuple[PathRule, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The report as one JSON document."""
        document, parts = asdict(replace(self, rules=(), paths=())), {"rules": self.rules, "paths": self.paths}
        return finite(document | {name: [each.to_dict() for each in part] for name, part in parts.items()})


Outs = Sequence[Float64[np.ndarray, " _"] | None]
"""For each rule the logits of its ground rules, None where the network was not trained to give any."""


def occurrences(
    graph: FactorGraph, truths: Int64[np.ndarray, " atoms"], outs: Outs | None = None
) -> dict[str, Occurrence]:
    """Of each rule of a graph, by name, each ground rule once; `truths` of atoms are 1 true, 0 false, -1 unknown."""
    found, codes = {}, graph.atoms.numpy()
    is_shared = graph.answered < len(graph.atoms)
    for j, (rule, rows) in enumerate(zip(graph.rules, graph.neighbours, strict=True)):
        ground_rules = rows.numpy()
        if is_shared and len(ground_rules):
            ground_rules = ground_rules[np.unique(codes[ground_rules], axis=0, return_index=True)[1]]
        out = None if outs is None else outs[j]
        mean = None if out is None or not len(out) else float(expit(out).mean())
        known = truths[ground_rules][(truths[ground_rules] >= 0).all(axis=1)]
        formula = rule.formula if len(known) else None
        satisfied = None if formula is None else float(formula.evaluate(known == 1).mean())
        found[rule.name] = Occurrence(len(ground_rules), len(known), satisfied, mean)
    return found


def counted_occurrences(counts: RuleCounts, evidence: Evidence) -> dict[str, Occurrence]:
    """Of rules that are counted: their bodies are known, so that they hold where the head is known to be true."""
    truths, rules = known_truths(counts.base, counts.codes, evidence), len(counts.rules)
    number = np.bincount(counts.rule, counts.counts, minlength=rules).astype(np.int64)
    known = np.bincount(counts.rule, counts.counts * (truths >= 0), minlength=rules).astype(np.int64)
    hold = np.bincount(counts.rule, counts.counts * (truths == 1), minlength=rules)
    return {
        rule.name: Occurrence(int(number[j]), int(known[j]), float(hold[j] / known[j]) if known[j] else None)
        for j, rule in enumerate(counts.rules)
    }


CHAINS_AT_ONCE = 64


@torch.no_grad()
def chain_weights(
    networks: Sequence[PathReasoner], reciprocals: np.ndarray, asked: int, chains: Int64[np.ndarray, "chains steps"]
) -> Float64[np.ndarray, " chains"]:
    """By how much chains r1(x, z), r2(z, w), ... (by index) raise the logit of asked(x, y), y the end of each.

    Each chain has constants of its own and no other fact. The logit is compared with that of a y that no path reaches.
    """
    steps, found = chains.shape[1], np.zeros(len(chains))
    for start in range(0, len(chains), CHAINS_AT_ONCE):
        r = chains[start : start + CHAINS_AT_ONCE]
        heads = np.arange(len(r)) * (steps + 1)
        z, r = (heads[:, None] + np.arange(steps)).ravel(), r.ravel()
        facts, back = np.stack([z, z + 1], axis=1), reciprocals[r] >= 0
        every = np.concatenate([r, reciprocals[r[back]]]), np.concatenate([facts, facts[back, ::-1]])
        index = FactIndex.from_facts(*every, len(heads) * (steps + 1), reciprocals)
        ends = np.arange(len(heads)) * index.constants + heads + steps
        for network in networks:
            logits = network(index, PathQueries(np.full(len(heads), asked), heads))
            raised = (logits.of(ends) - logits.of_each(ends)).double().cpu().numpy()
            found[start : start + len(heads)] += raised / len(networks)
    return found


MOST_RENAMED = 4  # variables: with more, clauses are compared by the names they have

Signed = tuple[int, bool]
"""A literal: the position of its atom in the implicit rule, and whether it is positive."""


def clause_rule(rule: Rule, body: Sequence[Signed], head: Signed, theory: Theory) -> Rule:
    """`a & !b -> c` over the atoms of an implicit rule, with their variables' domains and the guards that apply."""
    *literals, conclusion = (rule.atoms[i] if sign else Not(rule.atoms[i]) for i, sign in (*body, head))
    formula = Implies(literals[0] if len(literals) == 1 else And(tuple(literals)), conclusion)
    made = Rule.explicit(rule.name, formula)
    guards = tuple(
        guard
        for guard in rule.guards
        if all(term.name in made.variables for term in (guard.left, guard.right) if isinstance(term, Variable))
    )
    domains = dict(zip(rule.variables, theory.variable_domains(rule), strict=True))
    of_predicate, types = {predicate.name: predicate.domains for predicate in theory.predicates}, []
    pairs = [pair for a in made.atoms for pair in zip(a.terms, of_predicate[a.predicate], strict=True)]
    for variable in made.variables:  # those whose domain the positions of the clause do not give
        held = [domain for term, domain in pairs if term == Variable(variable)]
        inferred = next((domain for domain in held if all(map(domain.is_within, held))), None)
        types += [(variable, domains[variable].name)] if inferred != domains[variable] else []
    return Rule.explicit(rule.name, formula, guards, tuple(types))


def canonical(rule: Rule, literals: Sequence[Signed], theory: Theory) -> object:
    """A key that is equal for clauses that differ only in names of variables, or in the order of literals."""
    domains = dict(zip(rule.variables, theory.variable_domains(rule), strict=True))
    atoms = [(rule.atoms[position], sign) for position, sign in literals]
    names = list(dict.fromkeys(t.name for atom, _ in atoms for t in atom.terms if isinstance(t, Variable)))
    if rule.guards or len(names) > MOST_RENAMED:
        return frozenset(atoms)
    forms = []
    for order in permutations(range(len(names))):
        number = dict(zip(names, order, strict=True))
        kinds = sorted((number[name], domains[name].name) for name in names)
        signed = [
            (a.predicate, *(f"?{number[t.name]}" if isinstance(t, Variable) else f"={t.name}" for t in a.terms), s)
            for a, s in atoms
        ]
        forms.append((tuple(sorted(signed, key=str)), tuple(kinds)))
    return min(forms, key=str)


DEPTH = 3  # literals of a body
LEAST_SUPPORT = 5  # ground rules
LEAST_SHARE = 0.005  # of them in all
LEAST_AGREEMENT = 0.8  # with the truths that the trees are grown on, and with what is known, where labels are
LEAST_FIDELITY = 0.6  # of a network that has not learned by heart what is known
LOSS = 0.01  # of agreement, for a literal less
MOST_GROUND_RULES = 200_000  # above, a sample
MOST_CLAUSES = 10  # clauses of a rule


@dataclass(frozen=True, eq=False)
class Truths:
    """The truths of the atoms of a rule's ground rules, position by position.

    `known` is 1 true, 0 false, -1 unknown. `believed` is what is known, else what the network predicts. `says` is the
    prediction as if the atom were not known, if the network can give it.
    """

    known: Int64[np.ndarray, "ground_rules positions"]
    believed: Bool[np.ndarray, "ground_rules positions"]
    says: Bool[np.ndarray, "ground_rules positions"]

    def of_rows(self, rows: Int64[np.ndarray, " _"]) -> "Truths":
        """Those of some ground rules."""
        return Truths(self.known[rows], self.believed[rows], self.says[rows])


def learned_clauses(
    rule: Rule, truths: Truths, theory: Theory, *, targets: Sequence[int] | None = None, most: int = MOST_CLAUSES
) -> tuple[LearnedClause, ...]:
    """The clauses of an implicit rule, the best first; `targets` are the positions that may be heads (None: all)."""
    table = _Table.from_truths(truths)
    heads = range(len(rule.atoms)) if targets is None else targets
    best: dict[object, _Clause] = {}
    for clause in (clause for head in heads for clause in table.clauses(head)):
        key = canonical(rule, clause.literals, theory)
        other = best.get(key)  # of equivalent clauses, a positive head first, then the higher score
        if other is None or (clause.head[1], clause.score) > (other.head[1], other.score):
            best[key] = clause
    kept: list[_Clause] = []
    for clause in sorted(best.values(), key=lambda one: (-one.score, len(one.body), one.body, one.head)):
        shorter = [other for other in kept if set(other.literals) < set(clause.literals)]
        if not any(other.agreement >= clause.agreement - 2 * LOSS for other in shorter):
            kept.append(clause)
    return tuple(LearnedClause(clause_rule(rule, one.body, one.head, theory), *one[4:]) for one in kept[:most])


class _Clause(NamedTuple):
    """A body and a head, as signed positions, with what was counted; from `support` on as in a `LearnedClause`."""

    body: tuple[Signed, ...]
    head: Signed
    agreement: float
    is_contradicted: bool
    support: int
    fidelity: float
    known: int
    confidence: float | None
    score: float

    @property
    def literals(self) -> tuple[Signed, ...]:
        """The clause as a disjunction."""
        return (*((position, not sign) for position, sign in self.body), self.head)

    @property
    def is_worth_showing(self) -> bool:
        """Whether it agrees with the network and with what is known, and has a positive literal besides its head.

        `!a & !b -> !c` is not shown: the other clauses already say what makes c true.
        """
        says_why = self.head[1] or any(sign for _, sign in self.body)
        agrees = self.agreement >= LEAST_AGREEMENT and self.fidelity >= LEAST_FIDELITY
        return bool(self.body) and says_why and agrees and self.score > 0 and not self.is_contradicted


@dataclass(frozen=True, eq=False)
class _Table:
    """The distinct rows of the truths, and how many ground rules have each."""

    truths: Truths
    weights: Int64[np.ndarray, " rows"]

    @classmethod
    def from_truths(cls, truths: Truths, most: int = MOST_GROUND_RULES) -> "_Table":
        """Of at most `most` of the ground rules, drawn at random."""
        if len(truths.known) > most:
            truths = truths.of_rows(np.sort(np.random.default_rng(0).permutation(len(truths.known))[:most]))
        bits = np.concatenate([truths.known > 0, truths.known >= 0, truths.believed, truths.says], axis=1)
        _, first, counts = np.unique(np.packbits(bits, axis=1), axis=0, return_index=True, return_counts=True)
        return cls(truths.of_rows(first), counts)

    def clauses(self, head: int) -> list[_Clause]:
        """Those of the leaves of one tree, each without the literals that it does as well without."""
        heads = (head, True), (head, False)
        found = [self._counted(body, signed) for body in self._leaves(head) for signed in heads]
        shortened = (self._shortened(clause) for clause in found if clause.agreement >= LEAST_AGREEMENT)
        return [clause for clause in shortened if clause.is_worth_showing]

    def _leaves(self, head: int) -> list[tuple[Signed, ...]]:
        """The bodies: which literals lead to each leaf of a tree that predicts the head from the other positions."""
        from sklearn.tree import DecisionTreeClassifier  # takes a second to import

        believed, weights = self.truths.believed, self.weights
        others = np.delete(np.arange(believed.shape[1]), head)
        least = max(LEAST_SUPPORT, LEAST_SHARE * weights.sum()) / max(1, weights.sum())
        if not len(others) or least > 0.5:
            return []
        grown = DecisionTreeClassifier(max_depth=DEPTH, min_weight_fraction_leaf=least, random_state=0)
        tree = grown.fit(believed[:, others], believed[:, head], sample_weight=weights).tree_

        def below(node: int, path: tuple[Signed, ...]) -> list[tuple[Signed, ...]]:
            if tree.children_left[node] < 0:
                return [path]
            position = int(others[tree.feature[node]])
            sides = (tree.children_right[node], True), (tree.children_left[node], False)
            return [leaf for child, sign in sides for leaf in below(int(child), (*path, (position, sign)))]

        return below(0, ())

    def _shortened(self, clause: _Clause) -> _Clause:
        """Without the literals that it does as well without, the least needed first."""
        floor = clause.agreement - LOSS
        while len(clause.body) > 1:
            bodies = [tuple(part for part in clause.body if part != literal) for literal in clause.body]
            shorter = max((self._counted(body, clause.head) for body in bodies), key=lambda made: made.agreement)
            if shorter.agreement < floor:
                break
            clause = shorter
        return clause._replace(body=tuple(sorted(clause.body)))

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
        def share(among: np.ndarray, which: np.ndarray) -> float:
            return float(weights[among & which].sum() / max(1, weights[among].sum()))

        (position, sign), truths, weights = head, self.truths, self.weights
        positions, signs = np.array([p for p, _ in body], np.int64), np.array([s for _, s in body], bool)
        holds = (truths.believed[:, positions] == signs).all(axis=1)
        judged = (self._judges[:, positions] == signs).all(axis=1) & (self._judges[:, position] >= 0)
        head_believed = truths.believed[:, position] == sign
        support, known, total = int(weights[holds].sum()), int(weights[judged].sum()), int(weights.sum())
        agreement, fidelity = share(holds, head_believed), share(holds, truths.says[:, position] == sign)
        confidence = share(judged, self._judges[:, position] == int(sign)) if known >= LEAST_SUPPORT else None
        contradicted = confidence is not None and bool(self._labelled[position]) and confidence < LEAST_AGREEMENT
        score = support / total * (min(agreement, fidelity) - int(weights[head_believed].sum()) / total)
        return _Clause(body, head, agreement, contradicted, support, fidelity, known, confidence, score)
