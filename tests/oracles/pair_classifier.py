"""The pair classifier in plain loops, atom by atom, with every feature written out."""

import math
from itertools import combinations

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from r2n.network.constant_embedding import ConstantEmbedding, ModuleChannel, VectorChannel, WordChannel
from r2n.network.pair_embedding import PairEmbedding
from tests.oracles.feature_rerun import common_prefix, words_of


def feature(embedding: PairEmbedding, constants: ConstantEmbedding, channel: int, constant: int) -> Tensor | None:
    """The vector of a constant in a channel, or None."""
    row = int(embedding.row_of[channel, constant])
    if row < 0:
        return None
    if channel == len(embedding.channels):
        return constants.vectors[row]
    found = embedding.channels[channel]
    if isinstance(found, WordChannel):
        return torch.from_numpy(found.bags.known.toarray()[row])
    assert isinstance(found, VectorChannel | ModuleChannel)
    return found(torch.tensor([row]))[0]


def counts(embedding: PairEmbedding, channel: int, one: int, other: int) -> Tensor:
    """Words in both texts, words in one, Jaccard; of characters the similarities of trigrams and of prefixes."""
    found = embedding.channels[channel]
    assert isinstance(found, WordChannel)
    rows = [int(embedding.row_of[channel, constant]) for constant in (one, other)]
    named = dict(enumerate(found.bags.tokens))
    sets = [{named[i] for i, value in enumerate(found.bags.every.toarray()[row]) if value} for row in rows]
    if found.bags.token == "char":
        first, second = ({name for name in part if len(name) == 3} for part in sets)
        plain = [" ".join(words_of(found.bags.texts[row])) for row in rows]
        same = common_prefix(*plain) / max(1, *map(len, plain))
        shared, both = len(first & second), len(first) + len(second)
        return torch.tensor([shared / max(1, both - shared), 2 * shared / max(1, both), same])
    shared, union = len(sets[0] & sets[1]), len(sets[0] | sets[1])
    return torch.tensor([math.log1p(shared), math.log1p(union - shared), shared / max(1, union)])


def embed(embedding: PairEmbedding, constants: ConstantEmbedding, predicate: int, arguments: list[int]) -> Tensor:
    """Emb^0 of one atom; the network is in evaluation."""
    total = embedding.bias[0].clone()
    for channel in range(len(embedding.channels) + 1):
        values = [feature(embedding, constants, channel, constant) for constant in arguments]
        has_one = [i for i, value in enumerate(values) if value is not None]
        for i in has_one:
            if len(has_one) == 1:
                total = total + times(values[i], embedding.first[f"shared-channel{channel}-at{i}"])
        for i, j in combinations(has_one, 2):
            key = f"shared-channel{channel}-at{i}at{j}"
            total = total + times(together(values[i], values[j]), embedding.first[key])
            if key in embedding.counts:
                total = total + counts(embedding, channel, arguments[i], arguments[j]) @ embedding.counts[key]
    linear = embedding.second[predicate].layers[0]  # pyright: ignore
    assert isinstance(linear, nn.Linear)
    return relu(linear.weight @ relu(total) + linear.bias)


def times(values: Tensor | None, weight: Tensor) -> Tensor:
    assert values is not None
    return torch.stack([value * weight[k] for k, value in enumerate(values)]).sum(0)


def together(one: Tensor | None, other: Tensor | None) -> Tensor:
    assert one is not None
    assert other is not None
    return torch.cat([(one - other).abs(), one * other])
