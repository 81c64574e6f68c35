"""Tensors -> predictions: Emb^0(a) as a hidden layer of a classifier that reads the features of an atom's constants.

    Emb^0(P(c_1, ..., c_n)) = relu(W_P relu(sum of terms + b) + b_P)        score: a linear head of P on it

With `pair` = "concatenate" there is a term A_i f(c_i) for each position. Otherwise constants with the same features f
are compared, two by two: "difference" has |f(c_i) - f(c_j)|, "product" f(c_i) * f(c_j), "symmetric" both; for texts
each has also how many words they share, in how many they differ, and their Jaccard similarity. "all" has both, and each
constant by itself. A constant with nothing to compare it to (the only one, or of another domain) is read by itself.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn.functional import dropout, relu

from r2n.knowledge.options import ModelOptions
from r2n.logic.language import Language
from r2n.model.channels import Channel, DenseChannel, WordChannel
from r2n.model.constant_embedding import ConstantEmbedding, glorot
from r2n.model.mlp import MLP
from r2n.model.pair_layout import COUNTS, Block, PairLayout, Term, lay_out, possible_terms

KINDS: dict[str, tuple[str, ...]] = {
    "concatenate": (),
    "difference": ("difference",),
    "product": ("product",),
    "symmetric": ("difference", "product"),
    "all": ("difference", "product"),
}


class PairEmbedding(nn.Module):
    """The pair classifier: its second hidden layer is the atom embedding.

    `sharing` says what predicates have in common: nothing, the first map, or both maps. The head is each one's own.
    """

    place: Tensor
    grids = rows = None

    def __init__(
        self, language: Language, channels: Sequence[Channel], constants: ConstantEmbedding, options: ModelOptions
    ) -> None:
        """`constants` has the learned vectors of those without features; they are a channel too, the last one."""
        super().__init__()
        dim, hidden = options.dim, options.encoder_dim or options.dim
        pair, sharing = options.pair, options.shared_encoder
        self.dim, self.constant_dim, self.dropout = dim, constants.dim, options.encoder_dropout
        self.kinds, self.shared = KINDS[pair], sharing
        self.channels = nn.ModuleList(channels)
        self.place = torch.stack([*(channel.place for channel in channels), constants.place])
        self.pairs_only = pair not in ("concatenate", "all")
        self.terms = possible_terms(
            _holds(language, self.place), paired=bool(self.kinds), each=not self.pairs_only, own=sharing == "none"
        )
        predicates = len(language.predicates)
        self.first = nn.ParameterDict({term.key: glorot(self._inputs(term), hidden) for term in self.terms})
        self.counts = nn.ParameterDict(
            {
                term.key: glorot(COUNTS, hidden)
                for term in self.terms
                if self._is_words(term) and len(term.positions) > 1
            }
        )
        self.bias = nn.Parameter(torch.zeros(predicates if sharing == "none" else 1, hidden))
        copies = 1 if sharing == "all" else predicates
        self.second = nn.ModuleList([MLP((hidden, dim), last_relu=True) for _ in range(copies)])
        self.head = nn.Parameter(nn.init.xavier_uniform_(torch.empty(max(1, predicates), dim)))
        self.head_bias = nn.Parameter(torch.zeros(max(1, predicates)))

    def _is_words(self, term: Term) -> bool:
        return term.channel < len(self.channels) and isinstance(self.channels[term.channel], WordChannel)

    def _inputs(self, term: Term) -> int:
        channel = self.channels[term.channel] if term.channel < len(self.channels) else None
        size = channel.size if isinstance(channel, Channel) else self.constant_dim
        return size * (len(self.kinds) if len(term.positions) > 1 else 1)

    def lay_out(
        self,
        predicates: Int64[Tensor, " atoms"],
        arguments: Int64[Tensor, "atoms positions"],
        constants: ConstantEmbedding,
    ) -> PairLayout:
        """Atoms of one arity, laid out once for all passes."""
        bags = {c: channel.bags for c, channel in enumerate(self.channels) if isinstance(channel, WordChannel)}
        places = self.place[:, arguments]
        return lay_out(bags, self.terms, self.kinds, predicates, places, pairs_only=self.pairs_only)

    def forward(self, layout: PairLayout, constants: ConstantEmbedding) -> Float[Tensor, "atoms dim"]:
        """Emb^0(a)."""
        vectors = {c: self._vectors(c, rows, constants) for c, rows in layout.used.items()}
        kept = {c: channel.kept_words() for c, channel in enumerate(self.channels) if isinstance(channel, WordChannel)}
        hidden = self.bias[layout.predicates] if self.shared == "none" else self.bias.expand(len(layout.predicates), -1)
        for block in layout.blocks:
            term = self._words(block, kept) if block.term.channel in kept else self._dense(block, vectors)
            is_whole = len(block.atoms) == len(hidden)
            hidden = hidden + term if is_whole else hidden.index_add(0, block.atoms, term)
        hidden = dropout(relu(hidden), self.dropout, self.training)
        return dropout(self._second(hidden, layout), self.dropout, self.training)

    def _vectors(self, channel: int, rows: Tensor, constants: ConstantEmbedding) -> Tensor:
        if channel == len(self.channels):
            return constants.learned()[rows]
        module = self.channels[channel]
        assert isinstance(module, DenseChannel)
        return module(rows)

    def _words(self, block: Block, kept: dict[int, Tensor | None]) -> Tensor:
        channel, weight = self.channels[block.term.channel], self.first[block.term.key]
        assert isinstance(channel, WordChannel)
        if block.words is None:
            return channel.times(weight[: channel.size], kept[block.term.channel])[block.rows[:, 0]]
        mask = kept[block.term.channel]
        weight = weight if mask is None else weight * mask.repeat(len(self.kinds)).unsqueeze(1)
        assert block.counts is not None
        return torch.addmm(block.words.times(weight), block.counts.to(weight), self.counts[block.term.key])

    def _dense(self, block: Block, vectors: dict[int, Tensor]) -> Tensor:
        read, weight = vectors[block.term.channel], self.first[block.term.key]
        if len(block.term.positions) == 1:
            return (read @ weight)[block.rows[:, 0]]
        one, other = read[block.rows[:, 0]], read[block.rows[:, 1]]
        made = {"difference": (one - other).abs, "product": lambda: one * other}
        return torch.cat([made[kind]() for kind in self.kinds], 1) @ weight

    def _second(self, hidden: Tensor, layout: PairLayout) -> Tensor:
        if self.shared == "all":
            return self.second[0](hidden)
        if len(layout.by_predicate) == 1:
            return self.second[layout.by_predicate[0][0]](hidden)
        embedding = hidden.new_zeros(len(hidden), self.dim)
        for index, rows in layout.by_predicate:
            embedding = embedding.index_copy(0, rows, self.second[index](hidden[rows]))
        return embedding

    def score(
        self, embedding: Float[Tensor, "atoms dim"], predicates: Int64[Tensor, " atoms"]
    ) -> Float[Tensor, " atoms"]:
        """The classifier's own answer, a logit."""
        return (embedding * self.head[predicates]).sum(1) + self.head_bias[predicates]


def _holds(language: Language, place: Tensor) -> list[list[list[tuple[bool, bool]]]]:
    """For each predicate, position and channel: can there be a constant with the channel, and one without?

    A constant with no channel at all is new to the network, and does not count: its atoms are blanked.
    """
    inside = place.numpy() >= 0
    members = {domain: np.asarray(language.members(domain)) for domain in language.domains}
    of_domain = {domain: inside[:, ids[inside[:, ids].any(0)]] for domain, ids in members.items()}
    return [
        [[(bool(row.any()), bool((~row).any())) for row in of_domain[domain]] for domain in predicate.domains]
        for predicate in language.predicates
    ]
