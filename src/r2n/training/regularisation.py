"""Predictions -> a trained network: rules as fuzzy logic on the outputs, by a t-norm, instead of or beside layers.

A t-norm T says how true `a & b` is. With the negation 1 - a it gives all other connectives:

    product       T(a, b) = a b
    goedel        T(a, b) = min(a, b)
    lukasiewicz   T(a, b) = max(0, a + b - 1)

    a | b = !(!a & !b)      a -> b = !a | b      a xor b = (a & !b) | (b & !a)      a <-> b = !(a xor b)
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from r2n.knowledge.contradictions import refuse_without_explicit_rules
from r2n.logic.formula import Formula
from r2n.training.batches import Step

Truths = Float[Tensor, " *batch"]
TNorm = Callable[[Truths, Truths], Truths]


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


def fuzzy_loss(step: Step, out: Float[Tensor, " atoms"], t_norm: TNorm) -> Float[Tensor, ""]:
    """The mean over all ground rules (the step's own) of explicit rules of 1 - their fuzzy truth on the outputs.

    Labels are not needed: every ground rule counts. An atom under the closed-world assumption is not predicted but
    known, so it enters with its truth; all others enter with sigmoid(out(a)). Zero where there is no ground rule.
    """
    refuse_without_explicit_rules(step.graph.rules)
    targets = step.targets
    closed_truth = ((targets.labels == 1) & ~targets.open_atoms).to(out)
    truths = torch.where(targets.open_atoms, torch.sigmoid(out), closed_truth)
    counted = step.graph.neighbours
    if step.own is not None:
        counted = [rows[own] for rows, own in zip(counted, step.own, strict=True)]
    found = [
        fuzzy_truth(rule.formula, truths.index_select(0, rows.flatten()).view(rows.shape), t_norm)
        for rule, rows in zip(step.graph.rules, counted, strict=True)
        if rule.formula is not None
    ]
    unmet = 1 - torch.cat(found)
    return unmet.mean() if len(unmet) else unmet.sum()
