"""Tensors -> predictions: constants as they would be without a part of their features, read by the same weights.

A *variant* of a constant is a constant of its own for the input layer, behind all others: the n-th has their number
plus n for its id.
"""

import re
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from r2n.knowledge.words import WORD
from r2n.model.atom_embedding import AtomEmbedding
from r2n.model.channels import Channel, ModuleChannel, VectorChannel, WordChannel
from r2n.model.constant_embedding import ConstantEmbedding
from r2n.model.pair_embedding import PairEmbedding
from r2n.model.r2n import R2N

WORDS_OF_A_BAG = 256
WORDS_OF_A_TEXT = 64  # of one that a caller's module reads

_WORD_AND_BLANKS = re.compile(rf"({WORD})\s*")


@dataclass(frozen=True, slots=True)
class Variant:
    """A constant (by its id in the training) without a part of what a channel (by number) gives it.

    The part is a word of its text, all occurrences of it; or (None) all: what the channel gives is 0.
    """

    constant: int
    channel: int
    word: str | None = None


def channels_of(model: nn.Module) -> list[Channel]:
    """The channels that a network reads, in order."""
    return [part for part in model.modules() if isinstance(part, Channel)]


def variants_of(model: R2N, constant: int) -> list[Variant]:
    """A constant without each word of its text, and (vectors, a caller's module) without what a channel gives it.

    Of a longer text `WORDS_OF_A_BAG` words are taken, first those of the vocabulary; of one that a caller's module
    reads the first `WORDS_OF_A_TEXT`, and none where it is the only word, for no module is given an empty text.
    """
    found: list[Variant] = []
    for number, channel in enumerate(channels_of(model)):
        row = int(channel.place[constant])
        if row < 0:
            continue
        if not isinstance(channel, WordChannel):
            found.append(Variant(constant, number))
        found += [Variant(constant, number, word) for word in _words(channel, row)]
    return found


def _words(channel: Channel, row: int) -> list[str]:
    if isinstance(channel, WordChannel):
        bags = channel.bags
        every = bags.every.indices[bags.every.indptr[row] : bags.every.indptr[row + 1]]
        ordered = every[np.lexsort((every, ~np.isin(every, bags.columns)))]
        return [bags.words[i] for i in ordered[:WORDS_OF_A_BAG]]
    if isinstance(channel, ModuleChannel) and channel.texts is not None:
        words = list(dict.fromkeys(word.lower() for word in re.findall(WORD, channel.texts[row])))
        return words[:WORDS_OF_A_TEXT] if len(words) > 1 else []
    return []


def without_word(text: str, word: str) -> str:
    """The text without all occurrences of a word, in any case, and the blanks behind them."""
    return _WORD_AND_BLANKS.sub(lambda found: "" if found[1].lower() == word else found[0], text)


@dataclass(frozen=True, eq=False)
class VariedInput:
    """An input layer with the weights of a network, for some of its constants and for variants of them."""

    constants: ConstantEmbedding
    atom_embedding: AtomEmbedding[Any]

    @classmethod
    def of(cls, model: R2N, read: Int64[np.ndarray, " _"], variants: Sequence[Variant]) -> "VariedInput":
        """That of a network; `read` are the constants (ids of the training) that are read as they are, ascending."""
        own, count = torch.from_numpy(read), len(model.constants.place)
        like = torch.cat([own, torch.tensor([variant.constant for variant in variants], dtype=torch.int64)])
        ids = torch.cat([own, count + torch.arange(len(variants))])
        parts = (model.constants, model.atom_embedding)
        # whatever is in the memo is not copied: it is put in the place of what has the id
        memo: dict[int, Any] = {id(weight): weight for part in parts for weight in part.parameters()}
        silent, places = [], []
        for number, channel in enumerate(channels_of(model)):
            rows = channel.place[like]
            has_one = (rows >= 0).nonzero().flatten()
            lacking = [None] * len(own) + [variant if variant.channel == number else None for variant in variants]
            part = _Part(ids[has_one], count + len(variants), rows[has_one], [lacking[i] for i in has_one.tolist()])
            memo |= part.replaced(channel)
            places.append(part.place)
            silent.append(part.silent)
        place = torch.cat([model.constants.place, model.constants.place[like[len(own) :]]])
        memo[id(model.constants.place)] = place
        if isinstance(model.atom_embedding, PairEmbedding):
            memo[id(model.atom_embedding.place)] = torch.stack([*places, place])
        copied = deepcopy(parts, memo)
        channels = channels_of(nn.ModuleList([part for part in copied if isinstance(part, nn.Module)]))
        for channel, rows in zip(channels, silent, strict=True):
            if isinstance(channel, ModuleChannel):
                channel.register_forward_hook(_silencing(rows.to(model.device)))
        return cls(*copied)

    def embed(
        self, predicates: Int64[np.ndarray, " atoms"], arguments: Int64[np.ndarray, "atoms positions"]
    ) -> Float[Tensor, "atoms dim"]:
        """Emb^0 of atoms given by their predicates (by index) and constants (ids, padded with -1)."""
        device = self.constants.vectors.device
        embedding = self.constants.vectors.new_zeros(len(predicates), self.atom_embedding.dim)
        arity = (arguments >= 0).sum(1)
        for n in np.unique(arity).tolist():
            rows = np.flatnonzero(arity == n)
            index, chosen = torch.from_numpy(predicates[rows]), torch.from_numpy(arguments[rows, :n])
            laid_out = self.atom_embedding.lay_out(index, chosen, self.constants).to(device)
            embedding[torch.from_numpy(rows).to(device)] = self.atom_embedding(laid_out, self.constants)
        return embedding


@dataclass(frozen=True, eq=False)
class _Part:
    """What is read of a channel: for each of some constants (ids, of so many) a row of it, without something or not."""

    ids: Int64[Tensor, " rows"]
    of: int
    rows: Int64[Tensor, " rows"]
    lacking: list[Variant | None]

    @property
    def place(self) -> Tensor:
        place = torch.full((self.of,), -1)
        place[self.ids] = torch.arange(len(self.ids))
        return place

    @property
    def silent(self) -> Tensor:
        return torch.tensor(
            [lacking is not None and lacking.word is None for lacking in self.lacking], dtype=torch.bool
        )

    @property
    def words(self) -> list[str | None]:
        return [None if lacking is None else lacking.word for lacking in self.lacking]

    def replaced(self, channel: Channel) -> dict[int, Any]:
        """The parts of a channel, by id, with what stands in for them: the channel itself, or what it holds."""
        if isinstance(channel, WordChannel):
            place = {word: i for i, word in enumerate(channel.bags.words)}
            without = np.array([-1 if word is None else place[word] for word in self.words], np.int64)
            bags = channel.bags.taken(self.rows.numpy(), without)
            made = WordChannel(self.ids.numpy(), self.of, bags, word_dropout=channel.word_dropout)
            return {id(channel): made.eval().to(channel.get_buffer("by_row0").device), id(channel.place): made.place}
        found: dict[int, Any] = {id(channel.place): self.place}
        vectors = channel.vectors
        if isinstance(vectors, Tensor):
            taken = vectors[self.rows.to(vectors.device)]
            if isinstance(channel, VectorChannel):
                taken[self.silent.to(vectors.device)] = 0
            found[id(vectors)] = taken
        if isinstance(channel, ModuleChannel):
            found[id(channel.module)] = channel.module
            if channel.texts is not None:
                pairs = zip([channel.texts[row] for row in self.rows], self.words, strict=True)
                found[id(channel.texts)] = tuple(t if word is None else without_word(t, word) for t, word in pairs)
        return found


def _silencing(silent: Tensor) -> Any:
    """Makes 0 of what a module gives for some rows."""

    def hook(_: nn.Module, given: tuple[Tensor, ...], out: Tensor) -> Tensor:
        return out.masked_fill(silent[given[0]].unsqueeze(1), 0.0)

    return hook
