"""Tensors -> predictions: the atoms of a graph laid out for the pair classifier, once for all passes.

The first map of the classifier is a sum of *terms*, each of one channel: of the constant at one position, or of the
constants at two positions that share the channel. A *block* holds the atoms that have a term.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch
from jaxtyping import Float, Int64
from scipy.sparse import csr_array, hstack
from torch import Tensor

from r2n.knowledge.words import Bags
from r2n.model.atom_embedding import rows_by_predicate
from r2n.model.sparse_rows import SparseRows

COUNTS = 3  # of two texts: words in both, words in one, and the share of the former in all (Jaccard)


@dataclass(frozen=True, slots=True)
class Term:
    """A channel (by number), the positions it is read at (one, or two), and the predicate it belongs to (-1: any)."""

    channel: int
    positions: tuple[int, ...]
    predicate: int = -1

    @property
    def key(self) -> str:
        """A name for its weights."""
        owner = "shared" if self.predicate < 0 else f"predicate{self.predicate}"
        return f"{owner}-channel{self.channel}-" + "".join(f"at{i}" for i in self.positions)


@dataclass(frozen=True, eq=False)
class Block:
    """The atoms (their rows) with a term, and what it reads: rows of its channel, or the words of two texts."""

    term: Term
    atoms: Int64[Tensor, " atoms"]
    rows: Int64[Tensor, "atoms positions"]
    words: SparseRows | None = None
    counts: Float[Tensor, "atoms counts"] | None = None

    def to(self, device: torch.device) -> "Block":
        """The same on another device."""
        words = None if self.words is None else self.words.to(device)
        counts = None if self.counts is None else self.counts.to(device)
        return Block(self.term, self.atoms.to(device), self.rows.to(device), words, counts)


@dataclass(frozen=True, eq=False)
class PairLayout:
    """Atoms of one arity: their predicates, the rows of each predicate, their blocks, and the rows each channel needs.

    `used[c]` holds the rows of channel c that the blocks need; the blocks' own rows point into it. (Channels of words
    have all rows.)
    """

    predicates: Int64[Tensor, " atoms"]
    by_predicate: tuple[tuple[int, Int64[Tensor, " _"]], ...]
    blocks: tuple[Block, ...]
    used: dict[int, Int64[Tensor, " _"]]

    def to(self, device: torch.device) -> "PairLayout":
        """The same on another device."""
        return PairLayout(
            self.predicates.to(device),
            tuple((predicate, rows.to(device)) for predicate, rows in self.by_predicate),
            tuple(block.to(device) for block in self.blocks),
            {channel: rows.to(device) for channel, rows in self.used.items()},
        )


def lay_out(
    bags: Mapping[int, Bags],
    terms: Sequence[Term],
    kinds: Sequence[str],
    predicates: Int64[Tensor, " atoms"],
    places: Int64[Tensor, "channels atoms positions"],
    *,
    pairs_only: bool,
) -> PairLayout:
    """Lay out atoms; `places` are the rows of their constants in each channel, -1 where it has none.

    `bags` are those of the channels of words. `kinds` says what is read of two constants: "difference", "product" or
    both. `pairs_only`: what is read in a pair is not read by itself too.
    """
    arity = places.shape[2]
    blocks: list[Block] = []
    for term in terms:
        if max(term.positions) >= arity:
            continue
        of_channel = places[term.channel]
        has_term = (of_channel[:, list(term.positions)] >= 0).all(1)
        if term.predicate >= 0:
            has_term &= predicates == term.predicate
        if len(term.positions) == 1 and pairs_only:
            has_term &= ~_has_partner(of_channel, term.positions[0])
        atoms = has_term.nonzero().flatten()
        if len(atoms):
            rows = of_channel[atoms][:, list(term.positions)]
            blocks.append(_block(bags.get(term.channel), term, kinds, atoms, rows))
    used, blocks = _local_rows(bags, blocks)
    return PairLayout(predicates, rows_by_predicate(predicates), tuple(blocks), used)


def _has_partner(places: Int64[Tensor, "atoms positions"], position: int) -> Tensor:
    """Whether the constant at another position shares the channel, so that both are read as a pair."""
    others = [i for i in range(places.shape[1]) if i != position]
    return (places[:, others] >= 0).any(1)


def _block(bags: Bags | None, term: Term, kinds: Sequence[str], atoms: Tensor, rows: Tensor) -> Block:
    if len(term.positions) == 1 or bags is None:
        return Block(term, atoms, rows)
    left, right = rows[:, 0].numpy(), rows[:, 1].numpy()
    words = pair_of_bags(bags.known, left, right, kinds)
    counts = torch.from_numpy(pair_counts(bags, left, right))
    return Block(term, atoms, rows, SparseRows.of(words), counts)


def pair_of_bags(bags: csr_array, left: np.ndarray, right: np.ndarray, kinds: Sequence[str]) -> csr_array:
    """|a - b| and a * b of the bags of two texts each, as `kinds` say, side by side."""
    one, other = bags[left], bags[right]
    made = {"difference": abs(one - other), "product": one.multiply(other)}
    joined = csr_array(hstack([made[kind] for kind in kinds], format="csr"))
    joined.eliminate_zeros()
    return joined


def pair_counts(bags: Bags, left: np.ndarray, right: np.ndarray) -> Float[np.ndarray, "pairs counts"]:
    """How many words two texts share, in how many they differ (both as log(1 + n)), and their Jaccard similarity.

    All words count, also those that training never saw.
    """
    sizes = np.asarray(bags.every.sum(axis=1)).reshape(-1)
    shared = np.asarray(bags.every[left].multiply(bags.every[right]).sum(axis=1)).reshape(-1)
    union = sizes[left] + sizes[right] - shared
    jaccard = shared / np.maximum(union, 1)
    return np.stack([np.log1p(shared), np.log1p(union - shared), jaccard], 1).astype(np.float32)


def _local_rows(bags: Mapping[int, Bags], blocks: Sequence[Block]) -> tuple[dict[int, Tensor], list[Block]]:
    """The distinct rows that are read of each channel but those of words, and the blocks pointing into them."""
    read: dict[int, list[Tensor]] = {}
    for block in blocks:
        if block.term.channel not in bags:
            read.setdefault(block.term.channel, []).append(block.rows.flatten())
    used = {channel: torch.cat(rows).unique() for channel, rows in read.items()}
    moved = [
        Block(block.term, block.atoms, torch.searchsorted(used[block.term.channel], block.rows.contiguous()))
        if block.term.channel in used
        else block
        for block in blocks
    ]
    return used, moved


def possible_terms(
    holds: Sequence[Sequence[Sequence[tuple[bool, bool]]]], *, paired: bool, each: bool, own: bool
) -> list[Term]:
    """The terms that atoms may have.

    `holds[p][i][c]` says whether position i of predicate p can hold a constant with channel c, and one without.
    `paired`: constants that share a channel are read together; `each`: (also) each by itself; `own`: for each predicate
    apart.
    """
    found: dict[Term, None] = {}
    for p, positions in enumerate(holds):
        owner, arity = p if own else -1, len(positions)
        for c in range(len(positions[0]) if positions else 0):
            inside = [i for i in range(arity) if positions[i][c][0]]
            for i in inside:
                alone = all(positions[j][c][1] for j in range(arity) if j != i)
                if each or not paired or alone:
                    found[Term(c, (i,), owner)] = None
            if paired:
                found |= dict.fromkeys(Term(c, pair, owner) for pair in combinations(inside, 2))
    return list(found)
