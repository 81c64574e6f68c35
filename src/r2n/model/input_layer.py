"""Tensors -> predictions: the input layer of a name: how constants become vectors, and atoms embeddings."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Int64
from torch import nn

from r2n.errors import ConfigError, nearest
from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.knowledge.words import WordWeights
from r2n.model.atom_embedding import AtomMLP, ComplEx, DistMult, RotatE, TransE
from r2n.model.channels import make_channels
from r2n.model.constant_embedding import ConstantEmbedding, FeatureEncoder
from r2n.model.pair_embedding import Pair, PairEmbedding, Sharing

INPUTS = {"distmult": DistMult, "complex": ComplEx, "transe": TransE, "rotate": RotatE, "mlp": AtomMLP}
PAIR = "pair"


def make_input(
    knowledge: KnowledgeBase,
    input: str,
    dim: int,
    *,
    constant_dropout: float = 0.0,
    encoders: Mapping[str, nn.Module] | None = None,
    encoder_dim: int | None = None,
    encoder_dropout: float = 0.0,
    pair: Pair = "symmetric",
    shared_encoder: Sharing = "first",
    word_weights: WordWeights = "binary",
    word_min_texts: int = 1,
    word_dropout: float = 0.0,
    new: Sequence[int] | Int64[np.ndarray, " new"] = (),
) -> tuple[ConstantEmbedding, nn.Module]:
    """Emb(c) and Emb^0(a); constants with features are encoded, the others have learned vectors.

    Only `new` constants (ids), which a language got after the training, have none if they have no features.
    """
    if input not in INPUTS and input != PAIR:
        names = (*INPUTS, PAIR)
        raise ConfigError(f"unknown input '{input}'", hint=nearest(input, names) or f"known: {', '.join(names)}")
    channels = make_channels(
        knowledge,
        encoders or {},
        word_weights=word_weights,
        min_texts=word_min_texts,
        word_dropout=word_dropout,
        new=new,
    )
    language = knowledge.language
    if input == PAIR:
        read = [channel for of_domain in channels.values() for channel in of_domain]
        constants = ConstantEmbedding(len(language.constants), dim, dropout=constant_dropout, without=read, new=new)
        options = {"hidden": encoder_dim, "dropout": encoder_dropout}
        return constants, PairEmbedding(language, read, constants, dim, pair=pair, sharing=shared_encoder, **options)
    atom_embedding = INPUTS[input](language.predicates, dim)
    made = [
        FeatureEncoder(of_domain, atom_embedding.constant_dim, hidden=encoder_dim or dim, dropout=encoder_dropout)
        for of_domain in channels.values()
    ]
    constants = ConstantEmbedding(
        len(language.constants), atom_embedding.constant_dim, dropout=constant_dropout, encoders=made, new=new
    )
    return constants, atom_embedding
