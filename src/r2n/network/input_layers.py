"""Input layers: Emb^0(a), the embeddings of atoms, from those of their constants."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from r2n.components import input_layers
from r2n.data.knowledge_base import KnowledgeBase
from r2n.data.validation import check_arity
from r2n.logic.language import Predicate
from r2n.network.constant_embedding import ConstantBatch, ConstantEmbedding, FeatureEncoder, Ids, make_channels
from r2n.network.mlp import MLP
from r2n.network.tensors import Tensors
from r2n.options import ModelOptions

SCALE = 0.3  # standard deviation of the predicates' vectors at the start

Predicates = Int64[Tensor, " atoms"]
"""Predicates of atoms, by index."""
Arguments = Int64[Tensor, "atoms positions"]
"""Constants of atoms, by id."""
Constants = Float[Tensor, "atoms positions constant_dim"]
Embedding = Float[Tensor, "atoms dim"]
Scores = Float[Tensor, " atoms"]
RowPredicates = Int64[Tensor, " rows"]
Given = Float[Tensor, "rows positions constant_dim"]
Asking = Float[Tensor, "rows constant_dim"]
Candidates = Float[Tensor, "candidates constant_dim"]
RowScores = Float[Tensor, "rows candidates"]
GridScores = Float[Tensor, "predicates points"]
PredicateScores = Float[Tensor, "atoms predicates"]
Vectors = Float[Tensor, "_ constant_dim"]
Features = Float[Tensor, "points features"]
Diagonals = Float[Tensor, "predicates features"]
Offsets = Float[Tensor, "predicates dim"]
GridParts = tuple[Features, Diagonals, Offsets]
"""All atoms over a grid of constants."""


RowsByPredicate = tuple[tuple[int, Int64[Tensor, " _"]], ...]
"""The predicates of some atoms, each with the rows of its own."""


def rows_by_predicate(predicates: Predicates) -> RowsByPredicate:
    """The predicates that there are, each with the rows of its atoms."""
    return tuple((i, (predicates == i).nonzero().flatten()) for i in predicates.unique().tolist())


@dataclass(frozen=True, eq=False)
class AtomBatch(Tensors):
    """Atoms of one arity: their predicates and constants, and for some layers the rows of each predicate."""

    predicates: Predicates
    constants: ConstantBatch
    by_predicate: RowsByPredicate = ()


class AtomEmbedding(nn.Module, ABC):
    """f_P: from the constants of atoms to their embeddings, and from these to a score."""

    constant_dim: int
    dim: int
    reads_facts = False  # what is known of other atoms is part of the embedding
    tells_labels = True  # training may have written an atom's label into its embedding: masking hides both

    @property
    def grids(self) -> "GridFormula | None":
        """Itself, if it can embed all atoms over a grid of constants."""
        return self if isinstance(self, GridFormula) else None

    @property
    def rows(self) -> "VectorFormula | None":
        """Itself, if it can score all candidates of a row at once."""
        return self if isinstance(self, VectorFormula) else None

    def collate(self, predicates: Predicates, arguments: Arguments, constants: ConstantEmbedding) -> Tensors:
        """Atoms of one arity, given by their predicates (by index) and their constants (by id), on the CPU."""
        return AtomBatch(predicates, constants.collate(arguments))

    @abstractmethod
    def forward(self, atoms: Any, constants: ConstantEmbedding) -> Embedding:
        """Emb^0(a) of collated atoms."""

    def score(self, embedding: Embedding, predicates: Predicates) -> Scores:
        """The method's own score of atoms of any arity, a logit: by default the sum of the embedding."""
        return embedding.sum(-1)


class NoInput(AtomEmbedding):
    """No constant is embedded, for networks that read facts alone."""

    constant_dim = dim = 0

    def forward(self, atoms: AtomBatch, constants: ConstantEmbedding) -> Embedding:
        """Nothing of each atom."""
        return constants.vectors.new_zeros(len(atoms.predicates), 0)


class AtomMLP(AtomEmbedding):
    """MLP_P of the constants' vectors, one MLP for each predicate of any arity."""

    def __init__(self, predicates: Sequence[Predicate], dim: int, scale: float = SCALE) -> None:
        """One hidden layer of `dim` units, with Glorot weights whatever the `scale`."""
        super().__init__()
        self.constant_dim = self.dim = dim
        self.networks = nn.ModuleList([MLP((predicate.arity * dim, dim, dim)) for predicate in predicates])

    def collate(self, predicates: Predicates, arguments: Arguments, constants: ConstantEmbedding) -> AtomBatch:
        """Atoms of one arity."""
        return AtomBatch(predicates, constants.collate(arguments), rows_by_predicate(predicates))

    def forward(self, atoms: AtomBatch, constants: ConstantEmbedding) -> Embedding:
        """Emb^0(a)."""
        vectors = constants(atoms.constants)
        embedding = vectors.new_zeros(len(atoms.predicates), self.dim)
        for predicate, rows in atoms.by_predicate:
            embedding = embedding.index_copy(0, rows, self.networks[predicate](vectors[rows].flatten(1)))
        return embedding


class VectorFormula(AtomEmbedding):
    """A formula of the vectors of predicate and constants, with one learned vector for each predicate.

    The score of all candidates of a row, an atom with one open position: P(c_1, ..., ?, ..., c_n), is one matrix
    product; by default that of the candidates' vectors with the one of `asking`.
    """

    parts = 1  # numbers in a constant's vector for each dimension of an embedding

    def __init__(self, predicates: Sequence[Predicate], dim: int, scale: float = SCALE) -> None:
        """`scale` is the standard deviation of the vectors at the start."""
        super().__init__()
        self.dim, self.constant_dim = dim, self.parts * dim
        self.make_weights(len(predicates), scale)

    def make_weights(self, predicates: int, scale: float) -> None:
        """One vector for each predicate."""
        self.vectors = nn.Parameter(torch.randn(predicates, self.constant_dim) * scale)

    def predicate_vectors(self, predicates: Int64[Tensor, " n"]) -> Float[Tensor, "n _"]:
        """r_P."""
        return self.vectors[predicates]

    def forward(self, atoms: AtomBatch, constants: ConstantEmbedding) -> Embedding:
        """Emb^0(a)."""
        return self.formula(atoms.predicates, constants(atoms.constants))

    @abstractmethod
    def formula(self, predicates: Predicates, constants: Constants) -> Embedding:
        """Emb^0(a) of atoms given by their predicates and their constants' vectors."""

    @abstractmethod
    def asking(self, predicates: RowPredicates, position: int, given: Given) -> Asking:
        """The vector of each row that a candidate's is compared to, made of all but the open position."""

    def compared(self, asking: Asking, candidates: Candidates) -> RowScores:
        """The scores of the candidates of rows: their products."""
        return asking @ candidates.t()

    def row_scores(self, predicates: RowPredicates, position: int, given: Given, candidates: Candidates) -> RowScores:
        """The score of each row's atom with each candidate at the open position, where `given` is not read."""
        return self.compared(self.asking(predicates, position, given), candidates)

    def predicate_scores(self, predicates: Int64[Tensor, " n"], constants: Constants) -> PredicateScores:
        """The scores of some predicates of the same constants, for each of some atoms."""
        every = predicates.repeat(len(constants))
        found = self.formula(every, constants.repeat_interleave(len(predicates), 0))
        return self.score(found, every).view(len(constants), -1)

    def cubes(self, vectors: Float[Tensor, "*batch _"]) -> Float[Tensor, "*batch _"]:
        """The cubed moduli of the components."""
        return vectors.abs().pow(3)

    def n3(self, predicates: Predicates, constants: Constants) -> Float[Tensor, ""]:
        """N3 of atoms: the mean over them of the cubed moduli of the components of their predicates and constants."""
        return (self.cubes(self.predicate_vectors(predicates)).sum() + self.cubes(constants).sum()) / len(predicates)


class GridFormula(VectorFormula):
    """A formula that is linear in features which all predicates share.

    Emb^0(a) = sum_b features_b * diagonals[P]_b + offsets[P] over one or two blocks b of `dim` features.
    """

    @abstractmethod
    def features(self, constants: Sequence[Tensor]) -> Tensor:
        """The features of atoms, of their constants' vectors at each position, by broadcasting."""

    @abstractmethod
    def maps(self, predicates: Int64[Tensor, " n"]) -> tuple[Diagonals, Offsets]:
        """Diagonals and offsets of some predicates."""

    def grid(self, predicates: Int64[Tensor, " n"], constants: Sequence[Vectors]) -> GridParts:
        """Emb^0 of all atoms of some predicates, over all combinations of the constants' vectors at each position."""
        shapes = [[-1 if i == axis else 1 for i in range(len(constants))] for axis in range(len(constants))]
        sides = [part.view(*shape, part.shape[1]) for part, shape in zip(constants, shapes, strict=True)]
        return self.features(sides).flatten(0, -2), *self.maps(predicates)

    def grid_score(self, features: Features, diagonals: Diagonals, offsets: Offsets) -> GridScores:
        """The score of each of these atoms: the sum of its embedding, without writing it out."""
        return torch.addmm(offsets.sum(-1, keepdim=True), diagonals, features.t())

    def predicate_scores(self, predicates: Int64[Tensor, " n"], constants: Constants) -> PredicateScores:
        """The same by one matrix product."""
        return self.grid_score(self.features(constants.unbind(1)), *self.maps(predicates)).t()


class DistMult(GridFormula):
    """r_P * c_1 * ... * c_n."""

    def formula(self, predicates: Predicates, constants: Constants) -> Embedding:
        """Emb^0(a)."""
        return self.vectors[predicates] * constants.prod(dim=1)

    def features(self, constants: Sequence[Tensor]) -> Tensor:
        """Products of the constants."""
        return reduce(torch.mul, constants)

    def maps(self, predicates: Int64[Tensor, " n"]) -> tuple[Diagonals, Offsets]:
        """The predicate's vector is the diagonal."""
        vectors = self.vectors[predicates]
        return vectors, torch.zeros_like(vectors)

    def asking(self, predicates: RowPredicates, position: int, given: Given) -> Asking:
        """The product of all but the open position."""
        others = torch.cat([given[:, :position], given[:, position + 1 :]], dim=1)
        return self.vectors[predicates] * others.prod(dim=1)


class ComplEx(GridFormula):
    """Re(r_P * c_1 * conj(c_2)), component by component; complex vectors are held as real and imaginary halves."""

    parts = 2

    def formula(self, predicates: Predicates, constants: Constants) -> Embedding:
        """Emb^0(a); unary atoms have no c_2. Written out, this is faster than complex numbers."""
        r_re, r_im = self.predicate_vectors(predicates).chunk(2, dim=-1)
        h_re, h_im = constants[:, 0].chunk(2, dim=-1)
        re, im = r_re * h_re - r_im * h_im, r_re * h_im + r_im * h_re
        if constants.shape[1] == 1:
            return re
        t_re, t_im = constants[:, 1].chunk(2, dim=-1)
        return re * t_re + im * t_im

    def features(self, constants: Sequence[Tensor]) -> Tensor:
        """Real and imaginary part of c_1 conj(c_2)."""
        re, im = constants[0].chunk(2, dim=-1)
        if len(constants) > 1:
            t_re, t_im = constants[1].chunk(2, dim=-1)
            re, im = re * t_re + im * t_im, im * t_re - re * t_im
        return torch.cat([re, im], dim=-1)

    def maps(self, predicates: Int64[Tensor, " n"]) -> tuple[Diagonals, Offsets]:
        """Re(r * c_1 * conj(c_2)) = Re(r) Re(c_1 conj(c_2)) - Im(r) Im(c_1 conj(c_2))."""
        r_re, r_im = self.predicate_vectors(predicates).chunk(2, dim=-1)
        return torch.cat([r_re, -r_im], dim=1), torch.zeros_like(r_re)

    def asking(self, predicates: RowPredicates, position: int, given: Given) -> Asking:
        """The a of a . c, c the open constant: r * c_1, or the conjugate of r * conj(c_2) or of r."""
        r_re, r_im = self.predicate_vectors(predicates).chunk(2, dim=-1)
        if given.shape[1] == 1:
            return torch.cat([r_re, -r_im], dim=-1)
        re, im = given[:, 1 - position].chunk(2, dim=-1)
        if position == 0:
            return torch.cat([r_re * re + r_im * im, r_re * im - r_im * re], dim=-1)
        return torch.cat([r_re * re - r_im * im, r_re * im + r_im * re], dim=-1)

    def cubes(self, vectors: Float[Tensor, "*batch _"]) -> Float[Tensor, "*batch _"]:
        """The cubed moduli of the complex components."""
        re, im = vectors.chunk(2, dim=-1)
        return (re.square() + im.square()).pow(1.5)


class RotatE(ComplEx):
    """Re(r_P * c_1 * conj(c_2)) with |r_P| = 1: the alignment of the rotated c_1 with c_2.

    The modulus |r_P c_1 - c_2| of the original is near zero for every true atom: not an embedding.
    """

    def make_weights(self, predicates: int, scale: float) -> None:
        """One angle for each predicate and component."""
        self.angles = nn.Parameter(torch.randn(predicates, self.dim) * scale)

    def predicate_vectors(self, predicates: Int64[Tensor, " n"]) -> Float[Tensor, "n _"]:
        """r_P."""
        angles = self.angles[predicates]
        return torch.cat([torch.cos(angles), torch.sin(angles)], dim=-1)


class TransE(GridFormula):
    """c_1 + r_P - c_2; the score is a learned margin, that of a perfect match, minus the norm."""

    def make_weights(self, predicates: int, scale: float) -> None:
        """One vector for each predicate, and one margin."""
        super().make_weights(predicates, scale)
        self.margin = nn.Parameter(torch.ones(()))

    def formula(self, predicates: Predicates, constants: Constants) -> Embedding:
        """Emb^0(a)."""
        moved = constants[:, 0] + self.vectors[predicates]
        return moved - constants[:, 1] if constants.shape[1] > 1 else moved

    def score(self, embedding: Embedding, predicates: Predicates) -> Scores:
        """The margin minus its norm."""
        return self.margin - (embedding.square().sum(-1) + 1e-12).sqrt()

    def features(self, constants: Sequence[Tensor]) -> Tensor:
        """Differences of the constants."""
        return constants[0] - constants[1] if len(constants) > 1 else constants[0]

    def maps(self, predicates: Int64[Tensor, " n"]) -> tuple[Diagonals, Offsets]:
        """The predicate's vector is the offset."""
        vectors = self.vectors[predicates]
        return torch.ones_like(vectors), vectors

    def grid_score(self, features: Features, diagonals: Diagonals, offsets: Offsets) -> GridScores:
        """The margin minus the norm of features + offsets, by the square of a sum."""
        squares = features.square().sum(-1) + offsets.square().sum(-1, keepdim=True)
        return self.margin - (torch.addmm(squares, offsets, features.t(), alpha=2).clamp(min=0) + 1e-12).sqrt()

    def asking(self, predicates: RowPredicates, position: int, given: Given) -> Asking:
        """The perfect match: c_1 + r_P, or c_2 - r_P."""
        vectors = self.vectors[predicates]
        if given.shape[1] == 1:
            return -vectors
        return given[:, 0] + vectors if position == 1 else given[:, 1] - vectors

    def compared(self, asking: Asking, candidates: Candidates) -> RowScores:
        """The margin minus the distance from a perfect match, by the square of a sum."""
        # in double precision if the device has it: the score is a small difference of large squares
        wide = asking.dtype if asking.device.type == "mps" else torch.float64
        one, other = asking.to(wide), candidates.to(wide)
        squares = one.square().sum(-1, keepdim=True) + other.square().sum(-1)
        distances = (torch.addmm(squares, one, other.t(), alpha=-2).clamp(min=0) + 1e-12).sqrt()
        return self.margin - distances.to(asking)


def make_input(
    knowledge: KnowledgeBase, options: ModelOptions, *, encoders: Mapping[str, nn.Module] | None = None, new: Ids = ()
) -> tuple[ConstantEmbedding, AtomEmbedding]:
    """Emb(c) and Emb^0(a); constants with features are encoded, the others, unless they are `new`, learned."""
    language, dim, described = knowledge.language, options.dim, input_layers[options.input]
    count, dropout, scale = len(language.constants), options.constant_dropout, options.init_scale
    check_arity(described.name, language.predicates)
    channels = make_channels(knowledge, encoders or {}, options, new=new)
    if described.reads_features:
        read = [channel for of_domain in channels.values() for channel in of_domain]
        constants = ConstantEmbedding(count, dim, dropout=dropout, without=read, new=new)
        return constants, described.load()(knowledge, read, constants, options)
    atom_embedding: AtomEmbedding = described.load()(language.predicates, dim, scale=scale)
    size, hidden = atom_embedding.constant_dim, options.encoder_dim or dim
    made = [
        FeatureEncoder(of_domain, size, hidden=hidden, dropout=options.encoder_dropout)
        for of_domain in channels.values()
    ]
    return ConstantEmbedding(count, size, dropout=dropout, scale=scale, encoders=made, new=new), atom_embedding
