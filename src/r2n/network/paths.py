"""Reasoning layers along paths: eqs. 2-5 on the ground rules [q(h, z), r(z, y), q(h, y)] of a query q(h, ?)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn
from torch.nn.functional import embedding_bag

from r2n.data.herbrand import Codes, index_among
from r2n.errors import ConfigError
from r2n.grounding.paths import FactIndex, PathQueries, PathStep, first_atoms, lost_pairs, next_step
from r2n.network.factor_graph import FactorGraph
from r2n.network.mlp import MLP, ModulesOf

UNREACHED = -100.0  # added to the logit of an atom that no path reaches, which is then below all others
QUERIES_AT_ONCE = 64
ATOMS_AT_ONCE = 2**25  # candidates of all queries together, reached or not

Atoms = Float[Tensor, "atoms dim"]


@dataclass(frozen=True, eq=False, kw_only=True)
class PathGraph(FactorGraph):
    """Atoms, the queries that answer them, and the number `query * constants + y` of each atom.

    Its ground rules are found while a network computes, for with a `width` they depend on the network.
    """

    index: FactIndex
    queries: PathQueries
    numbers: Int64[np.ndarray, " atoms"]
    width: int
    steps: int

    @cached_property
    def in_rules(self) -> Bool[Tensor, " atoms"]:
        """Whether ground rules reach each atom, if all atoms go on."""
        index, found = self.index, np.zeros(len(self.numbers), bool)
        for start, part in batches(index, self.queries):
            atoms = first_atoms(index, part)
            for _ in range(self.steps):
                atoms = next_step(index, part, atoms, np.arange(len(atoms))).atoms
            found |= np.isin(self.numbers, atoms + start * index.constants)
        return torch.from_numpy(found)


def batches(index: FactIndex, queries: PathQueries) -> Iterator[tuple[int, PathQueries]]:
    """The queries, some at once, each time with the number of the first."""
    size = max(1, min(QUERIES_AT_ONCE, ATOMS_AT_ONCE // max(1, index.constants)))
    for start in range(0, len(queries), size):
        yield start, queries.part(start, size)


@dataclass(frozen=True, eq=False)
class _Block:
    """The ground rules of some queries: slices of queries, pairs, sources, atoms before and after the step."""

    queries: slice
    pairs: slice
    sources: slice
    before: slice
    atoms: slice


@dataclass(frozen=True, eq=False)
class _Incidence:
    """A step as tensors; `weights` is the row of each pair's w_r in a table of the distinct predicates asked."""

    step: PathStep
    source: Tensor
    weights: Tensor
    starts: Tensor
    targets: Tensor
    ends: Tensor
    arriving: Tensor
    going: Tensor
    pairs_of_source: Tensor
    before: Tensor
    heads: Tensor

    @classmethod
    def from_step(cls, step: PathStep, heads: np.ndarray, query: "Asked") -> "_Incidence":
        of_query, predicate = np.divmod(step.predicate, len(query.facts))
        arrays = step.source, of_query, predicate, step.starts, step.targets, step.ends, step.arriving, step.going
        source, of_query, predicate, *others = _tensors(query.each.device, *arrays)
        weights = query.owner[of_query] * len(query.facts) + predicate
        more = _tensors(query.each.device, step.pairs_of_source, step.before.astype(np.int64), heads)
        return cls(step, source, weights, *others, *more)

    def blocks(self) -> Iterator[_Block]:
        for first, end in pairwise(self.step.blocks.tolist()):
            yield _Block(*map(slice, first, end))

    def products(self, block: _Block, atoms: Tensor, table: Tensor) -> Tensor:
        """The message of each pair: it goes to all atoms that a fact of the pair leads to."""
        own = atoms.index_select(0, self.source[block.pairs])
        return own.mul_(table.index_select(0, self.weights[block.pairs]))

    def inputs(self, block: _Block, atoms: Tensor, table: Tensor, asked: Tensor) -> tuple[Tensor, Tensor]:
        """Emb(a) and the sum of messages of the atoms of a block."""
        size, first = block.atoms.stop - block.atoms.start, block.atoms.start
        products = self.products(block, atoms, table)
        own = atoms.new_zeros(size, atoms.shape[1])
        own.index_copy_(0, self.before[block.before] - first, atoms[block.before])
        sums = _bag_sums(products, self.arriving, self.ends, block.atoms, block.pairs)
        return own, sums.index_add_(0, self.heads[block.queries] - first, asked[block.queries])


class _PathPass(torch.autograd.Function):
    """A layer, block by block of queries, so that all between its input and output stays in the cache.

    Only the arguments are kept for the backward pass, which computes the rest again.
    """

    @staticmethod
    def forward(ctx, incidence: _Incidence, atoms: Tensor, table: Tensor, asked: Tensor, *update: Tensor) -> Tensor:
        ctx.incidence = incidence
        ctx.save_for_backward(atoms, table, asked, *update)
        out = atoms.new_empty(len(incidence.step.atoms), atoms.shape[1])
        for block in incidence.blocks():
            own, sums = incidence.inputs(block, atoms, table, asked)
            torch.add(_normed(own, sums, *update)[1].relu_(), own, out=out[block.atoms])
        return out

    @staticmethod
    def backward(ctx, *grads: Tensor) -> tuple[Tensor | None, ...]:
        incidence: _Incidence = ctx.incidence
        atoms, table, asked, *update = ctx.saved_tensors
        own_weight, message_weight, bias, scale, shift = update
        to_atoms, to_table, to_asked = map(torch.zeros_like, (atoms, table, asked))
        to_update = tuple(map(torch.zeros_like, update))
        every = torch.arange(len(incidence.source), dtype=torch.int32, device=atoms.device)
        for block in incidence.blocks():
            grad, (own, sums) = grads[0][block.atoms], incidence.inputs(block, atoms, table, asked)
            updated, normed, mean, deviation = _normed(own, sums, *update)
            kept = torch.ops.aten.threshold_backward(grad, normed, 0)
            parts = kept, updated, bias.shape, mean, deviation, scale, shift
            to_updated, *to_norm = torch.ops.aten.native_layer_norm_backward(*parts, [True] * 3)
            to_maps = to_updated.t() @ own, to_updated.t() @ sums, to_updated.sum(0)
            for total, part in zip(to_update, (*to_maps, *to_norm), strict=True):
                total.add_(part)
            first, to_sums = block.atoms.start, to_updated @ message_weight
            before = incidence.before[block.before] - first
            to_atoms[block.before] = torch.addmm(grad, to_updated, own_weight).index_select(0, before)
            to_asked[block.queries] = to_sums.index_select(0, incidence.heads[block.queries] - first)
            products = _bag_sums(to_sums, incidence.targets, incidence.starts, block.pairs, block.atoms)
            source, weights = incidence.source[block.pairs], incidence.weights[block.pairs]
            to_table.index_add_(0, weights, atoms.index_select(0, source).mul_(products))
            products.mul_(table.index_select(0, weights))
            at_sources = _bag_sums(products, every, incidence.pairs_of_source, block.sources, block.pairs)
            to_atoms.index_add_(0, incidence.going[block.sources], at_sources)
        return None, to_atoms, to_table, to_asked, *to_update


EPSILON = 1e-5  # of the layer norm


def _normed(
    own: Tensor, sums: Tensor, own_weight: Tensor, message_weight: Tensor, bias: Tensor, scale: Tensor, shift: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """W [Emb(a), sum of messages], its layer norm, and what the gradient of that reads."""
    updated = torch.addmm(torch.addmm(bias, own, own_weight.t()), sums, message_weight.t())
    return updated, *torch.native_layer_norm(updated, bias.shape, scale, shift, EPSILON)


def _tensors(device: torch.device, *arrays: np.ndarray) -> tuple[Tensor, ...]:
    return tuple(torch.from_numpy(array).to(device) for array in arrays)


def _bag_sums(table: Tensor, members: Tensor, starts: Tensor, bags: slice, rows: slice) -> Tensor:
    """The sums over the members of some bags, which are in these `rows` of a table that begins with the first."""
    own = starts[bags.start : bags.stop + 1]
    some = members[int(own[0]) : int(own[-1])]
    return embedding_bag(some - rows.start, table, own - own[0], mode="sum", include_last_offset=True)


class PathLayer(nn.Module):
    """Eqs. 2-5 with MLP^1 and MLP^2 shared over the asked predicate q through its embedding e_q.

    The message of r(z, y) is Emb(q(h, z)) * w_r, where w is a linear map of e_q; Emb(a) + relu(LayerNorm(W [Emb(a),
    sum of messages])) is the new embedding of an atom. At q(h, h), e_q is one of the messages.
    """

    def __init__(self, predicates: int, dim: int) -> None:
        """Messages are about the embeddings themselves at the start."""
        super().__init__()
        self.weights = nn.Linear(dim, predicates * dim)
        self.update = nn.Linear(2 * dim, dim)
        self.norm = nn.LayerNorm(dim, eps=EPSILON)
        nn.init.normal_(self.weights.weight, std=dim**-0.5)
        nn.init.ones_(self.weights.bias)

    def forward(self, atoms: Atoms, step: PathStep, heads: np.ndarray, query: "Asked") -> Float[Tensor, "reached dim"]:
        """The embeddings after a step; `heads` are the rows of the q(h, h) after it."""
        table = self.weights(query.distinct).view(len(query.distinct), -1, atoms.shape[1])[:, query.facts]
        incidence = _Incidence.from_step(step, heads, query)
        maps = (part.contiguous() for part in self.update.weight.split(atoms.shape[1], dim=1))
        update = *maps, self.update.bias, self.norm.weight, self.norm.bias
        return _PathPass.apply(incidence, atoms, table.flatten(0, 1), query.each, *update)


@dataclass(frozen=True, eq=False)
class Asked:
    """Embeddings of a batch of queries: the `distinct` e_q, the one that each query owns, and all in order.

    `facts` are the predicates that facts have, by their index in the training.
    """

    distinct: Float[Tensor, "distinct dim"]
    owner: Int64[Tensor, " queries"]
    each: Float[Tensor, "queries dim"]
    facts: Int64[Tensor, " predicates"]


@dataclass(frozen=True, eq=False)
class PathLogits:
    """The atoms that paths reach, as numbers `query * constants + y`, ascending, with their logits.

    `alone` is what the facts of each constant y say by themselves, for each distinct predicate asked, and `owner` the
    one of each query. `left_out` are numbers (ascending) that lose `amounts` of it: some facts of theirs are left out.
    """

    reached: Codes
    logits: Float[Tensor, " reached"]
    alone: Float[Tensor, "constants distinct"]
    owner: Int64[Tensor, " queries"]
    left_out: Codes
    amounts: Float[Tensor, " left_out"]

    def of_each(self, numbers: Codes) -> Float[Tensor, " numbers"]:
        """What the facts of y alone say of atoms, whether paths reach them or not."""
        query, y = _tensors(self.alone.device, *np.divmod(numbers, len(self.alone)))
        cells = y.mul_(self.alone.shape[1]).add_(self.owner.index_select(0, query))
        found = self.alone.flatten().index_select(0, cells)
        if not len(self.left_out):
            return found
        at = index_among(numbers, self.left_out)
        which, rows = _tensors(found.device, np.flatnonzero(at >= 0), at[at >= 0])
        return found.index_add(0, which, self.amounts[rows], alpha=-1)

    def of(self, numbers: Codes, unreached: float = UNREACHED) -> Float[Tensor, " numbers"]:
        """The logits of atoms, reached or not; an unreached one is so far from what its facts alone say."""
        at = index_among(numbers, self.reached)
        which, rows = _tensors(self.logits.device, np.flatnonzero(at >= 0), at[at >= 0])
        return (self.of_each(numbers) + unreached).index_copy(0, which, self.logits[rows])


class PathReasoner(nn.Module):
    """Logits of the atoms q(h, y) that ground rules reach from q(h, h); no constant has a vector.

    To each logit is added what the facts of y say by themselves: m_qr for each predicate r of which there is a fact
    r(y, z), the implicit rule [r(y, z), q(h, y)]. For what no path reaches, it is all there is. `trained_ids`, on
    another problem: the index in the training of each predicate.
    """

    def __init__(self, predicates: int, dim: int, layers: int) -> None:
        """One embedding for each predicate that is asked, reciprocal ones too."""
        super().__init__()
        self.embedding = nn.Parameter(torch.randn(predicates, dim))
        self.layers = ModulesOf([PathLayer(predicates, dim) for _ in range(layers)])
        self.output = MLP((2 * dim, dim, 1))
        self.alone = nn.Parameter(torch.zeros(predicates, predicates))
        self.trained_ids = torch.arange(predicates)

    def forward(self, index: FactIndex, queries: PathQueries, width: int = 0) -> PathLogits:
        """The logits of the atoms of queries."""
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
                    promise = self._logits(atoms, query, reached // index.constants)
                rows = _most_promising(promise, reached, index, width)
            step = next_step(index, queries, reached, rows)
            heads = step.before[heads]
            atoms = layer(atoms, step, heads, query)
            reached = step.atoms
        logits = self._logits(atoms, query, reached // index.constants)
        maps = self.alone[trained_ids[distinct]][:, trained_ids]
        members, starts = _tensors(device, index.predicates, index.pairs)
        alone = embedding_bag(members, maps.t().contiguous(), starts, mode="sum", include_last_offset=True)
        lost, predicate = lost_pairs(index, queries)
        left_out, which = np.unique(lost, return_inverse=True)
        which, predicate, asked = _tensors(device, which, predicate, lost // index.constants)
        amounts = maps.new_zeros(len(left_out)).index_add(0, which, maps[owner[asked], predicate])
        found = PathLogits(reached, logits, alone, owner, left_out, amounts)
        return replace(found, logits=logits + found.of_each(reached))

    def _logits(self, atoms: Atoms, query: Asked, of_query: Codes) -> Float[Tensor, " atoms"]:
        """MLP^A([Emb(a), e_q])."""
        first = self.output.linear()[0]
        own, asked = first.weight.split(atoms.shape[1], dim=1)
        of_asked = torch.addmm(first.bias, query.each, asked.t())
        (owner,) = _tensors(atoms.device, of_query)
        hidden = torch.addmm(of_asked.index_select(0, owner), atoms, own.t())
        return self.output.after_first(hidden).squeeze(1)

    @torch.no_grad()
    def rows(
        self, index: FactIndex, queries: PathQueries, width: int, unreached: float = UNREACHED
    ) -> Float[np.ndarray, "queries constants"]:
        """The logits of the queries' atoms with each constant; `unreached` is added to those that no path reaches."""
        found = np.empty((len(queries), index.constants), np.float32)
        for start, part in batches(index, queries):
            numbers = np.arange(len(part) * index.constants)
            logits = self(index, part, width).of(numbers, unreached)
            found[start : start + len(part)] = logits.view(len(part), -1).cpu().numpy()
        return found

    def atom_logits(self, graph: FactorGraph) -> Float[Tensor, " atoms"]:
        """The logits of the atoms of a graph along paths."""
        if not isinstance(graph, PathGraph):
            raise ConfigError("this network reads graphs along paths", hint="take them from the source of its run")
        index, numbers = graph.index, graph.numbers
        found = self.embedding.new_full((len(numbers),), UNREACHED)
        for start, part in batches(index, graph.queries):
            own = numbers - start * index.constants
            which = np.flatnonzero((own >= 0) & (own < len(part) * index.constants) & (numbers >= 0))
            (rows,) = _tensors(found.device, which)
            found[rows] = self(index, part, graph.width).of(own[which])
        return found


def _most_promising(logits: Tensor, atoms: Codes, index: FactIndex, width: int) -> Int64[np.ndarray, " rows"]:
    """The rows of the `width` atoms of each query with the highest logits, ascending."""
    query = atoms // index.constants
    order = np.lexsort((-logits.cpu().numpy(), query))
    place = np.arange(len(order)) - np.searchsorted(query, query)
    return np.sort(order[place < width])
