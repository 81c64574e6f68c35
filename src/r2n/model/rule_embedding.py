"""Tensors -> predictions: what sets rules apart that share the networks of a reasoning layer."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn.functional import embedding


class RuleEmbedding(nn.Module):
    """Two vectors a rule: MLP^1_j of rule j has the hidden layer relu((1 + s_j) * W x + b + t_j), W and b shared.

    Both start at zero, and a decay of weights pulls them there: a rule is its group's network until it learns more.
    """

    def __init__(self, rules: int, hidden: int) -> None:
        """For so many rules, and a hidden layer so wide."""
        super().__init__()
        self.scales = nn.Parameter(torch.zeros(rules, hidden))
        self.shifts = nn.Parameter(torch.zeros(rules, hidden))

    def scale(self, rules: Int64[Tensor, " n"]) -> Float[Tensor, "n hidden"]:
        """1 + s_j, for some rules by number."""
        return embedding(rules, 1 + self.scales)

    def shift(self, rules: Int64[Tensor, " n"]) -> Float[Tensor, "n hidden"]:
        """t_j."""
        return embedding(rules, self.shifts)
