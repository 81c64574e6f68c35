"""Mined rules: their counts, which of them are kept, and how they are written."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import combinations, pairwise

import numpy as np
from jaxtyping import Int64

from r2n.errors import ConfigError
from r2n.logic.formula import And, Atom, Constant, Implies, Term, Unequal, Variable
from r2n.logic.language import Predicate
from r2n.logic.theory import Rule

CAUTION = 5
"""Pairs added to a rule's body pairs when rules are compared: 1 hit in 1 pair is worth less than 80 in 100."""

MOST_STEPS = 3

_BETWEEN = ("z", "w")
_X, _Y, _Z = Variable("x"), Variable("y"), Variable("z")


@dataclass(frozen=True, slots=True)
class MinedRule:
    """A rule with its counts of distinct pairs (x, y)."""

    rule: Rule
    support: int  # reached by the body, and the head is known
    body_pairs: int  # reached by the body
    pca_pairs: int  # reached by the body, and x has a known fact of the head's predicate
    sample: tuple[int, int] | None = None  # (N, M): counted from N of the M first constants of the body

    @property
    def confidence(self) -> float:
        """The share of the reached pairs that are known; an estimate if there is a sample."""
        return self.support / self.body_pairs

    @property
    def pca_confidence(self) -> float:
        """The same among pairs whose x has a known fact of the head's predicate: what else such an x has is false."""
        return self.support / self.pca_pairs

    def __str__(self) -> str:
        """The counts, as in a comment of a theory file."""
        numbers = f"confidence {self.confidence:.4f}, PCA confidence {self.pca_confidence:.4f}"
        text = f"support {self.support} of {self.body_pairs} pairs, {numbers}"
        if self.sample is None:
            return text
        return f"{text} (estimates: counted on a sample of {self.sample[0]} of {self.sample[1]} first constants)"


@dataclass(frozen=True)
class MiningOptions:
    """Which rules are searched, and which are kept.

    `max_length`: atoms of a body. `max_rules`: of each predicate as head and each length, so that long rules, which are
    many, do not push out short ones; rules with `constants` have a limit of their own. `seconds` ends the search early.
    Paths of more than `most_walks` walks are counted on a sample of first constants, drawn by `seed`.
    """

    max_length: int = 2
    max_rules: int = 100
    min_support: int = 3
    min_confidence: float = 0.01
    constants: bool = False
    seconds: float | None = None
    most_walks: int = 20_000_000
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.max_length <= MOST_STEPS:
            what = f"bodies of {self.max_length} atoms cannot be mined"
            raise ConfigError(what, hint=f"max_length is 1 to {MOST_STEPS}")
        for name in ("max_rules", "min_support", "most_walks"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}", hint="give at least 1")
        if not 0 <= self.min_confidence <= 1:
            raise ConfigError(f"min_confidence is {self.min_confidence}", hint="give a share from 0 to 1")
        if self.seconds is not None and not self.seconds > 0:
            raise ConfigError(f"seconds is {self.seconds}", hint="give more than 0")


@dataclass(frozen=True, eq=False)
class Found:
    """Rules of one kind and their counts, as columns.

    A `head` is a step and a constant: p(x, y) is step 2p and -1, p(x, c) step 2p and c, p(c, y) step 2p + 1 and c. A
    `body` is a path of steps, or under a head with a constant a step and a constant, -1 if it is a variable. A
    `sample` is (0, 0) if all was counted.
    """

    head: Int64[np.ndarray, "rules 2"]
    body: Int64[np.ndarray, "rules parts"]
    support: Int64[np.ndarray, " rules"]
    body_pairs: Int64[np.ndarray, " rules"]
    pca_pairs: Int64[np.ndarray, " rules"]
    sample: Int64[np.ndarray, "rules 2"]

    def __len__(self) -> int:
        return len(self.support)

    @classmethod
    def joined(cls, parts: "Sequence[Found]") -> "Found":
        """All rules of several parts, of which there is at least one."""
        return cls(*(np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(cls)))

    @property
    def predicate(self) -> Int64[np.ndarray, " rules"]:
        """The head's predicate."""
        return self.head[:, 0] // 2

    def best(self, most: int) -> "Found":
        """At most `most` for each predicate of a head, the best first by confidence with `CAUTION`, then by support."""
        score = self.support / (self.body_pairs + CAUTION)
        order = np.lexsort((*self.body.T[::-1], *self.head.T[::-1], -self.support, -score, self.predicate))
        predicate = self.predicate[order]
        rank = np.arange(len(order)) - np.searchsorted(predicate, predicate)
        return Found(*(getattr(self, column.name)[order[rank < most]] for column in fields(self)))

    def mined(self, row: int, predicates: Sequence[Predicate], constants: Sequence[str]) -> MinedRule:
        """One of the rules, in symbols."""
        head, body = self.head[row].tolist(), self.body[row].tolist()
        rule = path_rule(predicates, head, body) if head[1] < 0 else constant_rule(predicates, constants, head, body)
        counts = (int(column[row]) for column in (self.support, self.body_pairs, self.pca_pairs))
        counted, total = self.sample[row].tolist()
        return MinedRule(rule, *counts, sample=(counted, total) if total else None)


def path_rule(predicates: Sequence[Predicate], head: Sequence[int], steps: Sequence[int]) -> Rule:
    """The rule of a path: `q(x, z) & s(y, z) -> p(x, y)`, its variables distinct."""
    nodes = [_X, *map(Variable, _BETWEEN[: len(steps) - 1]), _Y]
    body = [_step_atom(predicates, step, *ends) for step, ends in zip(steps, pairwise(nodes), strict=True)]
    return _rule(body, _step_atom(predicates, head[0], _X, _Y), [_X, _Y, *nodes[1:-1]], ())


def constant_rule(
    predicates: Sequence[Predicate], constants: Sequence[str], head: Sequence[int], body: Sequence[int]
) -> Rule:
    """`q(x, "d") -> p(x, "c")` of steps and constants; `q(x, z)` for a body whose constant is -1."""
    free = _X if head[0] % 2 == 0 else _Y
    terms = [Constant(constants[head[1]]), _Z if body[1] < 0 else Constant(constants[body[1]])]
    conclusion = _step_atom(predicates, head[0], free, terms[0])
    premise = _step_atom(predicates, body[0], free, terms[1])
    fixed = tuple(dict.fromkeys(term for term in terms if isinstance(term, Constant)))
    return _rule([premise], conclusion, [free, _Z] if body[1] < 0 else [free], fixed)


def _step_atom(predicates: Sequence[Predicate], step: int, start: Term, end: Term) -> Atom:
    return Atom(predicates[step // 2].name, (start, end) if step % 2 == 0 else (end, start))


def _rule(body: list[Atom], head: Atom, variables: list[Variable], fixed: tuple[Constant, ...]) -> Rule:
    """Variables are distinct from each other and from the constants of the rule."""
    guards = [Unequal(*pair) for pair in combinations(variables, 2)]
    guards += [Unequal(variable, constant) for variable in variables for constant in fixed]
    return Rule.explicit("mined", Implies(body[0] if len(body) == 1 else And(tuple(body)), head), tuple(guards))
