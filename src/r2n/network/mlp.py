"""Multilayer perceptrons, and the output layers of atoms and ground rules."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Generic, TypeVar, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import relu

Part = TypeVar("Part", bound=nn.Module)


class ModulesOf(nn.ModuleList, Generic[Part]):
    """Modules in order, all of one class."""

    def __init__(self, modules: Iterable[Part]) -> None:
        """A list of them."""
        super().__init__(modules)

    def __iter__(self) -> Iterator[Part]:
        return iter(cast(list[Part], list(self._modules.values())))


class MLP(nn.Module):
    """Linear maps of the given sizes with ReLU between them; Glorot weights, zero biases."""

    def __init__(self, sizes: Sequence[int], *, last_relu: bool = False) -> None:
        """`sizes` from input to output, at least two; `last_relu` puts a ReLU behind the last map too."""
        super().__init__()
        self.last_relu = last_relu
        self.layers = ModulesOf([nn.Linear(before, after) for before, after in pairwise(sizes)])
        for layer in self.linear():
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def linear(self) -> list[nn.Linear]:
        """The linear maps in order."""
        return list(self.layers)

    def forward(self, x: Float[Tensor, "*batch inputs"]) -> Float[Tensor, "*batch outputs"]:
        """All layers."""
        return self.after_first(self.linear()[0](x))

    def after_first(self, x: Float[Tensor, "*batch hidden"]) -> Float[Tensor, "*batch outputs"]:
        """What follows the first linear map."""
        for layer in self.linear()[1:]:
            x = layer(relu(x))
        return relu(x) if self.last_relu else x


class PositionMLP(nn.Module):
    """MLP^2_{j,i} for all positions i of a rule: one MLP for each, or (`shared`) one for all of them."""

    def __init__(self, positions: int, sizes: Sequence[int], *, shared: bool = False) -> None:
        """`sizes` from input to output, at least two."""
        super().__init__()
        self.positions, self.shared = positions, shared
        copies = 1 if shared else positions
        pairs = list(pairwise(sizes))
        self.weights = nn.ParameterList([nn.Parameter(torch.empty(copies, *pair)) for pair in pairs])
        self.biases = nn.ParameterList([nn.Parameter(torch.zeros(copies, after)) for _, after in pairs])
        for weight in self.weights:
            for copy in weight:
                nn.init.xavier_uniform_(copy)

    def before_last(self, x: Float[Tensor, "ground_rules rule_dim"]) -> Float[Tensor, "ground_rules positions hidden"]:
        """All layers but the last linear map."""
        pairs = list(zip(self.weights, self.biases, strict=True))[:-1]
        if not pairs:
            return x.unsqueeze(1).expand(-1, self.positions, -1)
        weight, bias = pairs.pop(0)
        x = relu((x @ weight.transpose(0, 1).flatten(1)).unflatten(-1, (-1, weight.shape[-1])) + bias)
        for weight, bias in pairs:
            x = relu(torch.einsum("gpi,pio->gpo", x, weight) + bias)
        return x.expand(-1, self.positions, -1)

    def last(self, x: Float[Tensor, "*batch hidden"], position: int) -> Float[Tensor, "*batch dim"]:
        """The last linear map of a position, without its bias: it commutes with sums."""
        return x @ self.weights[-1][0 if self.shared else position]

    def last_bias(self, position: int) -> Float[Tensor, " dim"]:
        """The bias of the last linear map of a position: added once for each message."""
        return self.biases[-1][0 if self.shared else position]


Features = Float[Tensor, "points features"]
Maps = Float[Tensor, "predicates features dim"]
Offsets = Float[Tensor, "predicates dim"]


class Output(nn.Module):
    """out(a) = MLP^A(Emb^L(a)), or out(g) = MLP^R(Emb^L(g))."""

    def __init__(self, dim: int, *, linear: bool = False) -> None:
        """One hidden layer as wide as the embedding, or none (`linear`)."""
        super().__init__()
        self.network = MLP((dim, 1) if linear else (dim, dim, 1))

    def forward(self, embeddings: Float[Tensor, "batch dim"]) -> Float[Tensor, " batch"]:
        """The logit of each atom, or ground rule."""
        return self.network(embeddings).squeeze(-1)

    def start_at_zero(self) -> None:
        """Make the output zero until it is trained."""
        nn.init.zeros_(self.network.linear()[-1].weight)

    def over_grid(self, features: Features, maps: Maps, offsets: Offsets) -> Float[Tensor, "predicates points"]:
        """The logit of each atom whose embedding is features @ maps + offsets."""
        if len(self.network.layers) > 1:
            return self.network(features @ maps + offsets.unsqueeze(1)).squeeze(-1)
        (last,) = self.network.linear()
        return torch.addmm(last(offsets), (maps @ last.weight[0]), features.t())
