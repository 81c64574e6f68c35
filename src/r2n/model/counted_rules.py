"""Tensors -> predictions: rules whose ground rules are counted: what each says of an atom, by their number alone.

    mass(a) = sum over rules j that conclude a of exp(w_j) n_j(a)^(v_j)

n_j(a) is the number of ground rules of j with a known body that conclude a. Of all candidates of a row (a position of a
predicate, the other constants given), an atom has the share mass(a) / (rest + sum of masses), where `rest`, learned for
each position of each predicate, stands for the candidates that no rule concludes. Each w, v and rest belongs to the
position that is asked for.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from r2n.logic.theory import Rule


class CountedRules(nn.Module):
    """The weights of counted rules."""

    def __init__(self, rules: Sequence[Rule], predicates: int, positions: int) -> None:
        """One w and v for each rule and position, one rest for each predicate and position."""
        super().__init__()
        self.rules = tuple(rules)
        self.weights = nn.Parameter(torch.full((len(rules), positions), -2.0))
        self.powers = nn.Parameter(torch.full((len(rules), positions), 0.3))
        self.rest = nn.Parameter(torch.full((predicates, positions), -2.0))

    def masses(
        self, position: int, rules: Int64[Tensor, " entries"], log_counts: Float[Tensor, " entries"]
    ) -> Float[Tensor, " entries"]:
        """The log of what a rule adds to the mass of an atom: w_j + v_j log n_j(a)."""
        return self.weights[rules, position] + self.powers[rules, position] * log_counts


def log_sum(values: Float[Tensor, " values"], groups: Int64[Tensor, " values"], count: int) -> Float[Tensor, " groups"]:
    """The log of the sum of exponentials in each group; of an empty one a large negative number."""
    most = values.new_full((count,), -1e30).scatter_reduce(0, groups, values.detach(), "amax")
    sums = values.new_zeros(count).index_add(0, groups, torch.exp(values - most[groups]))
    return most + torch.log(sums.clamp(min=1e-30))
