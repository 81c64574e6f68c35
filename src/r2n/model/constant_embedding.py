"""Tensors -> predictions: Emb(c), a learned vector for every constant, or what an encoder makes of its features."""

from collections.abc import Sequence

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

    def __init__(self, channels: Sequence[Channel], dim: int, *, hidden: int, dropout: float = 0.0) -> None:
        """All channels have the same constants."""
        super().__init__()
        self.channels = nn.ModuleList(channels)
        self.register_buffer("place", channels[0].place, persistent=False)
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


class ConstantEmbedding(nn.Module):
    """Vectors for the constants of the language: learned ones, normally distributed at the start, or encoded ones."""

    place: Tensor

    def __init__(
        self,
        constants: int,
        dim: int,
        *,
        scale: float = 0.3,
        dropout: float = 0.0,
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
        place = torch.where(is_learned, is_learned.cumsum(0) - 1, -1)
        self.register_buffer("place", place, persistent=False)
        self.vectors = nn.Parameter(torch.randn(int(is_learned.sum()), dim) * scale)

    def forward(self, constants: Int64[Tensor, " *batch"]) -> Float[Tensor, "*batch dim"]:
        """Emb(c) of constants given by their ids; each is encoded once."""
        if self._is_learned:
            return self.table()[constants]
        wanted, places = constants.unique(return_inverse=True)
        return self._encoded(wanted)[places]

    def table(self) -> Float[Tensor, "constants dim"]:
        """Emb(c) of all constants."""
        if self._is_learned:
            return self.learned()
        return self._encoded(torch.arange(len(self.place), device=self.place.device))

    @property
    def _is_learned(self) -> bool:
        """Whether each constant has a learned vector, in the place of its id."""
        return len(self.vectors) == len(self.place)

    def learned(self) -> Float[Tensor, "learned dim"]:
        """The learned vectors, of the constants that have one."""
        return dropout(self.vectors, self.dropout, self.training)

    def _encoded(self, constants: Tensor) -> Tensor:
        table = self.vectors.new_zeros(len(constants), self.dim)
        for part in (self, *self.encoders):
            assert isinstance(part.place, Tensor)
            rows = part.place[constants]
            which = (rows >= 0).nonzero().flatten()
            if len(which):
                vectors = self.vectors[rows[which]] if part is self else part(rows[which])
                table = table.index_copy(0, which, vectors)
        return dropout(table, self.dropout, self.training)
