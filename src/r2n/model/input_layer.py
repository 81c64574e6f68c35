"""Tensors -> predictions: the input layer of a name: how constants become vectors, and atoms embeddings."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int64
from torch import nn

from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.knowledge.options import ModelOptions
from r2n.model.atom_embedding import AtomEmbedding, AtomMLP
from r2n.model.channels import make_channels
from r2n.model.constant_embedding import ConstantEmbedding, FeatureEncoder
from r2n.model.formulas import ComplEx, DistMult, RotatE
from r2n.model.pair_embedding import PairEmbedding
from r2n.model.transe import TransE

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
