"""A trained network, asked: a trained network for a language that has grown, where new constants have features."""

from dataclasses import replace

import numpy as np
import torch

from r2n.errors import ConfigError
from r2n.knowledge.growth import constant_ids, recoded
from r2n.knowledge.knowledge_base import Evidence, KnowledgeBase
from r2n.knowledge.options import ModelOptions
from r2n.model.channels import ModuleChannel
from r2n.model.r2n import R2N


def with_features(trained: R2N, training: KnowledgeBase, now: KnowledgeBase, options: ModelOptions) -> R2N:
    """The network with the features of what is known now, which an encoder turns into vectors; its weights stay.

    Vocabularies and scales are those of the training's evidence. A new constant without features has no vector.
    """
    ids = torch.from_numpy(constant_ids(now.language, training.language))
    atoms = recoded(training.evidence.atoms, training.base, now.base)
    order = np.argsort(atoms)
    known_then = replace(now, evidence=Evidence(atoms[order], training.evidence.truth[order]))
    encoders = {part.domain: part.module for part in trained.modules() if isinstance(part, ModuleChannel)}
    with torch.random.fork_rng(devices=[]):
        model = R2N.build(known_then, options, encoders=encoders, new=np.flatnonzero(ids.numpy() < 0))
    weights = trained.state_dict()
    vectors = torch.zeros_like(model.constants.vectors)
    place = model.constants.place
    same = ((ids >= 0) & (place >= 0)).nonzero().flatten()
    vectors[place[same]] = weights["constants.vectors"][trained.constants.place[ids[same]]]
    try:
        model.load_state_dict(weights | {"constants.vectors": vectors})
    except RuntimeError as error:
        raise ConfigError(
            "the new constants do not fit the features that the network was trained on",
            hint="give features to the new constants of a domain as its other constants have them",
        ) from error
    has_vector = ids >= 0
    for part in now.features.values():
        has_vector[torch.from_numpy(part.constants)] = True
    return model.eval().on_base(now.base, torch.where(has_vector, torch.arange(len(ids)), -1))
