"""Emb(c): embeddings of constants from tables and features."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int64
from scipy.sparse import csr_array
from torch import Tensor, nn
from torch.nn.functional import dropout, relu

from r2n.data.features import TOKENS, Bags, Features, bags_of_words
from r2n.data.knowledge_base import KnowledgeBase
from r2n.errors import ConfigError, nearest
from r2n.network.tensors import Tensors, sparse_product
from r2n.options import ModelOptions

Ids = Sequence[int] | Int64[np.ndarray, " ids"]
"""Constants, by id."""


@dataclass(frozen=True, eq=False)
class SparseRows(Tensors):
    """A constant sparse matrix by rows and by columns: column (row) indices, where each row begins, and values."""

    rows: int
    by_row: tuple[Tensor, Tensor, Tensor]
    by_column: tuple[Tensor, Tensor, Tensor]

    @classmethod
    def from_matrix(cls, matrix: csr_array) -> "SparseRows":
        """From a matrix of scipy."""
        by_row, by_column = (
            (
                torch.from_numpy(form.indices.astype(np.int32)),
                torch.from_numpy(form.indptr[:-1].astype(np.int32)),
                torch.from_numpy(form.data.astype(np.float32)),
            )
            for form in (matrix, csr_array(matrix.T))
        )
        return cls(len(matrix.indptr) - 1, by_row, by_column)

    def times(self, table: Float[Tensor, "columns dim"]) -> Float[Tensor, "rows dim"]:
        """The product with a dense matrix."""
        if not len(self.by_row[0]):
            return table.new_zeros(self.rows, table.shape[1]) + 0.0 * table.sum()
        return sparse_product(table, self.by_row, self.by_column)


class Channel(nn.Module):
    """Vectors of `size` for some constants, by features of a `domain`.

    `row_of` holds the row of each constant (by id), -1 if it has none; it stays on the CPU, where atoms are collated.
    """

    row_of: Tensor
    domain: str = ""

    def __init__(self, constants: Int64[np.ndarray, " rows"], of: int, size: int) -> None:
        """`constants` are the ids of those that have one, `of` is the number of all."""
        super().__init__()
        self.size = size
        self.row_of = torch.full((of,), -1, dtype=torch.int64)
        self.row_of[torch.from_numpy(np.array(constants, np.int64))] = torch.arange(len(constants))


class WordChannel(Channel):
    """Bags of words, multiplied with a table of word vectors; a pass in training drops words in all texts alike."""

    def __init__(self, constants: Int64[np.ndarray, " rows"], of: int, bags: Bags, *, word_dropout: float) -> None:
        """`bags` has a row for each of the constants."""
        super().__init__(constants, of, len(bags.vocabulary))
        self.bags, self.word_dropout = bags, word_dropout
        self.texts = len(constants)
        matrix = SparseRows.from_matrix(bags.known)
        for i, parts in enumerate(zip(matrix.by_row, matrix.by_column, strict=True)):
            self.register_buffer(f"by_row{i}", parts[0], persistent=False)
            self.register_buffer(f"by_column{i}", parts[1], persistent=False)

    @property
    def rows(self) -> SparseRows:
        """The bags as a sparse matrix, on the network's device."""
        parts = [[self.get_buffer(f"{by}{i}") for i in range(3)] for by in ("by_row", "by_column")]
        return SparseRows(self.texts, *((part[0], part[1], part[2]) for part in parts))

    def kept_words(self) -> Float[Tensor, " words"] | None:
        """The weight of each word in this pass: zero if it is dropped."""
        if not self.training or not self.word_dropout:
            return None
        return dropout(torch.ones(self.size, device=self.get_buffer("by_row0").device), self.word_dropout)

    def times(
        self, table: Float[Tensor, "words dim"], kept: Float[Tensor, " words"] | None
    ) -> Float[Tensor, "rows dim"]:
        """The sum of the word vectors of each text."""
        return self.rows.times(table if kept is None else table * kept.unsqueeze(1))


class VectorChannel(Channel):
    """Given vectors, standardised over the training constants."""

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
        """The size is that of the module's output for the first constants."""
        self.texts = features.texts
        vectors = None if features.vectors is None else torch.from_numpy(np.ascontiguousarray(features.vectors))
        rows = min(2, len(features))
        given = self._given(features.texts, vectors, torch.arange(rows))
        super().__init__(features.constants, of, _output_size(features.domain.name, rows, module, given))
        self.module = module
        self.register_buffer("vectors", vectors, persistent=False)

    @staticmethod
    def _given(texts: Sequence[str] | None, vectors: Tensor | None, rows: Tensor) -> list[object]:
        given: list[object] = [] if vectors is None else [vectors[rows]]
        return given if texts is None else [*given, [texts[i] for i in rows.tolist()]]

    def forward(self, rows: Int64[Tensor, " rows"]) -> Float[Tensor, "rows size"]:
        """The module's output for some rows."""
        vectors = self.vectors
        assert vectors is None or isinstance(vectors, Tensor)
        return self.module(*self._given(self.texts, vectors, rows)).flatten(1)


def _output_size(name: str, rows: int, module: nn.Module, given: list[object]) -> int:
    """The size of a module's output, from one pass that leaves no trace."""
    was_training = module.training
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
    if not isinstance(out, Tensor) or out.ndim < 2 or len(out) != rows or not out.is_floating_point():
        kind = f"a tensor of shape {tuple(out.shape)}" if isinstance(out, Tensor) else f"a {type(out).__name__}"
        what = f"the encoder of domain '{name}' gives {kind} for the features of {rows} constants"
        raise ConfigError(what, hint="it should give a vector for each constant: (constants, size)")
    return int(out.flatten(1).shape[1])


def _check_encoders(encoders: Mapping[str, Any], features: Mapping[str, Features]) -> None:
    for name, module in encoders.items():
        if name not in features:
            hint = nearest(name, features) or f"domains with features: {', '.join(features) or 'none'}"
            raise ConfigError(f"an encoder is given for '{name}', which is no domain with features", hint=hint)
        if not isinstance(module, nn.Module):
            raise ConfigError(f"the encoder of domain '{name}' is a {type(module).__name__}, not a torch.nn.Module")


def make_channels(
    knowledge: KnowledgeBase, encoders: Mapping[str, Any], options: ModelOptions, *, new: Ids = ()
) -> dict[str, list[Channel]]:
    """The channels of each domain with features; `encoders` are the caller's modules, by domain.

    Words and scales are those of the constants in the evidence; without any, scales are those of all but the `new`
    constants (ids).
    """
    _check_encoders(encoders, knowledge.features)
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
            for token in TOKENS[features.analyzer]:
                bags = bags_of_words(features.texts, in_training, weights=weights, min_texts=at_least, token=token)
                found.append(WordChannel(features.constants, of, bags, word_dropout=options.word_dropout))
        for channel in found:
            channel.domain = name
        channels[name] = found
    return channels


class FeatureEncoder(nn.Module):
    """Emb(c) of the constants of one domain: an MLP of all channels, or a caller's module and one map to the size."""

    row_of: Tensor

    def __init__(self, channels: Sequence[Channel], dim: int, *, hidden: int, dropout: float) -> None:
        """All channels have the same constants."""
        super().__init__()
        self.channels = nn.ModuleList(channels)
        self.row_of = channels[0].row_of
        is_made = isinstance(channels[0], ModuleChannel)
        self.dropout = dropout
        self.first = nn.ParameterList([] if is_made else [glorot(channel.size, hidden) for channel in channels])
        self.bias = None if is_made else nn.Parameter(torch.zeros(hidden))
        before = channels[0].size if is_made else hidden
        self.last = None if is_made and before == dim else nn.Linear(before, dim)
        if self.last is not None:
            nn.init.xavier_uniform_(self.last.weight)
            nn.init.zeros_(self.last.bias)

    def forward(self, rows: Int64[Tensor, " rows"]) -> Float[Tensor, "rows dim"]:
        """Emb(c) of some rows."""
        if self.bias is None:
            encoded = self.channels[0](rows)
        else:
            encoded = self.bias
            for channel, weight in zip(self.channels, self.first, strict=True):
                if isinstance(channel, WordChannel):
                    encoded = encoded + channel.times(weight[: channel.size], channel.kept_words())[rows]
                else:
                    encoded = encoded + channel(rows) @ weight
            encoded = dropout(relu(encoded), self.dropout, self.training)
        return encoded if self.last is None else self.last(encoded)


def glorot(inputs: int, outputs: int) -> nn.Parameter:
    """A matrix of Glorot's weights, of one row at least."""
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(max(1, inputs), outputs)))


@dataclass(frozen=True, eq=False)
class ConstantBatch(Tensors):
    """Constants to be read: `count` distinct ones, and the index among them of each (`index`; None: all in order).

    `parts` hold for each source of vectors (the number of an encoder, -1 for learned vectors) which of the distinct
    constants have theirs there, and in which rows.
    """

    count: int
    parts: tuple[tuple[int, Int64[Tensor, " _"], Int64[Tensor, " _"]], ...]
    index: Int64[Tensor, " *batch"] | None


class ConstantEmbedding(nn.Module):
    """Vectors for the constants of the language: learned ones, normally distributed at the start, or encoded ones.

    `row_of` holds the row of each constant among the learned vectors, -1 if it has none; it stays on the CPU.
    """

    row_of: Tensor

    def __init__(
        self,
        constants: int,
        dim: int,
        *,
        dropout: float,
        scale: float = 0.3,
        encoders: Sequence[FeatureEncoder] = (),
        without: Sequence[Channel] = (),
        new: Ids = (),
    ) -> None:
        """`scale` is the deviation at the start; constants in channels `without`, and `new` ones, have no vector."""
        super().__init__()
        self.dim, self.dropout = dim, dropout
        self.encoders = nn.ModuleList(encoders)
        is_learned = torch.ones(constants, dtype=torch.bool)
        for part in (*encoders, *without):
            is_learned &= part.row_of < 0
        is_learned[torch.as_tensor(np.asarray(new, np.int64))] = False
        self.row_of = torch.where(is_learned, is_learned.cumsum(0) - 1, -1)
        self._encoder_rows = tuple(encoder.row_of for encoder in encoders)
        self.vectors = nn.Parameter(torch.randn(int(is_learned.sum()), dim) * scale)

    def collate(self, constants: Int64[Tensor, " *batch"] | None = None) -> ConstantBatch:
        """Constants (by id) to be read repeatedly, on the CPU; all of them if none are given."""
        if len(self.vectors) == len(self.row_of):  # each constant has a learned vector, in the row of its id
            return ConstantBatch(len(self.row_of), (), constants)
        if constants is None:
            wanted, index = torch.arange(len(self.row_of)), None
        else:
            wanted, index = constants.unique(return_inverse=True)
        parts = []
        for source, row_of in enumerate((self.row_of, *self._encoder_rows), start=-1):
            rows = row_of[wanted]
            which = (rows >= 0).nonzero().flatten()
            if len(which):
                parts.append((source, which, rows[which]))
        return ConstantBatch(len(wanted), tuple(parts), index)

    def forward(self, batch: ConstantBatch) -> Float[Tensor, "*batch dim"]:
        """Emb(c) of the constants asked for; each is encoded once."""
        if len(self.vectors) == len(self.row_of):
            table = self.learned()
        else:
            table = self.vectors.new_zeros(batch.count, self.dim)
            for source, which, rows in batch.parts:
                vectors = self.vectors[rows] if source < 0 else self.encoders[source](rows)
                table = table.index_copy(0, which, vectors)
            table = dropout(table, self.dropout, self.training)
        return table if batch.index is None else table[batch.index]

    def learned(self) -> Float[Tensor, "learned dim"]:
        """The learned vectors, of the constants that have one."""
        return dropout(self.vectors, self.dropout, self.training)
