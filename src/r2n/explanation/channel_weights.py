"""A trained network, explained: which weights read a channel of features; without them the channel is left out.

The first map of an input layer is linear, so a channel whose weights are 0 is as if it gave 0 to every constant. Of
texts that are read two by two, what they are compared by is left out apart: their difference, product and overlap.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Int64
from torch import nn

from r2n.model.channels import Channel, ModuleChannel, WordChannel
from r2n.model.constant_embedding import FeatureEncoder
from r2n.model.layout import Layout
from r2n.model.pair_embedding import PairEmbedding
from r2n.model.pair_layout import COUNTS, PairLayout, Term
from r2n.model.r2n import R2N

Slices = tuple[tuple[str, int, int], ...]
"""Weights by name, each from a row to a row."""
PAIR = "pair"
CONSTANT = "each constant"


def channel_weights(model: R2N, layout: Layout, constants: Int64[np.ndarray, " _"]) -> dict[tuple[str, str], Slices]:
    """For each channel by which the atoms of a graph are read: what it is, where it is read, and the weights for it.

    `constants` are those of the atoms, by the ids of the training. A module of the caller without any weights behind it
    is no channel here.
    """
    found: dict[tuple[str, str], Slices] = {}
    embedding = model.atom_embedding
    if isinstance(embedding, PairEmbedding):
        terms = {
            block.term: None for _, laid in layout.by_arity if isinstance(laid, PairLayout) for block in laid.blocks
        }
        for term in terms:
            for key, slices in _of_term(embedding, term):
                found[key] = (*found.get(key, ()), slices)
    for i, encoder in enumerate(model.constants.encoders):
        assert isinstance(encoder, FeatureEncoder)
        if bool((encoder.place[constants] >= 0).any()):
            for j, (channel, weight) in enumerate(zip(encoder.channels, encoder.first, strict=False)):
                found[f"channel '{_name(channel)}'", CONSTANT] = (
                    (f"constants.encoders.{i}.first.{j}", 0, len(weight)),
                )
    return found


def _of_term(embedding: PairEmbedding, term: Term) -> Iterator[tuple[tuple[str, str], tuple[str, int, int]]]:
    """What a term reads, where, and the weights for it."""
    is_learned = term.channel == len(embedding.channels)
    channel = None if is_learned else embedding.channels[term.channel]
    name = "learned vectors" if channel is None else _name(channel)
    first, is_pair = f"atom_embedding.first.{term.key}", len(term.positions) > 1
    if isinstance(channel, WordChannel) and is_pair:
        for i, kind in enumerate(embedding.kinds):
            yield (f"channel '{kind} of {name}'", PAIR), (first, i * channel.size, (i + 1) * channel.size)
        yield (f"channel 'overlap of {name}'", PAIR), (f"atom_embedding.counts.{term.key}", 0, COUNTS)
    else:
        where = PAIR if is_pair else f"position {term.positions[0] + 1}"
        yield (f"channel '{name}'", where), (first, 0, len(embedding.first[term.key]))


def _name(channel: nn.Module) -> str:
    assert isinstance(channel, Channel)
    kind = "words" if isinstance(channel, WordChannel) else "vectors"
    return f"{channel.domain} {'features' if isinstance(channel, ModuleChannel) else kind}"
