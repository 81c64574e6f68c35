"""Tensors -> predictions: input layers that are a formula of the vectors of predicate and constants (eq. 1).

The atom embedding is the latent vector before the score's reduction. With c_i the constants' vectors and r_P the
predicate's (for ComplEx and RotatE complex vectors, held as real and imaginary halves):

    distmult  r_P * c_1 * ... * c_n            any arity      score: its sum
    complex   Re(r_P * c_1 * conj(c_2))        arity 1, 2     score: its sum
    transe    c_1 + r_P - c_2                  arity 1, 2     score: margin minus its norm
    rotate    Re(r_P * c_1 * conj(c_2)), |r_P| = 1   1, 2     score: its sum

An atom of one constant has Re(r_P * c_1), c_1 + r_P, and so on: the second factor is left out. All are linear in
features that all predicates share, and over a whole Herbrand base that is how they are computed (`grid`).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from r2n.errors import ConfigError
from r2n.logic.language import Predicate
from r2n.model.atom_embedding import AtomLayout, GridEmbedding, GridParts
from r2n.model.constant_embedding import ConstantEmbedding

SCALE = 0.3  # standard deviation of the predicates' vectors at the start
Constants = Float[Tensor, "atoms positions constant_dim"]


class _Formula(nn.Module, ABC):
    constant_dim: int
    dim: int

    @property
    def grids(self) -> GridEmbedding:
        """Itself: every formula is linear in features that all predicates share."""
        return self

    def lay_out(
        self,
        predicates: Int64[Tensor, " atoms"],
        arguments: Int64[Tensor, "atoms positions"],
        constants: ConstantEmbedding,
    ) -> AtomLayout:
        """Atoms of one arity."""
        return AtomLayout(predicates, constants.lay_out(arguments))

    def forward(self, atoms: AtomLayout, constants: ConstantEmbedding) -> Float[Tensor, "atoms dim"]:
        """Emb^0(a)."""
        return self.formula(atoms.predicates, constants(atoms.constants))

    @abstractmethod
    def formula(self, predicates: Int64[Tensor, " atoms"], constants: Constants) -> Float[Tensor, "atoms dim"]:
        """Emb^0(a) of atoms given by their predicates (by index) and their constants' vectors."""

    @abstractmethod
    def grid(self, predicates: Int64[Tensor, " n"], constants: Sequence[Float[Tensor, "_ constant_dim"]]) -> GridParts:
        """Emb^0 of all atoms of some predicates over a grid of constants."""

    @abstractmethod
    def grid_score(
        self,
        features: Float[Tensor, "points features"],
        diagonals: Float[Tensor, "predicates features"],
        offsets: Float[Tensor, "predicates dim"],
    ) -> Float[Tensor, "predicates points"]:
        """The score of each of these."""


class _SummedFormula(_Formula):
    """A formula whose score is the sum of the embedding."""

    def score(
        self, embedding: Float[Tensor, "atoms dim"], predicates: Int64[Tensor, " atoms"]
    ) -> Float[Tensor, " atoms"]:
        """Its sum."""
        return embedding.sum(-1)

    def grid_score(
        self,
        features: Float[Tensor, "points features"],
        diagonals: Float[Tensor, "predicates features"],
        offsets: Float[Tensor, "predicates dim"],
    ) -> Float[Tensor, "predicates points"]:
        """The sum of each embedding, without writing it out."""
        return torch.addmm(offsets.sum(-1, keepdim=True), diagonals, features.t())


def _outer(first: Tensor, second: Tensor) -> Tensor:
    """All products of a row of the one and a row of the other, (rows of first * rows of second, dim)."""
    return (first.unsqueeze(1) * second.unsqueeze(0)).flatten(0, 1)


def _complex_grid(vectors: Tensor, constants: Sequence[Tensor]) -> GridParts:
    """Re(r * c_1 * conj(c_2)) = Re(r) Re(c_1 conj(c_2)) - Im(r) Im(c_1 conj(c_2))."""
    r_re, r_im = vectors.chunk(2, dim=-1)
    re, im = constants[0].chunk(2, dim=-1)
    if len(constants) > 1:
        t_re, t_im = constants[1].chunk(2, dim=-1)
        re, im = _outer(re, t_re) + _outer(im, t_im), _outer(im, t_re) - _outer(re, t_im)
    return torch.cat([re, im], dim=1), torch.cat([r_re, -r_im], dim=1), torch.zeros_like(r_re)


def _refuse_wide(name: str, predicates: Sequence[Predicate]) -> None:
    for predicate in predicates:
        if predicate.arity > 2:
            raise ConfigError(
                f"input '{name}' takes predicates of one or two positions, but {predicate.name} has {predicate.arity}",
                hint="choose input = 'distmult' or 'mlp'",
            )


class DistMult(_SummedFormula):
    """r_P * c_1 * ... * c_n."""

    def __init__(self, predicates: Sequence[Predicate], dim: int) -> None:
        """One vector for each predicate."""
        super().__init__()
        self.constant_dim = self.dim = dim
        self.vectors = nn.Parameter(torch.randn(len(predicates), dim) * SCALE)

    def formula(self, predicates: Int64[Tensor, " atoms"], constants: Constants) -> Float[Tensor, "atoms dim"]:
        """Emb^0(a)."""
        return self.vectors[predicates] * constants.prod(dim=1)

    def grid(self, predicates: Int64[Tensor, " n"], constants: Sequence[Float[Tensor, "_ constant_dim"]]) -> GridParts:
        """Products of the constants, times the predicate's diagonal."""
        features = constants[0]
        for more in constants[1:]:
            features = _outer(features, more)
        vectors = self.vectors[predicates]
        return features, vectors, torch.zeros_like(vectors)


def _real_product(predicate: Tensor, constants: Constants) -> Tensor:
    """Re(r * c_1 * conj(c_2)), without the last factor for unary atoms; written out, faster than complex numbers."""
    r_re, r_im = predicate.chunk(2, dim=-1)
    h_re, h_im = constants[:, 0].chunk(2, dim=-1)
    re, im = r_re * h_re - r_im * h_im, r_re * h_im + r_im * h_re
    if constants.shape[1] == 1:
        return re
    t_re, t_im = constants[:, 1].chunk(2, dim=-1)
    return re * t_re + im * t_im


class ComplEx(_SummedFormula):
    """Re(r_P * c_1 * conj(c_2)), component by component."""

    def __init__(self, predicates: Sequence[Predicate], dim: int) -> None:
        """One complex vector for each predicate."""
        super().__init__()
        _refuse_wide("complex", predicates)
        self.dim, self.constant_dim = dim, 2 * dim
        self.vectors = nn.Parameter(torch.randn(len(predicates), 2 * dim) * SCALE)

    def formula(self, predicates: Int64[Tensor, " atoms"], constants: Constants) -> Float[Tensor, "atoms dim"]:
        """Emb^0(a)."""
        return _real_product(self.vectors[predicates], constants)

    def grid(self, predicates: Int64[Tensor, " n"], constants: Sequence[Float[Tensor, "_ constant_dim"]]) -> GridParts:
        """Real and imaginary parts of c_1 conj(c_2), times the predicate's two diagonals."""
        return _complex_grid(self.vectors[predicates], constants)


class RotatE(_SummedFormula):
    """Re(r_P * c_1 * conj(c_2)) with |r_P| = 1: the alignment of the rotated c_1 with c_2.

    The modulus |r_P c_1 - c_2| of the original is near zero for every true atom, and would lose its identity.
    """

    def __init__(self, predicates: Sequence[Predicate], dim: int) -> None:
        """One angle for each predicate and component."""
        super().__init__()
        _refuse_wide("rotate", predicates)
        self.dim, self.constant_dim = dim, 2 * dim
        self.angles = nn.Parameter(torch.randn(len(predicates), dim) * SCALE)

    def formula(self, predicates: Int64[Tensor, " atoms"], constants: Constants) -> Float[Tensor, "atoms dim"]:
        """Emb^0(a)."""
        return _real_product(self._vectors(predicates), constants)

    def _vectors(self, predicates: Tensor) -> Tensor:
        angles = self.angles[predicates]
        return torch.cat([torch.cos(angles), torch.sin(angles)], dim=-1)

    def grid(self, predicates: Int64[Tensor, " n"], constants: Sequence[Float[Tensor, "_ constant_dim"]]) -> GridParts:
        """As ComplEx."""
        return _complex_grid(self._vectors(predicates), constants)


class TransE(_Formula):
    """c_1 + r_P - c_2."""

    def __init__(self, predicates: Sequence[Predicate], dim: int) -> None:
        """One vector for each predicate, and one margin: the score of a perfect match."""
        super().__init__()
        _refuse_wide("transe", predicates)
        self.constant_dim = self.dim = dim
        self.vectors = nn.Parameter(torch.randn(len(predicates), dim) * SCALE)
        self.margin = nn.Parameter(torch.ones(()))

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
