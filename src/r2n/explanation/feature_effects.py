"""A trained network, explained: what words, vectors and channels of features do to the logit of an atom.

A word is taken out of a constant's text for all atoms of the graph around the explained one; a channel is left out by
the whole network. Variants of constants are answered together: the graph is there once for each, side by side.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor
from torch.func import functional_call

from r2n.explanation.channel_weights import Slices, channel_weights
from r2n.explanation.records import FeatureEffect
from r2n.graph.factor_graph import FactorGraph
from r2n.graph.known_states import known_states
from r2n.knowledge.reciprocal import reciprocal_codes
from r2n.model.atom_logits import AtomLogits
from r2n.model.channels import VectorChannel
from r2n.model.r2n import R2N
from r2n.model.variants import Variant, VariedInput, channels_of, variants_of

NUMBERS_AT_ONCE = 2**23  # of what a pass reads of atoms, at each position of a ground rule


def feature_effects(members: Sequence[AtomLogits], code: int, *, most: int) -> tuple[FeatureEffect, ...]:
    """The effects of the `most` words that matter most, and of all vectors and channels, the largest first.

    Logits are means over the networks, which read the same features.
    """
    model = members[0].model
    if not channels_of(model):
        return ()
    around = Around.of(members[0], code)
    variants = [variant for constant in around.names for variant in variants_of(model, constant)]
    channels = channel_weights(model, model.lay_out(around.graph, "indexed"), around.read)
    found = np.mean([_effects(member, around, variants, list(channels.values())) for member in members], axis=0)
    told = [(_lacking(model, variant), around.names[variant.constant]) for variant in variants]
    order = np.argsort(-np.abs(found), kind="stable").tolist()
    words = [i for i in order if i < len(variants) and variants[i].word is not None]
    left_out = set(words[most:])
    parts = [*told, *channels]
    return tuple(FeatureEffect(parts[i][0], parts[i][1], float(found[i])) for i in order if i not in left_out)


def _lacking(model: R2N, variant: Variant) -> str:
    if variant.word is not None:
        return f"word '{variant.word}'"
    return "vector" if isinstance(channels_of(model)[variant.channel], VectorChannel) else "features"


@dataclass(frozen=True, eq=False)
class Around:
    """The graph around an atom: `rows` are its own: one, or two with that of its reciprocal.

    `constants` are those of each atom by the ids of the training, padded with -1; where one has none it has that of
    another, for its atoms are blank. `names` has the explained atom's constants with a vector.
    """

    graph: FactorGraph
    rows: Int64[np.ndarray, " own"]
    predicates: Int64[np.ndarray, " atoms"]
    constants: Int64[np.ndarray, "atoms positions"]
    names: dict[int, str]

    @classmethod
    def of(cls, logits: AtomLogits, code: int) -> "Around":
        """The graph that a network's reasoning layers can feel."""
        model, codes = logits.model, np.array([code])
        mirrored = reciprocal_codes(model.base, codes)
        codes = np.unique(np.concatenate([codes, mirrored[mirrored >= 0]]))
        graph = logits.source.around(codes, steps=len(model.layers))
        predicates, now = model.base.decode(graph.atoms.numpy())
        rows = graph.rows(torch.from_numpy(codes)).numpy()
        constants = now if model.trained_ids is None else np.where(now < 0, now, model.trained_ids.numpy()[now])
        pairs = zip(constants[rows[0]].tolist(), now[rows[0]].tolist(), strict=True)
        names = {own: model.base.language.constants[named] for own, named in pairs if own >= 0}
        return cls(graph, rows, predicates, np.where(now < 0, now, constants.clip(0)), names)

    @property
    def read(self) -> Int64[np.ndarray, " _"]:
        """The constants of all atoms, ascending."""
        return np.unique(self.constants[self.constants >= 0])

    def copies(self, count: int) -> FactorGraph:
        """The graph so many times, side by side."""
        first = len(self.graph.atoms) * torch.arange(count).reshape(-1, 1, 1)
        neighbours = tuple((part + first).flatten(0, 1) for part in self.graph.neighbours)
        atoms = self.graph.atoms.repeat(count)
        return FactorGraph(atoms, neighbours, self.graph.rules, (None,) * len(neighbours), answered=0)

    def logit(self, logits: Float[Tensor, " atoms"]) -> Float64[np.ndarray, " copies"]:
        """The mean over the atom's own rows, in each copy of the graph."""
        return logits.double().cpu().numpy().reshape(-1, len(self.graph.atoms))[:, self.rows].mean(axis=1)


@torch.no_grad()
def _effects(
    logits: AtomLogits, around: Around, variants: Sequence[Variant], channels: Sequence[Slices]
) -> Float64[np.ndarray, " effects"]:
    """The logit as it is, minus that with each variant in the place of its constant, and that without each channel."""
    model = logits.model.eval()
    known = known_states(model.base, around.graph.atoms, logits.evidence).to(model.device)
    layout, weights = model.lay_out(around.graph, "indexed"), dict(model.named_parameters())
    found = []
    for slices in ((), *channels):
        changed = {name: weights[name].clone() for name, _, _ in slices}
        for name, start, end in slices:
            changed[name][start:end] = 0
        out = functional_call(model, changed, (layout,), {"known": known, "rule_outputs": False})
        found.append(around.logit(out.atoms))
    as_is, *without = np.concatenate(found)
    return as_is - np.concatenate([*_of_variants(model, around, known, variants), without])


def _of_variants(
    model: R2N, around: Around, known: Tensor, variants: Sequence[Variant]
) -> Iterator[Float64[np.ndarray, " _"]]:
    """The logits with each variant, as many in a pass as fit."""
    entries = len(around.graph.atoms) + sum(part.numel() for part in around.graph.neighbours)
    size = max(1, NUMBERS_AT_ONCE // (entries * model.atom_embedding.dim))
    for start in range(0, len(variants), size):
        some = variants[start : start + size]
        layout = model.lay_out(around.copies(len(some)), "indexed")
        embedded = _embedded(model, around, some)
        out = model(layout, known=known.repeat(len(some)), rule_outputs=False, embedded=embedded)
        yield around.logit(out.atoms)


def _embedded(model: R2N, around: Around, variants: Sequence[Variant]) -> Float[Tensor, "atoms dim"]:
    """Emb^0 of all atoms with each variant in turn; what a variant leaves as it is, is computed once for all."""
    varied = np.array([variant.constant for variant in variants], np.int64)
    number, row = np.nonzero((around.constants == varied[:, None, None]).any(axis=2))
    own_id = len(model.constants.place) + number[:, None]
    changed = np.where(around.constants[row] == varied[number, None], own_id, around.constants[row])
    reads = VariedInput.of(model, around.read, variants)
    predicates = np.concatenate([around.predicates, around.predicates[row]])
    embedding = reads.embed(predicates, np.concatenate([around.constants, changed]))
    place = np.tile(np.arange(len(around.constants)), (len(variants), 1))
    place[number, row] = len(around.constants) + np.arange(len(row))
    return embedding[torch.from_numpy(place.flatten()).to(embedding.device)]
