"""Grounding along paths: ground rules [q(h, z), r(z, y), q(h, y)] over known facts r(z, y), outwards from h."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int32, Int64
from scipy.sparse import csr_array

from r2n.data.herbrand import Codes, HerbrandBase, are_among, ranges
from r2n.data.knowledge_base import Evidence
from r2n.logic.language import Language

Numbers = Int32[np.ndarray, " _"]
QUERIES_AN_EPOCH = 4096  # of a training: above, an epoch asks some of its share of the facts


@dataclass(frozen=True, slots=True)
class PathGrounder:
    """One step for each layer, at most `depth`; the `width` most promising atoms of a query go on (0: all)."""

    depth: int
    width: int

    name = "paths"
    reads_evidence = True  # every ground rule is there because a fact is known
    starts_from_queries = True


@dataclass(frozen=True, eq=False)
class FactIndex:
    """The known facts r(z, y) of binary predicates, by z and r.

    `pairs[z]` to `pairs[z + 1]` number the pairs (z, r) of a constant: `predicates` has their r, `starts` where the
    facts of each begin, `targets` the y of every fact. `reciprocals` has that of each predicate, -1 for none.
    """

    pairs: Numbers
    predicates: Numbers
    starts: Numbers
    targets: Numbers
    reciprocals: Int64[np.ndarray, " predicates"]

    @classmethod
    def from_evidence(cls, base: HerbrandBase, evidence: Evidence) -> "FactIndex":
        """Of all true facts; those of reciprocal predicates are there if the language has them."""
        predicates, arguments = base.decode(evidence.facts)
        binary = np.array([len(shape) == 2 for shape in base.shapes], bool)[predicates]
        constants = len(base.language.constants)
        return cls.from_facts(predicates[binary], arguments[binary], constants, reciprocal_predicates(base.language))

    @classmethod
    def from_facts(
        cls, predicates: np.ndarray, arguments: np.ndarray, constants: int, reciprocals: np.ndarray
    ) -> "FactIndex":
        """Facts by predicate (by index) and constants (by id), two each."""
        count = len(reciprocals)
        pair = arguments[:, 0] * count + predicates
        order = np.lexsort((arguments[:, 1], pair))
        distinct, first = np.unique(pair[order], return_index=True)
        return cls(
            np.searchsorted(distinct, count * np.arange(constants + 1)).astype(np.int32),
            (distinct % count).astype(np.int32),
            np.append(first, len(order)).astype(np.int32),
            arguments[order, 1].astype(np.int32),
            reciprocals,
        )

    @property
    def constants(self) -> int:
        """The number of constants."""
        return len(self.pairs) - 1

    @cached_property
    def facts(self) -> tuple[Numbers, Int64[np.ndarray, " _"], Numbers]:
        """The r, z and y of each fact r(z, y), in order."""
        pair = np.repeat(np.arange(len(self.predicates)), np.diff(self.starts))
        return self.predicates[pair], np.repeat(np.arange(self.constants), np.diff(self.pairs))[pair], self.targets

    def only(self, kept: Bool[np.ndarray, " facts"], constants: Codes | None = None) -> "FactIndex":
        """Some of the facts; of `constants` (ascending), which are renumbered, if they are given."""
        r, z, y = (part[kept] for part in self.facts)
        arguments, count = np.stack([z, y], axis=1).astype(np.int64), self.constants
        if constants is not None:
            arguments, count = np.searchsorted(constants, arguments), len(constants)
        return FactIndex.from_facts(r, arguments, count, self.reciprocals)

    def distances(self, start: int, most: int) -> Int64[np.ndarray, " constants"]:
        """The steps from a constant to each; `most + 1` to those that are farther."""
        found, reached = np.full(self.constants, most + 1), np.array([start])
        found[start] = 0
        for step in range(1, most + 1):
            first, end = (self.starts[self.pairs[reached + i]] for i in (0, 1))
            near = np.unique(self.targets[ranges(first, end - first)[1]])
            reached = near[found[near] > most]
            found[reached] = step
        return found


@dataclass(frozen=True, eq=False)
class PathQueries:
    """Queries q(h, ?): the predicate (by index) and h (by id) of each.

    `without` says, query by query, which constants y are left out: no fact of q(h, y) or its reciprocal is in the graph
    of this query, or (`pairs`) no fact at all that joins h and y. Or `facts` says, query by query, which facts (by
    their place in the index) are left out, each once.
    """

    predicates: Int64[np.ndarray, " queries"]
    heads: Int64[np.ndarray, " queries"]
    without: tuple[Int64[np.ndarray, " _"], Int64[np.ndarray, " _"]] | None = None
    pairs: bool = False
    facts: tuple[Int64[np.ndarray, " _"], Int64[np.ndarray, " _"]] | None = None

    def __len__(self) -> int:
        return len(self.heads)

    def part(self, start: int, size: int) -> "PathQueries":
        """Some of the queries, the first of them with number 0."""
        parts, own = list[tuple[np.ndarray, np.ndarray] | None](), slice(start, start + size)
        for part in (self.without, self.facts):
            inside = slice(0) if part is None else (part[0] >= start) & (part[0] < start + size)
            parts.append(None if part is None else (part[0][inside] - start, part[1][inside]))
        return PathQueries(self.predicates[own], self.heads[own], parts[0], self.pairs, parts[1])


@dataclass(frozen=True, eq=False)
class PathStep:
    """The ground rules of one step of a batch of queries.

    An atom q(h, y) is the number `query * constants + y`: `atoms` are those that are reached after the step, ascending,
    `before` the rows among them of those that the step began with, and `going` those of these whose facts are followed.
    A message belongs to a pair of an atom q(h, z) and a predicate r: it goes to all atoms q(h, y) with a fact r(z, y).
    `source` is the row of its q(h, z) before the step, `predicate` is `query * predicates + r`, and
    `targets[starts[i] : starts[i + 1]]` are the rows of the atoms it goes to; `arriving` and `ends` are the same sorted
    by atom: the pairs of each. The pairs of each atom that goes on begin at `pairs_of_source`. `blocks` cut the queries
    in parts of about equally many ground rules: the first query, pair, atom that goes on, atom before, and atom after.
    """

    atoms: Int64[np.ndarray, " atoms"]
    before: Numbers
    going: Int64[np.ndarray, " going"]
    source: Int64[np.ndarray, " pairs"]
    pairs_of_source: Numbers
    predicate: Numbers
    starts: Numbers
    targets: Numbers
    ends: Numbers
    arriving: Numbers
    blocks: Int64[np.ndarray, "blocks_and_end 5"]

    def __len__(self) -> int:
        """The number of ground rules."""
        return len(self.targets)


def reciprocal_predicates(language: Language) -> Int64[np.ndarray, " predicates"]:
    """The reciprocal of each predicate, by index, -1 for none."""
    found = np.full(len(language.predicates), -1, np.int64)
    for i, predicate in enumerate(language.predicates):
        if predicate.reciprocal_of is not None:
            other = language.predicate_index(predicate.reciprocal_of)
            found[i], found[other] = other, i
    return found


GROUND_RULES_IN_A_BLOCK = 4096  # with 32 dimensions, what a block computes with stays in the cache


def first_atoms(index: FactIndex, queries: PathQueries) -> Codes:
    """The atoms q(h, h)."""
    return np.arange(len(queries)) * index.constants + queries.heads


def next_step(index: FactIndex, queries: PathQueries, atoms: Codes, rows: Int64[np.ndarray, " _"]) -> PathStep:
    """One step outwards from some `rows` of the atoms that are reached; all of them stay."""
    query, z = np.divmod(atoms[rows], index.constants)
    pairs_of_source = index.pairs[z + 1] - index.pairs[z]
    source, pair = ranges(index.pairs[z], pairs_of_source)
    of_query, sizes = query[source], index.starts[pair + 1] - index.starts[pair]
    owner, fact = ranges(index.starts[pair], sizes)
    found = (of_query * index.constants)[owner] + index.targets[fact]
    if queries.without is not None or queries.facts is not None:
        if queries.facts is None:
            kept = ~left_out(index, queries, z[source][owner], index.predicates[pair][owner], found)
        else:
            out, every = queries.facts, len(index.targets)
            kept = ~are_among(of_query[owner] * every + fact, np.sort(out[0] * every + out[1]))
        found, sizes = found[kept], np.bincount(owner[kept], minlength=len(pair))
    is_reached = np.zeros(len(queries) * index.constants, bool)
    is_reached[found] = is_reached[atoms] = True
    reached = np.flatnonzero(is_reached)
    row = np.empty(len(is_reached), np.int32)
    row[reached] = np.arange(len(reached), dtype=np.int32)
    targets, starts = row[found], _starts(sizes)
    shape = len(pair), len(reached)
    by_atom = csr_array((np.ones(len(targets), np.int8), targets, starts), shape=shape).tocsc()
    every = np.arange(len(queries) + 1)
    pairs, sources = np.searchsorted(of_query, every), np.searchsorted(query, every)
    first_rules = starts[pairs]
    cuts = np.searchsorted(first_rules, np.arange(0, first_rules[-1], GROUND_RULES_IN_A_BLOCK))
    cuts = np.unique(np.append(cuts, [0, len(queries)]))
    before, after = (np.searchsorted(part, every * index.constants) for part in (atoms, reached))
    return PathStep(
        reached,
        row[atoms],
        rows,
        rows[source],
        _starts(pairs_of_source),
        (of_query * len(index.reciprocals) + index.predicates[pair]).astype(np.int32),
        starts,
        targets,
        by_atom.indptr,
        by_atom.indices,
        np.stack([every[cuts], pairs[cuts], sources[cuts], before[cuts], after[cuts]], axis=1),
    )


def lost_pairs(index: FactIndex, queries: PathQueries) -> tuple[Codes, Codes]:
    """The predicates r of which y has a fact r(y, z), but none that its query does not leave out.

    For each, the number `query * constants + y`, and r.
    """
    if queries.facts is not None:
        pair = np.searchsorted(index.starts, queries.facts[1], side="right") - 1
        distinct, number = np.unique(queries.facts[0] * len(index.predicates) + pair, return_counts=True)
        of_query, pair = np.divmod(distinct, len(index.predicates))
        is_lost = number == index.starts[pair + 1] - index.starts[pair]
        y = np.searchsorted(index.pairs, pair, side="right") - 1
        return (of_query * index.constants + y)[is_lost], index.predicates[pair].astype(np.int64)[is_lost]
    query, y = queries.without or (np.zeros(0, np.int64),) * 2
    owner, pair = ranges(index.pairs[y], index.pairs[y + 1] - index.pairs[y])
    is_single = index.starts[pair + 1] - index.starts[pair] == 1
    owner, pair = owner[is_single], pair[is_single]
    of_query, predicate = query[owner], index.predicates[pair].astype(np.int64)
    is_lost = index.targets[index.starts[pair]] == queries.heads[of_query]
    if not queries.pairs:
        asked, is_loop = queries.predicates[of_query], y[owner] == queries.heads[of_query]
        is_lost &= (predicate == index.reciprocals[asked]) | ((predicate == asked) & is_loop)
    return (of_query * index.constants + y[owner])[is_lost], predicate[is_lost]


def _starts(sizes: np.ndarray) -> Numbers:
    return np.concatenate([np.zeros(1, np.int32), np.cumsum(sizes, dtype=np.int32)])


def left_out(
    index: FactIndex, queries: PathQueries, z: np.ndarray, predicates: np.ndarray, found: Codes
) -> Bool[np.ndarray, " ground_rules"]:
    """Which ground rules r(z, y) their own query leaves out."""
    assert queries.without is not None
    query, y = np.divmod(found, index.constants)
    head, is_left_out = queries.heads[query], np.zeros(len(queries) * index.constants, bool)
    is_left_out[queries.without[0] * index.constants + queries.without[1]] = True
    forth, back = (z == head) & is_left_out[found], (y == head) & is_left_out[found - y + z]
    if queries.pairs:
        return forth | back
    asked = queries.predicates[query]
    return forth & (predicates == asked) | back & (predicates == index.reciprocals[asked])
