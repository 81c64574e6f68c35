"""Tensors -> predictions: Emb(c), a learned vector for every constant."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn.functional import dropout


class ConstantEmbedding(nn.Module):
    """A table of vectors, one for each constant of the language, normally distributed at the start."""

    def __init__(self, constants: int, dim: int, *, scale: float = 0.3, dropout: float = 0.0) -> None:
        """`scale` is the standard deviation at the start."""
        super().__init__()
        self.vectors = nn.Parameter(torch.randn(constants, dim) * scale)
        self.dropout = dropout

    def forward(self, constants: Int64[Tensor, " *batch"]) -> Float[Tensor, "*batch dim"]:
        """Emb(c) of constants given by their ids."""
        return self.table()[constants]

    def table(self) -> Float[Tensor, "constants dim"]:
        """Emb(c) of all constants."""
        return dropout(self.vectors, self.dropout, self.training)
