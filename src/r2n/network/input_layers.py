"""Input layers by name: DistMult, ComplEx, RotatE, TransE, MLP, pair, features."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from r2n.data.knowledge_base import KnowledgeBase
from r2n.data.validation import refuse_wide
from r2n.logic.language import Predicate
from r2n.network.atom_embedding import AtomEmbedding, AtomLayout, AtomMLP, GridEmbedding, GridParts, RowEmbedding
from r2n.network.constant_embedding import ConstantEmbedding, FeatureEncoder, make_channels
from r2n.network.pair_embedding import PairEmbedding
from r2n.options import ModelOptions

SCALE = 0.3  # standard deviation of the predicates' vectors at the start
Constants = Float[Tensor, "atoms positions constant_dim"]
Given = Float[Tensor, "rows positions constant_dim"]
Asking = Float[Tensor, "rows constant_dim"]
Candidates = Float[Tensor, "candidates constant_dim"]
RowScores = Float[Tensor, "rows candidates"]


class VectorFormula(nn.Module, ABC):
    """An input layer that is a formula of the vectors of predicate and constants."""

    constant_dim: int
    dim: int

    @property
    def grids(self) -> GridEmbedding:
        """Itself: every formula is linear in features that all predicates share."""
        return self

    @property
    def rows(self) -> RowEmbedding:
        """Itself."""
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

    @abstractmethod
    def predicate_vectors(self, predicates: Int64[Tensor, " atoms"]) -> Float[Tensor, "atoms _"]:
        """r_P."""

    def cubes(self, vectors: Float[Tensor, "*batch _"]) -> Float[Tensor, "*batch _"]:
        """The cubed moduli of the components."""
        return vectors.abs().pow(3)

    def n3(self, predicates: Int64[Tensor, " atoms"], constants: Constants) -> Float[Tensor, ""]:
        """N3 of atoms, by their predicates and their constants' vectors."""
        return (self.cubes(self.predicate_vectors(predicates)).sum() + self.cubes(constants).sum()) / len(predicates)

    @abstractmethod
    def asking(self, predicates: Int64[Tensor, " rows"], position: int, given: Given) -> Asking:
        """The vector of each row that a candidate's is compared to, made of all but the open position."""

    @abstractmethod
    def compared(self, asking: Asking, candidates: Candidates) -> RowScores:
        """The scores of the candidates of rows."""

    def row_scores(
        self, predicates: Int64[Tensor, " rows"], position: int, given: Given, candidates: Candidates
    ) -> RowScores:
        """The score of each row's atom with each candidate at the open position."""
        return self.compared(self.asking(predicates, position, given), candidates)


class _SummedFormula(VectorFormula):
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

    def compared(self, asking: Asking, candidates: Candidates) -> RowScores:
        """Their products."""
        return asking @ candidates.t()


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


def _complex_asking(vectors: Tensor, position: int, given: Given) -> Tensor:
    """The a of Re(r * c_1 * conj(c_2)) = a . c, c the open one: r * c_1, or the conjugate of r * conj(c_2) or of r."""
    r_re, r_im = vectors.chunk(2, dim=-1)
    if given.shape[1] == 1:
        return torch.cat([r_re, -r_im], dim=-1)
    re, im = given[:, 1 - position].chunk(2, dim=-1)
    if position == 0:
        return torch.cat([r_re * re + r_im * im, r_re * im - r_im * re], dim=-1)
    return torch.cat([r_re * re - r_im * im, r_re * im + r_im * re], dim=-1)


class _ComplexFormula(_SummedFormula):
    """A formula over complex vectors, held as real and imaginary halves."""

    def cubes(self, vectors: Float[Tensor, "*batch _"]) -> Float[Tensor, "*batch _"]:
        """The cubed moduli of the complex components."""
        re, im = vectors.chunk(2, dim=-1)
        return (re.square() + im.square()).pow(1.5)


class DistMult(_SummedFormula):
    """r_P * c_1 * ... * c_n."""

    def __init__(self, predicates: Sequence[Predicate], dim: int, scale: float = SCALE) -> None:
        """One vector for each predicate."""
        super().__init__()
        self.constant_dim = self.dim = dim
        self.vectors = nn.Parameter(torch.randn(len(predicates), dim) * scale)

    def predicate_vectors(self, predicates: Int64[Tensor, " atoms"]) -> Float[Tensor, "atoms _"]:
        """r_P."""
        return self.vectors[predicates]

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

    def asking(self, predicates: Int64[Tensor, " rows"], position: int, given: Given) -> Asking:
        """The product of all but the open position."""
        others = torch.cat([given[:, :position], given[:, position + 1 :]], dim=1)
        return self.vectors[predicates] * others.prod(dim=1)


def _real_product(predicate: Tensor, constants: Constants) -> Tensor:
    """Re(r * c_1 * conj(c_2)), without the last factor for unary atoms; written out, faster than complex numbers."""
    r_re, r_im = predicate.chunk(2, dim=-1)
    h_re, h_im = constants[:, 0].chunk(2, dim=-1)
    re, im = r_re * h_re - r_im * h_im, r_re * h_im + r_im * h_re
    if constants.shape[1] == 1:
        return re
    t_re, t_im = constants[:, 1].chunk(2, dim=-1)
    return re * t_re + im * t_im


class ComplEx(_ComplexFormula):
    """Re(r_P * c_1 * conj(c_2)), component by component."""

    def __init__(self, predicates: Sequence[Predicate], dim: int, scale: float = SCALE) -> None:
        """One complex vector for each predicate."""
        super().__init__()
        refuse_wide("complex", predicates)
        self.dim, self.constant_dim = dim, 2 * dim
        self.vectors = nn.Parameter(torch.randn(len(predicates), 2 * dim) * scale)

    def predicate_vectors(self, predicates: Int64[Tensor, " atoms"]) -> Float[Tensor, "atoms _"]:
        """r_P."""
        return self.vectors[predicates]

    def formula(self, predicates: Int64[Tensor, " atoms"], constants: Constants) -> Float[Tensor, "atoms dim"]:
        """Emb^0(a)."""
        return _real_product(self.vectors[predicates], constants)

    def grid(self, predicates: Int64[Tensor, " n"], constants: Sequence[Float[Tensor, "_ constant_dim"]]) -> GridParts:
        """Real and imaginary parts of c_1 conj(c_2), times the predicate's two diagonals."""
        return _complex_grid(self.vectors[predicates], constants)

    def asking(self, predicates: Int64[Tensor, " rows"], position: int, given: Given) -> Asking:
        """r_P * c_1, or the conjugate of r_P * conj(c_2)."""
        return _complex_asking(self.vectors[predicates], position, given)


class RotatE(_ComplexFormula):
    """Re(r_P * c_1 * conj(c_2)) with |r_P| = 1: the alignment of the rotated c_1 with c_2.

    The modulus |r_P c_1 - c_2| of the original is near zero for every true atom, and would lose its identity.
    """

    def __init__(self, predicates: Sequence[Predicate], dim: int, scale: float = SCALE) -> None:
        """One angle for each predicate and component."""
        super().__init__()
        refuse_wide("rotate", predicates)
        self.dim, self.constant_dim = dim, 2 * dim
        self.angles = nn.Parameter(torch.randn(len(predicates), dim) * scale)

    def predicate_vectors(self, predicates: Int64[Tensor, " atoms"]) -> Float[Tensor, "atoms _"]:
        """r_P."""
        return self._vectors(predicates)

    def formula(self, predicates: Int64[Tensor, " atoms"], constants: Constants) -> Float[Tensor, "atoms dim"]:
        """Emb^0(a)."""
        return _real_product(self._vectors(predicates), constants)

    def _vectors(self, predicates: Tensor) -> Tensor:
        angles = self.angles[predicates]
        return torch.cat([torch.cos(angles), torch.sin(angles)], dim=-1)

    def grid(self, predicates: Int64[Tensor, " n"], constants: Sequence[Float[Tensor, "_ constant_dim"]]) -> GridParts:
        """As ComplEx."""
        return _complex_grid(self._vectors(predicates), constants)

    def asking(self, predicates: Int64[Tensor, " rows"], position: int, given: Given) -> Asking:
        """As ComplEx."""
        return _complex_asking(self._vectors(predicates), position, given)


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


INPUTS: dict[str, Callable[..., AtomEmbedding[Any]]] = {
    "distmult": DistMult,
    "complex": ComplEx,
    "transe": TransE,
    "rotate": RotatE,
    "mlp": AtomMLP,
}
"""Input layers that read vectors of constants; `pair` reads their features themselves."""


def make_input(
    knowledge: KnowledgeBase,
    options: ModelOptions,
    *,
    encoders: Mapping[str, nn.Module] | None = None,
    new: Sequence[int] | Int64[np.ndarray, " new"] = (),
) -> tuple[ConstantEmbedding, AtomEmbedding[Any]]:
    """Emb(c) and Emb^0(a); constants with features are encoded, the others have learned vectors.

    Only `new` constants (ids), which a language got after the training, have none if they have no features.
    """
    language, dim = knowledge.language, options.dim
    count, dropout = len(language.constants), options.constant_dropout
    channels = make_channels(knowledge, encoders or {}, options, new=new)
    if options.input == "pair":
        read = [channel for of_domain in channels.values() for channel in of_domain]
        constants = ConstantEmbedding(count, dim, dropout=dropout, without=read, new=new)
        return constants, PairEmbedding(language, read, constants, options)
    scale = options.init_scale
    scaled = {} if options.input == "mlp" else {"scale": scale}
    atom_embedding = INPUTS[options.input](language.predicates, dim, **scaled)
    size, hidden = atom_embedding.constant_dim, options.encoder_dim or dim
    made = [
        FeatureEncoder(of_domain, size, hidden=hidden, dropout=options.encoder_dropout)
        for of_domain in channels.values()
    ]
    return ConstantEmbedding(count, size, dropout=dropout, scale=scale, encoders=made, new=new), atom_embedding
