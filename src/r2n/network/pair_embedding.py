"""Atoms of two constants from comparisons of their features."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import torch
from jaxtyping import Float, Int64
from scipy.sparse import csr_array, hstack
from torch import Tensor, nn
from torch.nn.functional import dropout, relu

from r2n.data.features import Bags, pair_counts
from r2n.data.knowledge_base import KnowledgeBase
from r2n.logic.language import Language
from r2n.network.constant_embedding import Channel, ConstantEmbedding, SparseRows, WordChannel, glorot
from r2n.network.input_layers import (
    Arguments,
    AtomEmbedding,
    Embedding,
    Predicates,
    RowsByPredicate,
    Scores,
    rows_by_predicate,
)
from r2n.network.mlp import MLP
from r2n.network.tensors import Tensors
from r2n.options import ModelOptions

KINDS = ("difference", "product")  # the comparisons of two constants: |a - b| and a * b
COUNTS = 3  # of two texts, by words or by characters: `pair_counts`


@dataclass(frozen=True, slots=True)
class Term:
    """A channel (by number), and the one or two positions it is read at."""

    channel: int
    positions: tuple[int, ...]

    @property
    def key(self) -> str:
        """A name for its weights."""
        return f"shared-channel{self.channel}-" + "".join(f"at{i}" for i in self.positions)


@dataclass(frozen=True, eq=False)
class Block(Tensors):
    """The atoms (rows) with a term, and its inputs: rows of its channel, or the words of two texts."""

    term: Term
    atoms: Int64[Tensor, " atoms"]
    rows: Int64[Tensor, "atoms positions"]
    words: SparseRows | None = None
    counts: Float[Tensor, "atoms counts"] | None = None


@dataclass(frozen=True, eq=False)
class PairBatch(Tensors):
    """Atoms of one arity: their number, the rows of each predicate, and their blocks.

    `used[c]` holds the rows of channel c that the blocks need, and the blocks' rows point into it; channels of words
    have all rows.
    """

    count: int
    by_predicate: RowsByPredicate
    blocks: tuple[Block, ...]
    used: dict[int, Int64[Tensor, " _"]]


ChannelRows = Int64[Tensor, "channels atoms positions"]


def collate_pairs(
    bags: Mapping[int, Bags], terms: Sequence[Term], predicates: Predicates, rows: ChannelRows
) -> PairBatch:
    """Collate atoms; `rows` are those of their constants in each channel, -1 if it has none.

    `bags` are those of the channels of words. A constant that is compared is not read by itself too.
    """
    arity = rows.shape[2]
    blocks: list[Block] = []
    for term in terms:
        if max(term.positions) >= arity:
            continue
        of_channel = rows[term.channel]
        has_term = (of_channel[:, list(term.positions)] >= 0).all(1)
        if len(term.positions) == 1:  # a constant at another position makes it a pair
            has_term &= (of_channel[:, [i for i in range(arity) if i != term.positions[0]]] < 0).all(1)
        atoms = has_term.nonzero().flatten()
        if len(atoms):
            block = Block(term, atoms, of_channel[atoms][:, list(term.positions)])
            if len(term.positions) > 1 and term.channel in bags:
                left, right = block.rows[:, 0].numpy(), block.rows[:, 1].numpy()
                words = SparseRows.from_matrix(pair_of_bags(bags[term.channel].known, left, right))
                counts = torch.from_numpy(pair_counts(bags[term.channel], left, right))
                block = replace(block, words=words, counts=counts)
            blocks.append(block)
    dense = dict.fromkeys(block.term.channel for block in blocks if block.term.channel not in bags)
    used = {c: torch.cat([block.rows.flatten() for block in blocks if block.term.channel == c]).unique() for c in dense}
    local = tuple(
        replace(block, rows=torch.searchsorted(used[block.term.channel], block.rows.contiguous()))
        if block.term.channel in used
        else block
        for block in blocks
    )
    return PairBatch(len(predicates), rows_by_predicate(predicates), local, used)


def pair_of_bags(bags: csr_array, left: np.ndarray, right: np.ndarray) -> csr_array:
    """|a - b| and a * b of the bags of two texts each, next to each other."""
    one, other = bags[left], bags[right]
    joined = csr_array(hstack([abs(one - other), one.multiply(other)], format="csr"))
    joined.eliminate_zeros()
    return joined


def _possible_terms(language: Language, rows: Tensor) -> list[Term]:
    """The terms that atoms may have, by the channels of the constants that their positions can hold.

    A constant with no channel at all is new to the network, and does not count: its atoms are masked.
    """
    inside = rows.numpy() >= 0
    of_domain = {}  # for each channel: can there be a constant with it, and one without?
    for domain in language.domains:
        ids = np.asarray(language.members(domain))
        known = inside[:, ids[inside[:, ids].any(0)]]
        of_domain[domain] = known.any(1), (~known).any(1)
    found: dict[Term, None] = {}
    for predicate in language.predicates:
        positions = [of_domain[domain] for domain in predicate.domains]
        for c in range(len(rows)):
            some = [i for i, (has_one, _) in enumerate(positions) if has_one[c]]
            for i in some:
                if all(lacks[c] for j, (_, lacks) in enumerate(positions) if j != i):
                    found[Term(c, (i,))] = None
            found |= dict.fromkeys(Term(c, pair) for pair in combinations(some, 2))
    return list(found)


class PairEmbedding(AtomEmbedding):
    """The pair classifier: its second hidden layer is the atom embedding.

    Predicates share the first map; each has a second map and a head of its own.
    """

    row_of: Tensor

    def __init__(
        self, knowledge: KnowledgeBase, channels: Sequence[Channel], constants: ConstantEmbedding, options: ModelOptions
    ) -> None:
        """`constants` has the learned vectors of those without features; they are a channel too, the last one."""
        super().__init__()
        language, dim, hidden = knowledge.language, options.dim, options.encoder_dim or options.dim
        self.dim, self.constant_dim, self.dropout = dim, constants.dim, options.encoder_dropout
        self.channels = nn.ModuleList(channels)
        self.row_of = torch.stack([*(channel.row_of for channel in channels), constants.row_of])
        self.terms = _possible_terms(language, self.row_of)
        predicates, sizes = len(language.predicates), [*(channel.size for channel in channels), self.constant_dim]
        words = {c for c, channel in enumerate(channels) if isinstance(channel, WordChannel)}
        paired = {term.key for term in self.terms if len(term.positions) > 1}
        inputs = {term.key: sizes[term.channel] * (len(KINDS) if term.key in paired else 1) for term in self.terms}
        self.first = nn.ParameterDict({key: glorot(size, hidden) for key, size in inputs.items()})
        counted = [term.key for term in self.terms if term.channel in words and term.key in paired]
        self.counts = nn.ParameterDict({key: glorot(COUNTS, hidden) for key in counted})
        self.bias = nn.Parameter(torch.zeros(1, hidden))
        self.second = nn.ModuleList([MLP((hidden, dim), last_relu=True) for _ in range(predicates)])
        self.head = nn.Parameter(nn.init.xavier_uniform_(torch.empty(max(1, predicates), dim)))
        self.head_bias = nn.Parameter(torch.zeros(max(1, predicates)))

    def collate(self, predicates: Predicates, arguments: Arguments, constants: ConstantEmbedding) -> PairBatch:
        """Atoms of one arity, collated once for all passes."""
        bags = {c: channel.bags for c, channel in enumerate(self.channels) if isinstance(channel, WordChannel)}
        return collate_pairs(bags, self.terms, predicates, self.row_of[:, arguments])

    def forward(self, atoms: PairBatch, constants: ConstantEmbedding) -> Embedding:
        """Emb^0(a)."""
        vectors = {
            c: self.channels[c](rows) if c < len(self.channels) else constants.learned()[rows]
            for c, rows in atoms.used.items()
        }
        kept = {c: channel.kept_words() for c, channel in enumerate(self.channels) if isinstance(channel, WordChannel)}
        hidden = self.bias.expand(atoms.count, -1)
        for block in atoms.blocks:
            term = self._words(block, kept) if block.term.channel in kept else self._dense(block, vectors)
            has_all = len(block.atoms) == len(hidden)
            hidden = hidden + term if has_all else hidden.index_add(0, block.atoms, term)
        hidden = dropout(relu(hidden), self.dropout, self.training)
        if len(atoms.by_predicate) == 1:
            embedding = self.second[atoms.by_predicate[0][0]](hidden)
        else:
            embedding = hidden.new_zeros(len(hidden), self.dim)
            for index, rows in atoms.by_predicate:
                embedding = embedding.index_copy(0, rows, self.second[index](hidden[rows]))
        return dropout(embedding, self.dropout, self.training)

    def _words(self, block: Block, kept: dict[int, Tensor | None]) -> Tensor:
        channel, weight = self.channels[block.term.channel], self.first[block.term.key]
        assert isinstance(channel, WordChannel)
        mask = kept[block.term.channel]
        if block.words is None or block.counts is None:
            return channel.times(weight[: channel.size], mask)[block.rows[:, 0]]
        weight = weight if mask is None else weight * mask.repeat(len(KINDS)).unsqueeze(1)
        return torch.addmm(block.words.times(weight), block.counts.to(weight), self.counts[block.term.key])

    def _dense(self, block: Block, vectors: dict[int, Tensor]) -> Tensor:
        read, weight = vectors[block.term.channel], self.first[block.term.key]
        if len(block.term.positions) == 1:
            return (read @ weight)[block.rows[:, 0]]
        one, other = read[block.rows[:, 0]], read[block.rows[:, 1]]
        return torch.cat([(one - other).abs(), one * other], 1) @ weight

    def score(self, embedding: Embedding, predicates: Predicates) -> Scores:
        """The classifier's logit."""
        return (embedding * self.head[predicates]).sum(1) + self.head_bias[predicates]
