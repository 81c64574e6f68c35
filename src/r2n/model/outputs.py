"""Tensors -> predictions: out(a) from Emb^L(a), out(g) from Emb^L(g); both are logits."""

from jaxtyping import Float
from torch import Tensor, nn

from r2n.model.mlp import MLP


class AtomOutput(nn.Module):
    """out(a) = MLP^A(Emb^L(a))."""

    def __init__(self, dim: int) -> None:
        """One hidden layer as wide as the embedding."""
        super().__init__()
        self.network = MLP((dim, dim, 1))

    def forward(self, atoms: Float[Tensor, "atoms dim"]) -> Float[Tensor, " atoms"]:
        """The logit of each atom."""
        return self.network(atoms).squeeze(-1)


class RuleOutput(nn.Module):
    """out(g) = MLP^R(Emb^L(g))."""

    def __init__(self, rule_dim: int) -> None:
        """One hidden layer as wide as the embedding."""
        super().__init__()
        self.network = MLP((rule_dim, rule_dim, 1))

    def forward(self, rules: Float[Tensor, "ground_rules rule_dim"]) -> Float[Tensor, " ground_rules"]:
        """The logit of each ground rule."""
        return self.network(rules).squeeze(-1)
