"""The input layer's part of an answer: effects of words and channels of features, and similar facts."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor, nn
from torch.func import functional_call

from r2n.data.features import without_word, words_of
from r2n.data.herbrand import Codes, closed_atoms
from r2n.data.knowledge_base import KnowledgeBase
from r2n.explanation.counterfactuals import graph_around
from r2n.explanation.records import FeatureEffect, InputReasons, Similar
from r2n.network.collate import GraphBatch
from r2n.network.constant_embedding import Channel, ConstantEmbedding, FeatureEncoder, ModuleChannel, WordChannel
from r2n.network.factor_graph import FactorGraph, known_states
from r2n.network.graph_sources import Ungrounded
from r2n.network.input_layers import AtomEmbedding
from r2n.network.pair_embedding import COUNTS, KINDS, PairBatch, PairEmbedding
from r2n.network.r2n import R2N
from r2n.network.regression import Regression
from r2n.scoring import AtomLogits

WORDS_OF_A_BAG = 256
WORDS_OF_A_TEXT = 64  # of one that a caller's module reads


@dataclass(frozen=True, slots=True)
class Variant:
    """A constant (id of the training) without a word of its text."""

    constant: int
    word: str


def channels_of(model: nn.Module) -> list[Channel]:
    """The channels that a network reads, in order."""
    return [part for part in model.modules() if isinstance(part, Channel)]


def variants_of(model: R2N, constant: int) -> list[Variant]:
    """A constant without each word of its texts.

    Of a longer text `WORDS_OF_A_BAG` words are taken, first those of the vocabulary; of one that a caller's module
    reads the first `WORDS_OF_A_TEXT`, and none if it is the only word, because no module is given an empty text.
    """
    found: dict[Variant, None] = {}
    for channel in channels_of(model):
        row, words = int(channel.row_of[constant]), []
        if row >= 0 and isinstance(channel, WordChannel):
            known = set(channel.bags.vocabulary) if channel.bags.token == "word" else set()
            words = sorted(set(words_of(channel.bags.texts[row])), key=lambda word: (word not in known, word))
            words = words[:WORDS_OF_A_BAG]
        elif row >= 0 and isinstance(channel, ModuleChannel) and channel.texts is not None:
            every = list(dict.fromkeys(words_of(channel.texts[row])))
            words = every[:WORDS_OF_A_TEXT] if len(every) > 1 else []
        found |= dict.fromkeys(Variant(constant, word) for word in words)
    return list(found)


@dataclass(frozen=True, eq=False)
class VariedInput:
    """An input layer with the weights of a network, for some of its constants and for variants of them."""

    constants: ConstantEmbedding
    atom_embedding: AtomEmbedding

    @classmethod
    def from_network(cls, model: R2N, read: Int64[np.ndarray, " _"], variants: Sequence[Variant]) -> "VariedInput":
        """For the constants `read` (ids of the training, ascending); the variants have the ids behind all others."""
        own, count = torch.from_numpy(read), len(model.constants.row_of)
        like = torch.cat([own, torch.tensor([variant.constant for variant in variants], dtype=torch.int64)])
        ids = torch.cat([own, count + torch.arange(len(variants))])
        parts = (model.constants, model.atom_embedding)
        # deepcopy takes what the memo has for an id instead of a copy
        memo: dict[int, Any] = {id(weight): weight for part in parts for weight in part.parameters()}
        rows_of = []
        words = [None] * len(own) + [variant.word for variant in variants]
        for channel in channels_of(model):
            rows = channel.row_of[like]
            has_one = (rows >= 0).nonzero().flatten()
            rows_of.append(torch.full((count + len(variants),), -1))
            rows_of[-1][ids[has_one]] = torch.arange(len(has_one))
            memo |= _with_rows(channel, rows[has_one], [words[i] for i in has_one.tolist()], rows_of[-1])
        learned = torch.cat([model.constants.row_of, model.constants.row_of[like[len(own) :]]])
        memo[id(model.constants.row_of)] = learned
        if isinstance(model.atom_embedding, PairEmbedding):
            memo[id(model.atom_embedding.row_of)] = torch.stack([*rows_of, learned])
        made = cls(*deepcopy(parts, memo))
        if isinstance(made.atom_embedding, Regression):
            made.atom_embedding.same_as = torch.cat([torch.arange(count), like[len(own) :]])
        return made

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
            collated = self.atom_embedding.collate(index, chosen, self.constants).to(device)
            embedding[torch.from_numpy(rows).to(device)] = self.atom_embedding(collated, self.constants)
        return embedding


def _with_rows(channel: Channel, rows: Tensor, words: Sequence[str | None], row_of: Tensor) -> dict[int, Any]:
    """The replacements of a channel, or of its parts, by id, so that it has some rows, each without a word or not."""
    if isinstance(channel, WordChannel):
        constants, bags = np.flatnonzero(row_of.numpy() >= 0), channel.bags.taken(rows.numpy(), words)
        made = WordChannel(constants, len(row_of), bags, word_dropout=channel.word_dropout)
        return {id(channel): made.eval().to(channel.get_buffer("by_row0").device), id(channel.row_of): row_of}
    found: dict[int, Any] = {id(channel.row_of): row_of}
    vectors = channel.vectors
    if isinstance(vectors, Tensor):
        found[id(vectors)] = vectors[rows.to(vectors.device)]
    if isinstance(channel, ModuleChannel):
        found[id(channel.module)] = channel.module
        if channel.texts is not None:
            pairs = zip([channel.texts[row] for row in rows], words, strict=True)
            found[id(channel.texts)] = tuple(text if word is None else without_word(text, word) for text, word in pairs)
    return found


Slices = tuple[tuple[str, int, int], ...]
"""Weights by name, each from a row to a row."""
PAIR = "pair"
CONSTANT = "each constant"


def channel_weights(model: R2N, batch: GraphBatch, constants: Int64[np.ndarray, " _"]) -> dict[tuple[str, str], Slices]:
    """The weights of each channel by which the atoms of a graph are read, by what it is and where it is read.

    `constants` are those of the atoms, by the ids of the training. A module of the caller without any weights behind it
    is not listed.
    """
    found: dict[tuple[str, str], Slices] = {}
    embedding = model.atom_embedding
    if isinstance(embedding, PairEmbedding):
        pairs = [part for _, part in batch.by_arity if isinstance(part, PairBatch)]
        for term in dict.fromkeys(block.term for part in pairs for block in part.blocks):
            is_learned = term.channel == len(embedding.channels)
            channel = None if is_learned else embedding.channels[term.channel]
            name = "learned vectors" if channel is None else _name(channel)
            first, is_pair = f"atom_embedding.first.{term.key}", len(term.positions) > 1
            where = PAIR if is_pair else f"position {term.positions[0] + 1}"
            read = {name: (first, 0, len(embedding.first[term.key]))}
            if isinstance(channel, WordChannel) and is_pair:
                kinds, size = enumerate(KINDS), channel.size
                read = {f"{kind} of {name}": (first, i * size, (i + 1) * size) for i, kind in kinds}
                read[f"overlap of {name}"] = (f"atom_embedding.counts.{term.key}", 0, COUNTS)
            for what, slices in read.items():
                key = f"channel '{what}'", where
                found[key] = (*found.get(key, ()), slices)
    for i, encoder in enumerate(model.constants.encoders):
        assert isinstance(encoder, FeatureEncoder)
        if bool((encoder.row_of[constants] >= 0).any()):
            for j, (channel, weight) in enumerate(zip(encoder.channels, encoder.first, strict=False)):
                slices = (f"constants.encoders.{i}.first.{j}", 0, len(weight))
                found[f"channel '{_name(channel)}'", CONSTANT] = (slices,)
    return found


def _name(channel: nn.Module) -> str:
    assert isinstance(channel, Channel)
    kind = "vectors"
    if isinstance(channel, WordChannel):
        kind = "words" if channel.bags.token == "word" else "characters"
    return f"{channel.domain} {'features' if isinstance(channel, ModuleChannel) else kind}"


NUMBERS_AT_ONCE = 2**23  # of what a pass reads of atoms, at each position of a ground rule


def feature_effects(members: Sequence[AtomLogits], code: int, *, most: int) -> tuple[FeatureEffect, ...]:
    """The mean effects over the networks of the `most` largest words and of all channels, the largest first."""
    model = members[0].model
    if not channels_of(model):
        return ()
    around = Around.from_atom(members[0], code)
    variants = [variant for constant in around.names for variant in variants_of(model, constant)]
    weights = channel_weights(model, model.collate(around.graph, "indexed"), around.read)
    found = np.mean([_effects(member, around, variants, list(weights.values())) for member in members], axis=0)
    parts = [*((f"word '{variant.word}'", around.names[variant.constant]) for variant in variants), *weights]
    order = np.argsort(-np.abs(found), kind="stable").tolist()
    left_out = set([i for i in order if i < len(variants)][most:])
    return tuple(FeatureEffect(*parts[i], effect=float(found[i])) for i in order if i not in left_out)


@dataclass(frozen=True, eq=False)
class Around:
    """The graph around an atom; `rows` are its own: one, or two with that of its reciprocal.

    `constants` are those of each atom by the ids of the training, padded with -1; a constant without an id has that of
    another one, since its atoms are masked. `names` has the explained atom's constants with a vector.
    """

    graph: FactorGraph
    rows: Int64[np.ndarray, " own"]
    predicates: Int64[np.ndarray, " atoms"]
    constants: Int64[np.ndarray, "atoms positions"]
    names: dict[int, str]

    @classmethod
    def from_atom(cls, logits: AtomLogits, code: int) -> "Around":
        """The graph within reach of a network's reasoning layers."""
        model = logits.model
        graph, (rows,) = graph_around(logits, np.array([code]))
        predicates, now = model.base.decode(graph.atoms.numpy())
        constants = now if model.trained_ids is None else np.where(now < 0, now, model.trained_ids.numpy()[now])
        pairs = zip(constants[rows[0]].tolist(), now[rows[0]].tolist(), strict=True)
        names = {own: model.base.language.constants[named] for own, named in pairs if own >= 0}
        return cls(graph, rows, predicates, np.where(now < 0, now, constants.clip(0)), names)

    @property
    def read(self) -> Int64[np.ndarray, " _"]:
        """The constants of all atoms, ascending."""
        return np.unique(self.constants[self.constants >= 0])

    def copies(self, count: int) -> FactorGraph:
        """`count` copies of the graph in one graph."""
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
    """The logit as it is, minus that with each variant in place of its constant, and that without each channel."""
    model = logits.model.eval()
    known = known_states(model.base, around.graph.atoms, logits.evidence).to(model.device)
    batch, weights = model.collate(around.graph, "indexed"), dict(model.named_parameters())
    found = []
    for slices in ((), *channels):
        changed = {name: weights[name].clone() for name, _, _ in slices}
        for name, start, end in slices:
            changed[name][start:end] = 0
        out = functional_call(model, changed, (batch,), {"known": known, "rule_outputs": False})
        found.append(around.logit(out.atoms))
    (as_is, *without), varied = found, []
    entries = len(around.graph.atoms) + sum(part.numel() for part in around.graph.neighbours)
    size = max(1, NUMBERS_AT_ONCE // (entries * model.atom_embedding.dim))
    for start in range(0, len(variants), size):
        some = variants[start : start + size]
        batch, embedded = model.collate(around.copies(len(some)), "indexed"), _embedded(model, around, some)
        out = model(batch, known=known.repeat(len(some)), rule_outputs=False, embedded=embedded)
        varied.append(around.logit(out.atoms))
    return as_is - np.concatenate([*varied, *without, np.zeros(0)])


def _embedded(model: R2N, around: Around, variants: Sequence[Variant]) -> Float[Tensor, "atoms dim"]:
    """Emb^0 of all atoms with each variant in turn; what a variant leaves as it is, is computed once for all."""
    varied = np.array([variant.constant for variant in variants], np.int64)
    number, row = np.nonzero((around.constants == varied[:, None, None]).any(axis=2))
    own_id = len(model.constants.row_of) + number[:, None]
    changed = np.where(around.constants[row] == varied[number, None], own_id, around.constants[row])
    reads = VariedInput.from_network(model, around.read, variants)
    predicates = np.concatenate([around.predicates, around.predicates[row]])
    embedding = reads.embed(predicates, np.concatenate([around.constants, changed]))
    index = np.tile(np.arange(len(around.constants)), (len(variants), 1))
    index[number, row] = len(around.constants) + np.arange(len(row))
    return embedding[torch.from_numpy(index.flatten()).to(embedding.device)]


FACTS_COMPARED = 20_000


@torch.no_grad()
def similar_facts(
    members: Sequence[AtomLogits], knowledge: KnowledgeBase, code: int, *, most: int
) -> tuple[Similar, ...]:
    """The known atoms of the same predicate that are most similar to an atom, by the mean over the networks.

    Known are those that are asserted, not those of a closed world. At most `FACTS_COMPARED` are compared: first those
    that share a constant with the atom, then an even sample of the others. Atoms with a constant without a vector are
    left out; if the atom has one, nothing is similar.
    """
    base, atoms, evidence = knowledge.base, knowledge.evidence.atoms, knowledge.evidence
    index, arguments = base.decode(np.array([code]))
    start, end = np.searchsorted(atoms, base.offsets[index[0] : index[0] + 2])
    compared = atoms[start:end]
    compared = compared[(compared != code) & ~closed_atoms(base, compared)]
    if len(compared) > FACTS_COMPARED:
        has_common = np.isin(base.decode(compared)[1], arguments[arguments >= 0]).any(axis=1)
        near = _evenly(compared[has_common], FACTS_COMPARED)
        compared = np.concatenate([near, _evenly(compared[~has_common], FACTS_COMPARED - len(near))])
    first = members[0].model
    if first.trained_ids is not None:
        arguments = first.base.decode(np.append(compared, code))[1]
        has_none = np.any((arguments >= 0) & (first.trained_ids.numpy()[arguments] < 0), axis=1)
        compared = compared[~has_none[:-1] & ~has_none[-1]]
    if not len(compared):
        return ()
    graph, cosines = Ungrounded().around(np.append(compared, code)), []
    for model in (member.model.eval() for member in members):  # 0 for an embedding of zeros
        embedding = torch.nn.functional.normalize(model.embed(model.collate(graph, "indexed")).double(), dim=1)
        cosines.append((embedding @ embedding[graph.rows(torch.tensor([code]))[0]]).cpu().numpy())
    similarity = np.mean(cosines, axis=0)[graph.rows(torch.from_numpy(compared)).numpy()]
    best = np.lexsort((compared, -similarity))[:most]
    known = evidence.truth[np.searchsorted(atoms, compared[best])]
    rows = zip(base.names(compared[best]), known.tolist(), similarity[best].tolist(), strict=True)
    return tuple(Similar(*row) for row in rows)


def _evenly(codes: Codes, count: int) -> Codes:
    """`count` of the codes, at even distances."""
    return codes[np.arange(count) * len(codes) // count] if count < len(codes) else codes


def input_reasons(members: Sequence[AtomLogits], knowledge: KnowledgeBase, code: int, *, most: int = 5) -> InputReasons:
    """The known atoms that the input layer embeds like an atom, and the effects of its features on the logit.

    `members` are the networks of an ensemble, or one, and `knowledge` is in their language. At most `most` known atoms
    and words are listed; none if the networks read no constants (`evidence_input = "only"`). Counted rules are ignored.
    """
    model = members[0].model
    if model.evidence_input == "only" and not model.input_score:
        return InputReasons()
    similar = similar_facts(members, knowledge, code, most=most)
    return InputReasons(similar, feature_effects(members, code, most=most))
