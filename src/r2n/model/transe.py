"""Tensors -> predictions: TransE, the input layer that moves one constant to another (eq. 1)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from r2n.knowledge.contradictions import refuse_wide
from r2n.logic.language import Predicate
from r2n.model.atom_embedding import GridParts
from r2n.model.formulas import SCALE, Asking, Candidates, Constants, Given, RowScores, VectorFormula


class TransE(VectorFormula):
    """c_1 + r_P - c_2."""

    def __init__(self, predicates: Sequence[Predicate], dim: int, scale: float = SCALE) -> None:
        """One vector for each predicate, and one margin: the score of a perfect match."""
        super().__init__()
        refuse_wide("transe", predicates)
        self.constant_dim = self.dim = dim
        self.vectors = nn.Parameter(torch.randn(len(predicates), dim) * scale)
        self.margin = nn.Parameter(torch.ones(()))

    def predicate_vectors(self, predicates: Int64[Tensor, " atoms"]) -> Float[Tensor, "atoms _"]:
        """r_P."""
        return self.vectors[predicates]

    def formula(self, predicates: Int64[Tensor, " atoms"], constants: Constants) -> Float[Tensor, "atoms dim"]:
        """Emb^0(a)."""
        moved = constants[:, 0] + self.vectors[predicates]
        return moved - constants[:, 1] if constants.shape[1] > 1 else moved

    def score(
        self, embedding: Float[Tensor, "atoms dim"], predicates: Int64[Tensor, " atoms"]
    ) -> Float[Tensor, " atoms"]:
        """The margin minus its norm."""
        return self.margin - (embedding.square().sum(-1) + 1e-12).sqrt()

    def grid(self, predicates: Int64[Tensor, " n"], constants: Sequence[Float[Tensor, "_ constant_dim"]]) -> GridParts:
        """Differences of the constants; the predicate is the offset."""
        features = constants[0]
        if len(constants) > 1:
            features = (features.unsqueeze(1) - constants[1].unsqueeze(0)).flatten(0, 1)
        vectors = self.vectors[predicates]
        return features, torch.ones_like(vectors), vectors

    def grid_score(
        self,
        features: Float[Tensor, "points features"],
        diagonals: Float[Tensor, "predicates features"],
        offsets: Float[Tensor, "predicates dim"],
    ) -> Float[Tensor, "predicates points"]:
        """The margin minus the norm of features + offsets, by the square of a sum."""
        squares = features.square().sum(-1) + offsets.square().sum(-1, keepdim=True)
        return self.margin - (torch.addmm(squares, offsets, features.t(), alpha=2).clamp(min=0) + 1e-12).sqrt()

    def asking(self, predicates: Int64[Tensor, " rows"], position: int, given: Given) -> Asking:
        """The perfect match: c_1 + r_P, or c_2 - r_P."""
        vectors = self.vectors[predicates]
        if given.shape[1] == 1:
            return -vectors
        return given[:, 0] + vectors if position == 1 else given[:, 1] - vectors

    def compared(self, asking: Asking, candidates: Candidates) -> RowScores:
        """The margin minus the distance from a perfect match, by the square of a sum."""
        # in double precision where the device has it: the score is what is left of two large squares
        wide = asking.dtype if asking.device.type == "mps" else torch.float64
        one, other = asking.to(wide), candidates.to(wide)
        squares = one.square().sum(-1, keepdim=True) + other.square().sum(-1)
        distances = (torch.addmm(squares, one, other.t(), alpha=-2).clamp(min=0) + 1e-12).sqrt()
        return self.margin - distances.to(asking)
