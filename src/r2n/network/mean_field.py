"""Mean-field inference in the Markov logic network of the rules, with learned weights."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from operator import mul

import torch
from jaxtyping import Float
from torch import Tensor, nn

from r2n.logic.formula import Formula
from r2n.logic.language import Language
from r2n.logic.theory import Rule
from r2n.network.scatter import Incidence

Truths = Float[Tensor, " *batch"]
TNorm = Callable[[Truths, Truths], Truths]
State = Float[Tensor, "atoms 3"]
"""Of each atom: the input layer's logit, the sum of the messages, and what is known: 1 true, -1 false, 0 nothing."""

KNOWN = ((0.0, 0.0, 0.0), (0.0, 0.0, -1.0), (0.0, 0.0, 1.0))  # added for UNKNOWN, FALSE, TRUE


@dataclass(frozen=True, slots=True, eq=False)
class Fuzzy:
    """Truths in [0, 1] with the connectives that a t-norm gives."""

    truth: Truths
    t_norm: TNorm

    def __invert__(self) -> "Fuzzy":
        return Fuzzy(1 - self.truth, self.t_norm)

    def __and__(self, other: "Fuzzy") -> "Fuzzy":
        return Fuzzy(self.t_norm(self.truth, other.truth), self.t_norm)

    def __or__(self, other: "Fuzzy") -> "Fuzzy":
        return ~(~self & ~other)

    def __xor__(self, other: "Fuzzy") -> "Fuzzy":
        return (self & ~other) | (other & ~self)


def fuzzy_truth(formula: Formula, truths: Float[Tensor, "*batch positions"], t_norm: TNorm) -> Truths:
    """The truth of a formula in [0, 1], given those of its atoms; on 0 and 1 it is `Formula.evaluate`."""
    return formula.interpreted([Fuzzy(truth, t_norm) for truth in truths.unbind(-1)]).truth


class MeanField(nn.Module):
    """One step of mean-field inference: from the atoms' probabilities to messages, and to new probabilities.

    A ground rule g of rule j says e = P(g holds | the atom is true) - P(g holds | it is false) of an atom, by the
    present probabilities of its other atoms, as if they were independent. It sends w_j (e - e'), where e' is the same
    with the other open atoms as probable as the learned references of their predicates: what is as probable as usual
    says nothing. If no other atom is open, it sends w_j e. An atom's log-odds are its own logit and the sum of what it
    receives.
    """

    isolated, residual, is_over_grids, rule_embedding = "zero", False, False, None
    predicates: Tensor

    def __init__(self, rules: Sequence[Rule], language: Language) -> None:
        """A weight for each rule, at first its own in the theory, else zero; a reference for each open predicate."""
        super().__init__()
        self.formulas = [rule.formula for rule in rules]
        self.weights = nn.Parameter(torch.tensor([rule.weight or 0.0 for rule in rules]))
        self.number = {part.name: i for i, part in enumerate(part for part in language.predicates if not part.closed)}
        self.reference = nn.Parameter(torch.zeros(len(self.number)))  # log-odds
        numbers = [torch.tensor([self.number.get(atom.predicate, -1) for atom in rule.atoms]) for rule in rules]
        padded = nn.utils.rnn.pad_sequence(numbers, batch_first=True) if rules else torch.zeros(0, 0)
        self.register_buffer("predicates", padded, persistent=False)

    def take_as_they_are(self, names: Collection[str]) -> None:
        """Expect nothing of these predicates: how many of their atoms are true cannot be learned."""
        for name in self.number.keys() & set(names):
            self.predicates[self.predicates == self.number[name]] = -1

    def forward(
        self, atoms: State, incidence: Incidence, *, rule_embeddings: bool = False
    ) -> tuple[State, list[Tensor]]:
        """The atoms' states after the step; ground rules have no embeddings."""
        own, messages, known = atoms.unbind(1)
        truths = torch.where(known == 0, torch.sigmoid(own + messages), (known + 1) / 2).unsqueeze(1)
        if not incidence.rules:
            return atoms, []
        arrived = [
            rule.index.sum_at_atoms((weight * self._said(j, rule.index.at_rules(slots).squeeze(-1))).unsqueeze(-1))
            for j, (weight, rule, slots) in enumerate(
                zip(self.weights.unbind(), incidence.rules, incidence.at_slots(truths), strict=True)
            )
        ]
        return torch.stack([own, incidence.sum_at_atoms(arrived).squeeze(1), known], dim=1), []

    def _said(self, rule: int, truths: Float[Tensor, "ground_rules positions"]) -> Tensor:
        """The effects of a rule's ground rules at each position, without what is expected of other open atoms."""
        effects, numbers = _effects(self.formulas[rule], truths), self.predicates[rule, : truths.shape[1]]
        is_open = numbers >= 0
        expected = torch.where(is_open, torch.sigmoid(self.reference)[numbers.clamp(min=0)], truths)
        has_others = is_open.sum() > is_open.long()
        return torch.where(has_others, effects - _effects(self.formulas[rule], expected), effects)


def _effects(formula: Formula | None, truths: Float[Tensor, "ground_rules positions"]) -> Tensor:
    """How much likelier a formula is to hold if the atom at each position is true than if it is false."""
    assert formula is not None
    effects = []
    for i in range(truths.shape[1]):
        is_own = torch.arange(truths.shape[1], device=truths.device) == i
        true, false = (fuzzy_truth(formula, truths.masked_fill(is_own, value), mul) for value in (1.0, 0.0))
        effects.append(true - false)
    return torch.stack(effects, dim=1)


class Messages(nn.Module):
    """out(a): the sum of the messages that an atom receives, to be added to its own logit."""

    def forward(self, atoms: State) -> Float[Tensor, " atoms"]:
        """The second component."""
        return atoms[:, 1]
