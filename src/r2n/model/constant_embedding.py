"""Tensors -> predictions: Emb(c), a learned vector for every constant, or what an encoder makes of its features."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn.functional import dropout, relu

from r2n.model.channels import Channel, DenseChannel, ModuleChannel, WordChannel


class FeatureEncoder(nn.Module):
    """Emb(c) of the constants of one domain from all their channels: an MLP with one hidden layer.

    Behind a caller's module stands at most one linear map, where its output has another size.
    """

    place: Tensor

    def __init__(self, channels: Sequence[Channel], dim: int, *, hidden: int, dropout: float) -> None:
        """All channels have the same constants."""
        super().__init__()
        self.channels = nn.ModuleList(channels)
        self.place = channels[0].place
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
            parts = zip(self.channels, self.first, strict=True)
            encoded = sum((_through(channel, weight, rows) for channel, weight in parts), self.bias)
            encoded = dropout(relu(encoded), self.dropout, self.training)
        return encoded if self.last is None else self.last(encoded)


def glorot(inputs: int, outputs: int) -> nn.Parameter:
    """A matrix of Glorot's weights; one row where there are no inputs, for what has no size is no tensor to torch."""
    weight = torch.empty(max(1, inputs), outputs)
    return nn.Parameter(nn.init.xavier_uniform_(weight))


def _through(channel: nn.Module, weight: Tensor, rows: Tensor) -> Tensor:
    if isinstance(channel, WordChannel):
        return channel.times(weight[: channel.size], channel.kept_words())[rows]
    assert isinstance(channel, DenseChannel)
    return channel(rows) @ weight


@dataclass(frozen=True, eq=False)
class ConstantLayout:
    """Constants to be read: `count` distinct ones, and the place among them of each that is asked for.

    `parts` tell for each source of vectors (the number of an encoder, -1 for learned vectors) which of the distinct
    constants have theirs there, and in which rows. Without `places`, all constants are asked for, in order.
    """

    count: int
    parts: tuple[tuple[int, Int64[Tensor, " _"], Int64[Tensor, " _"]], ...]
    places: Int64[Tensor, " *batch"] | None

    def to(self, device: torch.device) -> "ConstantLayout":
        """The same on another device."""
        parts = tuple((source, which.to(device), rows.to(device)) for source, which, rows in self.parts)
        return ConstantLayout(self.count, parts, None if self.places is None else self.places.to(device))


class ConstantEmbedding(nn.Module):
    """Vectors for the constants of the language: learned ones, normally distributed at the start, or encoded ones.

    `place` holds the row of each constant among the learned vectors, -1 where it has none; like that of a channel, it
    is read when atoms are laid out, and stays on the CPU.
    """

    place: Tensor

    def __init__(
        self,
        constants: int,
        dim: int,
        *,
        dropout: float,
        scale: float = 0.3,
        encoders: Sequence[FeatureEncoder] = (),
        without: Sequence[Channel] = (),
        new: Sequence[int] | Int64[np.ndarray, " new"] = (),
    ) -> None:
        """`scale` is the standard deviation at the start; constants in the channels `without` have no vector.

        Nothing was learned of `new` constants (ids): without features, they have no vector.
        """
        super().__init__()
        self.dim, self.dropout = dim, dropout
        self.encoders = nn.ModuleList(encoders)
        is_learned = torch.ones(constants, dtype=torch.bool)
        for part in (*encoders, *without):
            is_learned &= part.place < 0
        is_learned[torch.as_tensor(np.asarray(new, np.int64))] = False
        self.place = torch.where(is_learned, is_learned.cumsum(0) - 1, -1)
        self._encoded_places = tuple(encoder.place for encoder in encoders)
        self.vectors = nn.Parameter(torch.randn(int(is_learned.sum()), dim) * scale)

    def lay_out(self, constants: Int64[Tensor, " *batch"] | None = None) -> ConstantLayout:
        """Constants (by id) to be read again and again, on the CPU; all of them where none are given."""
        if len(self.vectors) == len(self.place):  # each constant has a learned vector, in the place of its id
            return ConstantLayout(len(self.place), (), constants)
        if constants is None:
            wanted, places = torch.arange(len(self.place)), None
        else:
            wanted, places = constants.unique(return_inverse=True)
        parts = []
        for source, place in enumerate((self.place, *self._encoded_places), start=-1):
            rows = place[wanted]
            which = (rows >= 0).nonzero().flatten()
            if len(which):
                parts.append((source, which, rows[which]))
        return ConstantLayout(len(wanted), tuple(parts), places)

    def forward(self, layout: ConstantLayout) -> Float[Tensor, "*batch dim"]:
        """Emb(c) of the constants asked for; each is encoded once."""
        table = self._encoded(layout) if len(self.vectors) < len(self.place) else self.learned()
        return table if layout.places is None else table[layout.places]

    def learned(self) -> Float[Tensor, "learned dim"]:
        """The learned vectors, of the constants that have one."""
        return dropout(self.vectors, self.dropout, self.training)

    def _encoded(self, layout: ConstantLayout) -> Tensor:
        table = self.vectors.new_zeros(layout.count, self.dim)
        for source, which, rows in layout.parts:
            vectors = self.vectors[rows] if source < 0 else self.encoders[source](rows)
            table = table.index_copy(0, which, vectors)
        return dropout(table, self.dropout, self.training)
