"""Tensors -> predictions: what the network reads of constants: bags of words, vectors, or what a caller's module makes.

A *channel* gives vectors of one size to some constants. A domain with text and numbers has two; constants without
features have none, and a learned vector instead.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn.functional import dropout

from r2n.errors import ConfigError, nearest
from r2n.knowledge.features import Features
from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.knowledge.options import ModelOptions
from r2n.knowledge.words import Bags, bags_of_words
from r2n.model.sparse_rows import SparseRows


class Channel(nn.Module):
    """Vectors of `size` for some constants; `place` holds the row of each constant (by id), -1 where it has none.

    Places are read when atoms are laid out, not in a pass: they stay on the CPU, wherever the network is. `domain` is
    the one whose features it reads.
    """

    place: Tensor
    domain: str = ""

    def __init__(self, constants: Int64[np.ndarray, " rows"], of: int, size: int) -> None:
        """`constants` are the ids of those that have one, `of` is the number of all."""
        super().__init__()
        self.size = size
        self.place = torch.full((of,), -1, dtype=torch.int64)
        self.place[torch.from_numpy(np.array(constants, np.int64))] = torch.arange(len(constants))


class WordChannel(Channel):
    """Bags of words, too wide to be written out: only their products with a table of word vectors are.

    In training, each pass forgets a share `word_dropout` of the words, in all texts alike.
    """

    def __init__(self, constants: Int64[np.ndarray, " rows"], of: int, bags: Bags, *, word_dropout: float) -> None:
        """`bags` has a row for each of the constants."""
        super().__init__(constants, of, len(bags.vocabulary))
        self.bags, self.word_dropout = bags, word_dropout
        self.texts = len(constants)
        matrix = SparseRows.of(bags.known)
        for i, parts in enumerate(zip(matrix.by_row, matrix.by_column, strict=True)):
            self.register_buffer(f"by_row{i}", parts[0], persistent=False)
            self.register_buffer(f"by_column{i}", parts[1], persistent=False)

    @property
    def rows(self) -> SparseRows:
        """The bags as a sparse matrix, where the network is."""
        by_row, by_column = (tuple(self.get_buffer(f"{by}{i}") for i in range(3)) for by in ("by_row", "by_column"))
        return SparseRows(self.texts, by_row, by_column)

    def kept_words(self) -> Float[Tensor, " words"] | None:
        """What each word weighs in this pass: nothing if it is forgotten."""
        if not self.training or not self.word_dropout:
            return None
        return dropout(torch.ones(self.size, device=self.get_buffer("by_row0").device), self.word_dropout)

    def times(
        self, table: Float[Tensor, "words dim"], kept: Float[Tensor, " words"] | None
    ) -> Float[Tensor, "rows dim"]:
        """The sum of the word vectors of each text."""
        return self.rows.times(table if kept is None else table * kept.unsqueeze(1))


class VectorChannel(Channel):
    """Given vectors, moved and scaled so that over the training constants each component has mean 0, deviation 1."""

    vectors: Tensor

    def __init__(self, features: Features, of: int, in_training: np.ndarray) -> None:
        """`in_training` marks the rows whose constants are in the training evidence; without any, all count."""
        assert features.vectors is not None
        flat = features.vectors.reshape(len(features), -1).astype(np.float64)
        super().__init__(features.constants, of, flat.shape[1])
        seen = flat[in_training] if in_training.any() else flat
        scale = seen.std(0) if len(seen) else np.ones(flat.shape[1])
        scale[scale < 1e-6 * (1 + np.abs(seen).max(0, initial=0.0))] = 1.0
        moved = (flat - (seen.mean(0) if len(seen) else 0.0)) / scale
        self.register_buffer("vectors", torch.from_numpy(moved.astype(np.float32)), persistent=False)

    def forward(self, rows: Int64[Tensor, " rows"]) -> Float[Tensor, "rows size"]:
        """The vectors of some rows."""
        return self.vectors[rows]


class ModuleChannel(Channel):
    """A caller's module on the features as they were given: a tensor of vectors, a list of texts, or both."""

    def __init__(self, features: Features, of: int, module: nn.Module) -> None:
        """The size is that of what the module gives for the first constants."""
        self.texts = features.texts
        vectors = None if features.vectors is None else torch.from_numpy(np.ascontiguousarray(features.vectors))
        size = _output_size(features, module, self._given(features.texts, vectors, torch.arange(min(2, len(features)))))
        super().__init__(features.constants, of, size)
        self.module = module
        self.register_buffer("vectors", vectors, persistent=False)

    @staticmethod
    def _given(texts: Sequence[str] | None, vectors: Tensor | None, rows: Tensor) -> list[object]:
        given: list[object] = [] if vectors is None else [vectors[rows]]
        return given if texts is None else [*given, [texts[i] for i in rows.tolist()]]

    def forward(self, rows: Int64[Tensor, " rows"]) -> Float[Tensor, "rows size"]:
        """What the module makes of some rows."""
        vectors = self.vectors
        assert vectors is None or isinstance(vectors, Tensor)
        return self.module(*self._given(self.texts, vectors, rows)).flatten(1)


DenseChannel = VectorChannel | ModuleChannel
"""Channels whose vectors are written out, as `forward` gives them."""


def _output_size(features: Features, module: nn.Module, given: list[object]) -> int:
    """The size of a module's output, from one pass that leaves no trace."""
    name, was_training = features.domain.name, module.training
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            out = module.eval()(*given)
    except Exception as error:
        shapes = [f"vectors of shape {tuple(part.shape)}" if isinstance(part, Tensor) else "texts" for part in given]
        cause = str(error).splitlines()[0] if str(error) else type(error).__name__
        what = f"the encoder of domain '{name}' fails on {' and '.join(shapes)}: {cause}"
        raise ConfigError(what, hint="it is called with the features of some constants, row by row") from error
    finally:
        module.train(was_training)
    rows = min(2, len(features))
    if not isinstance(out, Tensor) or out.ndim < 2 or len(out) != rows or not out.is_floating_point():
        kind = f"a tensor of shape {tuple(out.shape)}" if isinstance(out, Tensor) else f"a {type(out).__name__}"
        what = f"the encoder of domain '{name}' gives {kind} for the features of {rows} constants"
        raise ConfigError(what, hint="it should give a vector for each constant: (constants, size)")
    return int(out.flatten(1).shape[1])


def make_channels(
    knowledge: KnowledgeBase,
    encoders: Mapping[str, Any],
    options: ModelOptions,
    *,
    new: Sequence[int] | Int64[np.ndarray, " new"] = (),
) -> dict[str, list[Channel]]:
    """The channels of each domain with features; `encoders` are the caller's modules, by domain.

    Words and scales are those of the constants that the evidence labels, scales without such a one those of all but the
    `new` constants (ids).
    """
    _check_encoders(knowledge, encoders)
    of = len(knowledge.language.constants)
    channels: dict[str, list[Channel]] = {}
    for name, features in knowledge.features.items():
        if not len(features):
            continue
        in_training = np.isin(features.constants, knowledge.training_constants)
        found: list[Channel] = []
        if name in encoders:
            found.append(ModuleChannel(features, of, encoders[name]))
        elif features.vectors is not None:
            measured = in_training if in_training.any() else ~np.isin(features.constants, new)
            found.append(VectorChannel(features, of, measured))
        if features.texts is not None and name not in encoders:
            weights, at_least = options.word_weights, options.word_min_texts
            bags = bags_of_words(features.texts, in_training, weights=weights, min_texts=at_least)
            found.append(WordChannel(features.constants, of, bags, word_dropout=options.word_dropout))
        for channel in found:
            channel.domain = name
        channels[name] = found
    return channels


def _check_encoders(knowledge: KnowledgeBase, encoders: Mapping[str, Any]) -> None:
    for name, module in encoders.items():
        if name not in knowledge.features:
            known = list(knowledge.features)
            hint = nearest(name, known) or f"domains with features: {', '.join(known) or 'none'}"
            raise ConfigError(f"an encoder is given for '{name}', which is no domain with features", hint=hint)
        if not isinstance(module, nn.Module):
            raise ConfigError(f"the encoder of domain '{name}' is a {type(module).__name__}, not a torch.nn.Module")
