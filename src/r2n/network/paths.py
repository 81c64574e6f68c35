"""Reasoning layers along paths: eqs. 2-5 on the ground rules [q(h, z), r(z, y), q(h, y)] of a query q(h, ?)."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn, relu
from torch.nn.functional import embedding_bag

from r2n.data.herbrand import Codes, index_among
from r2n.grounding.paths import FactIndex, PathQueries, PathStep, first_atoms, next_step
from r2n.network.factor_graph import FactorGraph
from r2n.network.mlp import MLP, ModulesOf

UNREACHED = -1000.0  # the logit of an atom that no ground rule reaches: below all others, and finite
QUERIES_AT_ONCE = 64
ATOMS_AT_ONCE = 2**25  # candidates of all queries together, reached or not

Atoms = Float[Tensor, "atoms dim"]


@dataclass(frozen=True, eq=False)
class PathGraph(FactorGraph):
    """Atoms, the queries that answer them, and the number `query * constants + y` of each atom.

    Its ground rules are found while a network computes, for with a `width` they depend on the network.
    """

    index: FactIndex | None = None
    queries: PathQueries | None = None
    numbers: Int64[np.ndarray, " atoms"] | None = None
    width: int = 0
    steps: int = 0

    @property
    def parts(self) -> tuple[FactIndex, PathQueries, Int64[np.ndarray, " atoms"]]:
        """The facts, the queries, and the atoms' numbers."""
        assert self.index is not None
        assert self.queries is not None
        assert self.numbers is not None
        return self.index, self.queries, self.numbers

    @cached_property
    def in_rules(self) -> Bool[Tensor, " atoms"]:
        """Whether ground rules reach each atom, if all atoms go on."""
        index, queries, numbers = self.parts
        found = np.zeros(len(numbers), bool)
        for start, part in batches(index, queries):
            atoms = first_atoms(index, part)
            for _ in range(self.steps):
                atoms = next_step(index, part, atoms, np.arange(len(atoms))).atoms
            found |= np.isin(numbers, atoms + start * index.constants)
        return torch.from_numpy(found)


def batches(index: FactIndex, queries: PathQueries) -> Iterator[tuple[int, PathQueries]]:
    """The queries, some at once, each time with the number of the first."""
    size = max(1, min(QUERIES_AT_ONCE, ATOMS_AT_ONCE // max(1, index.constants)))
    for start in range(0, len(queries), size):
        yield start, queries.part(start, size)


class _Messages(torch.autograd.Function):
    """The sum for each atom q(h, y) over the ground rules that arrive, of Emb(q(h, z)) * w_r.

    A product belongs to a pair (q(h, z), r), and is gathered by all ground rules of the pair. Block by block of
    queries, it stays in the cache; nothing is kept for the backward pass but its arguments.
    """

    @staticmethod
    def forward(ctx, atoms: Tensor, weights: Tensor, step: PathStep) -> Tensor:
        ctx.step = step
        ctx.save_for_backward(atoms, weights)
        sums = atoms.new_zeros(len(step.atoms), atoms.shape[1])
        arrays = step.source, step.predicate, step.ends, step.arriving
        source, predicate, ends, arriving = _tensors(atoms.device, *arrays)
        for pairs, _, rows in _blocks(step):
            products = atoms.index_select(0, source[pairs]).mul_(weights.index_select(0, predicate[pairs]))
            sums[rows] = _bag_sums(products, arriving, ends, rows, pairs.start)
        return sums

    @staticmethod
    def backward(ctx, *grads: Tensor) -> tuple[Tensor | None, ...]:
        step, (atoms, weights) = ctx.step, ctx.saved_tensors
        grad, to_atoms, to_weights = grads[0].contiguous(), torch.zeros_like(atoms), torch.zeros_like(weights)
        arrays = step.source, step.predicate, step.starts, step.targets, step.pairs_of_source
        source, predicate, starts, targets, firsts = _tensors(grad.device, *arrays)
        every = torch.arange(len(source), dtype=torch.int32, device=grad.device)
        for pairs, sources, _ in _blocks(step):
            products = _bag_sums(grad, targets, starts, pairs)
            at_source, of_predicate = source[pairs], predicate[pairs]
            to_weights.index_add_(0, of_predicate, atoms.index_select(0, at_source).mul_(products))
            products.mul_(weights.index_select(0, of_predicate))
            to_atoms[sources] = _bag_sums(products, every, firsts, sources, pairs.start)
        return to_atoms, to_weights, None


def _tensors(device: torch.device, *arrays: np.ndarray) -> tuple[Tensor, ...]:
    return tuple(torch.from_numpy(array).to(device) for array in arrays)


def _blocks(step: PathStep) -> Iterator[tuple[slice, slice, slice]]:
    """The pairs, sources and atoms of each block that has any pair."""
    for first, end in zip(step.blocks[:-1].tolist(), step.blocks[1:].tolist(), strict=True):
        if first[0] < end[0]:
            yield slice(first[0], end[0]), slice(first[1], end[1]), slice(first[2], end[2])


def _bag_sums(table: Tensor, members: Tensor, starts: Tensor, bags: slice, shift: int = 0) -> Tensor:
    """The sums over the members of some bags, where the table begins with member `shift`."""
    own = starts[bags.start : bags.stop + 1]
    some = members[int(own[0]) : int(own[-1])]
    return embedding_bag(some - shift, table, own - own[0], mode="sum", include_last_offset=True)


class PathLayer(nn.Module):
    """Eqs. 2-5 with MLP^1 and MLP^2 shared over the asked predicate q through its embedding e_q.

    The message of r(z, y) is Emb(q(h, z)) * w_r, where w is a linear map of e_q; Emb(a) + relu(LayerNorm(W [Emb(a),
    sum of messages])) is the new embedding of an atom.
    """

    def __init__(self, predicates: int, dim: int) -> None:
        """Messages are about the embeddings themselves at the start."""
        super().__init__()
        self.dim = dim
        self.weights = nn.Linear(dim, predicates * dim)
        self.update = nn.Linear(2 * dim, dim)
        self.norm = nn.LayerNorm(dim)
        nn.init.normal_(self.weights.weight, std=dim**-0.5)
        nn.init.ones_(self.weights.bias)

    def forward(self, atoms: Atoms, going: Tensor | None, step: PathStep, query: "Asked", heads: Tensor) -> Atoms:
        """The embeddings after a step from all atoms, or those `going`; e_q is added to the sums at the `heads`."""
        weights = self.weights(query.distinct).view(len(query.distinct), -1, self.dim)[:, query.facts]
        weights = weights[query.owner].flatten(0, 1)
        sums = _Messages.apply(atoms if going is None else atoms[going], weights, step)
        sums = sums.index_add(0, heads, query.each)
        (kept,) = _tensors(atoms.device, step.before)
        before = atoms.new_zeros(len(sums), self.dim).index_copy(0, kept.long(), atoms)
        own, message = self.update.weight.split(self.dim, dim=1)
        updated = torch.addmm(torch.addmm(self.update.bias, before, own.t()), sums, message.t())
        return before + relu(self.norm(updated))


@dataclass(frozen=True, eq=False)
class Asked:
    """Embeddings of a batch of queries: the `distinct` e_q, the one that each query owns, and all in order.

    `facts` are the predicates that facts have, by their index in the training.
    """

    distinct: Float[Tensor, "distinct dim"]
    owner: Int64[Tensor, " queries"]
    each: Float[Tensor, "queries dim"]
    facts: Int64[Tensor, " predicates"]


class PathReasoner(nn.Module):
    """Logits of the atoms q(h, y) that ground rules reach from q(h, h); no constant has a vector.

    `trained_ids`, on another problem: the index in the training of each predicate.
    """

    def __init__(self, predicates: int, dim: int, layers: int) -> None:
        """One embedding for each predicate that is asked, reciprocal ones too."""
        super().__init__()
        self.embedding = nn.Parameter(torch.randn(predicates, dim))
        self.layers = ModulesOf([PathLayer(predicates, dim) for _ in range(layers)])
        self.output = MLP((2 * dim, dim, 1))
        self.trained_ids = torch.arange(predicates)

    def forward(self, index: FactIndex, queries: PathQueries, width: int = 0) -> tuple[Codes, Float[Tensor, " atoms"]]:
        """The atoms that are reached, as numbers `query * constants + y`, ascending, and their logits."""
        device = self.embedding.device
        distinct, owner = _tensors(device, *np.unique(queries.predicates, return_inverse=True))
        trained_ids = self.trained_ids.to(device)
        embedded = self.embedding[trained_ids[distinct]]
        query = Asked(embedded, owner, embedded[owner], trained_ids)
        reached, atoms, heads = first_atoms(index, queries), query.each, np.arange(len(queries))
        for layer in self.layers:
            rows = np.arange(len(reached))
            if width:
                with torch.no_grad():
                    rows = _most_promising(
                        self._logits(atoms, query, reached // index.constants), reached, index, width
                    )
            step = next_step(index, queries, reached, rows)
            heads = step.before[heads]
            going, at = _tensors(device, rows, heads)
            atoms = layer(atoms, going if len(rows) < len(reached) else None, step, query, at)
            reached = step.atoms
        return reached, self._logits(atoms, query, reached // index.constants)

    def _logits(self, atoms: Atoms, query: Asked, of_query: Codes) -> Float[Tensor, " atoms"]:
        """MLP^A([Emb(a), e_q])."""
        first = self.output.linear()[0]
        own, asked = first.weight.split(atoms.shape[1], dim=1)
        of_asked = torch.addmm(first.bias, query.each, asked.t())
        (owner,) = _tensors(atoms.device, of_query)
        hidden = torch.addmm(of_asked[owner], atoms, own.t())
        return self.output.after_first(hidden).squeeze(1)

    @torch.no_grad()
    def rows(self, index: FactIndex, queries: PathQueries, width: int) -> Float[np.ndarray, "queries constants"]:
        """The logits of the queries' atoms with each constant."""
        found = np.full(len(queries) * index.constants, UNREACHED, np.float32)
        for start, part in batches(index, queries):
            numbers, logits = self(index, part, width)
            found[start * index.constants + numbers] = logits.cpu().numpy()
        return found.reshape(len(queries), index.constants)

    def atom_logits(self, graph: PathGraph) -> Float[Tensor, " atoms"]:
        """The logits of the atoms of a graph."""
        index, queries, numbers = graph.parts
        found = self.embedding.new_full((len(numbers),), UNREACHED)
        for start, part in batches(index, queries):
            reached, logits = self(index, part, graph.width)
            row = index_among(numbers - start * index.constants, reached)
            which, rows = _tensors(found.device, np.flatnonzero(row >= 0), row[row >= 0])
            found[which] = logits[rows]
        return found


def _most_promising(logits: Tensor, atoms: Codes, index: FactIndex, width: int) -> Int64[np.ndarray, " rows"]:
    """The rows of the `width` atoms of each query with the highest logits, ascending."""
    query = atoms // index.constants
    order = np.lexsort((-logits.cpu().numpy(), query))
    place = np.arange(len(order)) - np.searchsorted(query, query)
    return np.sort(order[place < width])
