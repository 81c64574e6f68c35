"""Predictions -> a trained network: rules as fuzzy logic on the outputs, by a t-norm, instead of or beside layers.

A t-norm T says how true `a & b` is. With the negation 1 - a it gives all other connectives:

    product       T(a, b) = a b
    goedel        T(a, b) = min(a, b)
    lukasiewicz   T(a, b) = max(0, a + b - 1)

    a | b = !(!a & !b)      a -> b = !a | b      a xor b = (a & !b) | (b & !a)      a <-> b = !(a xor b)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from r2n.errors import ConfigError
from r2n.logic.formula import Formula
from r2n.training.batches import Step

Truths = Float[Tensor, " *batch"]
TNorm = Callable[[Truths, Truths], Truths]
Regularisation = Literal["off", "product", "goedel", "lukasiewicz"]


def product(left: Truths, right: Truths) -> Truths:
    """T(a, b) = a b."""
    return left * right


def goedel(left: Truths, right: Truths) -> Truths:
    """T(a, b) = min(a, b)."""
    return torch.minimum(left, right)


def lukasiewicz(left: Truths, right: Truths) -> Truths:
    """T(a, b) = max(0, a + b - 1)."""
    return (left + right - 1).clamp(min=0)


T_NORMS: dict[str, TNorm] = {"product": product, "goedel": goedel, "lukasiewicz": lukasiewicz}


@dataclass(frozen=True, slots=True, eq=False)
class Fuzzy:
    """Truths in [0, 1] with the connectives that a t-norm gives."""

    truth: Truths
    t_norm: TNorm

    def __invert__(self) -> "Fuzzy":
        """!a = 1 - a."""
        return Fuzzy(1 - self.truth, self.t_norm)

    def __and__(self, other: "Fuzzy") -> "Fuzzy":
        """a & b = T(a, b)."""
        return Fuzzy(self.t_norm(self.truth, other.truth), self.t_norm)

    def __or__(self, other: "Fuzzy") -> "Fuzzy":
        """a | b = !(!a & !b)."""
        return ~(~self & ~other)

    def __xor__(self, other: "Fuzzy") -> "Fuzzy":
        """A xor b = (a & !b) | (b & !a)."""
        return (self & ~other) | (other & ~self)


def fuzzy_truth(formula: Formula, truths: Float[Tensor, "*batch positions"], t_norm: TNorm) -> Truths:
    """How true a formula is, in [0, 1], where its atoms have these truths; on 0 and 1 as `Formula.evaluate` says."""
    return formula.interpreted([Fuzzy(truth, t_norm) for truth in truths.unbind(-1)]).truth


class Regulariser:
    """1 - the fuzzy truth, on the network's outputs, of all ground rules of explicit rules.

    Labels are not needed: every ground rule counts. An atom under the closed-world assumption is not predicted but
    known, so it enters with its truth; all others enter with sigmoid(out(a)).
    """

    def __init__(self, step: Step, t_norm: TNorm) -> None:
        """For the graph of a step."""
        self.t_norm, self.is_open = t_norm, step.questions.open_atoms
        self.closed_truth = (step.questions.labels == 1) & ~self.is_open
        self.rules = [
            (rule.formula, rows)
            for rule, rows in zip(step.graph.rules, step.graph.neighbours, strict=True)
            if rule.formula is not None
        ]
        self.weight = 1.0

    def __len__(self) -> int:
        """The number of ground rules."""
        return sum(len(rows) for _, rows in self.rules)

    def loss(self, out: Float[Tensor, " atoms"]) -> Float[Tensor, ""]:
        """The mean of 1 - truth, times the weight; zero where there is no ground rule."""
        truths = torch.where(self.is_open, torch.sigmoid(out), self.closed_truth.to(out))
        found = torch.cat(
            [
                fuzzy_truth(formula, truths.index_select(0, rows.flatten()).view(rows.shape), self.t_norm)
                for formula, rows in self.rules
            ]
        )
        return self.weight * (1 - found).mean() if len(found) else found.sum()


def regularisers(steps: Sequence[Step], regularisation: Regularisation) -> list[Regulariser]:
    """One for each step, weighed so that their mean is that over all ground rules; none where it is off."""
    if regularisation == "off":
        return []
    made = [Regulariser(step, T_NORMS[regularisation]) for step in steps]
    if not made[0].rules:
        raise ConfigError(
            "regularisation needs explicit rules, and the theory has none",
            hint="write rule NAME: FORMULA, or set training.regularisation to off",
        )
    ground_rules = sum(map(len, made))
    for part in made:
        part.weight = len(part) * len(made) / max(1, ground_rules)
    return made
