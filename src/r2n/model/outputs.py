"""Tensors -> predictions: out(a) from Emb^L(a), out(g) from Emb^L(g); both are logits."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from r2n.model.mlp import MLP


class AtomOutput(nn.Module):
    """out(a) = MLP^A(Emb^L(a))."""

    def __init__(self, dim: int, *, linear: bool = False) -> None:
        """One hidden layer as wide as the embedding, or none (`linear`)."""
        super().__init__()
        self.network = MLP((dim, 1) if linear else (dim, dim, 1))

    def forward(self, atoms: Float[Tensor, "atoms dim"]) -> Float[Tensor, " atoms"]:
        """The logit of each atom."""
        return self.network(atoms).squeeze(-1)

    def over_grid(
        self,
        features: Float[Tensor, "points features"],
        maps: Float[Tensor, "predicates features dim"],
        offsets: Float[Tensor, "predicates dim"],
    ) -> Float[Tensor, "predicates points"]:
        """The logit of each atom whose embedding is features @ maps + offsets."""
        if len(self.network.layers) > 1:
            return self.network(features @ maps + offsets.unsqueeze(1)).squeeze(-1)
        (last,) = self.network.linear()
        return torch.addmm(last(offsets), (maps @ last.weight[0]), features.t())


class RuleOutput(nn.Module):
    """out(g) = MLP^R(Emb^L(g))."""

    def __init__(self, rule_dim: int) -> None:
        """One hidden layer as wide as the embedding."""
        super().__init__()
        self.network = MLP((rule_dim, rule_dim, 1))

    def forward(self, rules: Float[Tensor, "ground_rules rule_dim"]) -> Float[Tensor, " ground_rules"]:
        """The logit of each ground rule."""
        return self.network(rules).squeeze(-1)
