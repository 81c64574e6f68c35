"""Searches for rules in a step graph: paths as bodies, by matrices or by queries of an engine; rules with constants.

A search yields its `Part`s: (parts done, parts in all, what was found), with nothing found where a part begins.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import sqlglot
from jaxtyping import Bool, Int64
from scipy.sparse import csr_array
from sqlglot import exp

from r2n.grounding.counting import returns_to_first_step, row_of_entries, without_diagonal
from r2n.grounding.store import Engine
from r2n.logic.language import Domain
from r2n.mining.mined_rules import Found, Thresholds
from r2n.mining.step_graph import StepGraph

MOST_MEETINGS = 20_000_000
"""Members that the ends of one part of the search share with other ends, each counted once for each."""

Part = tuple[int, int, Found | None]

MOST_STEPS = 3


@dataclass(frozen=True, eq=False)
class PathBody:
    """A path of steps, and how many ways it leads from x to y over distinct constants.

    `counts` (constants, constants) is off the diagonal and may store zeros. It is filled for the `counted_from`
    constants only (their ids), of the `first_constants` many that the first step leaves.
    """

    steps: tuple[int, ...]
    counts: csr_array
    counted_from: Int64[np.ndarray, " counted"]
    first_constants: int

    @property
    def is_sampled(self) -> bool:
        """Whether only a sample of the first constants was counted from."""
        return len(self.counted_from) < self.first_constants

    def pairs(self) -> tuple[Int64[np.ndarray, " pairs"], Int64[np.ndarray, " pairs"]]:
        """The distinct pairs (x, y) that are reached, as two columns."""
        reached = self.counts.data > 0
        x, y = row_of_entries(self.counts)[reached], self.counts.indices[reached]
        return x.astype(np.int64), y.astype(np.int64)


@dataclass(frozen=True)
class PathWalker:
    """Paths of a graph; those of more than `most_walks` walks are counted from a random sample of first constants."""

    graph: StepGraph
    most_walks: int
    seed: int = 0

    def single(self, step: int) -> PathBody:
        """The path of one step."""
        matrix = self.graph.steps[step]
        first = np.flatnonzero(np.diff(matrix.indptr))
        return PathBody((step,), matrix, first, len(first))

    def extended(self, prefix: PathBody) -> Iterator[PathBody]:
        """The paths of one step more that are walked at all; the prefix has one step or two."""
        walks = np.asarray(self.graph.leaving @ prefix.counts.sum(axis=0))
        for last in np.flatnonzero(walks).tolist():
            share = self.most_walks / int(walks[last])
            steps = (*prefix.steps, last)
            yield self._extended_by(prefix if share >= 1 else self._sampled(prefix, steps, share), last)

    def _extended_by(self, prefix: PathBody, last: int) -> PathBody:
        steps, matrix = (*prefix.steps, last), self.graph.steps[last]
        counts = csr_array(prefix.counts @ matrix)
        if len(steps) == MOST_STEPS:
            first, second = (self.graph.steps[step] for step in prefix.steps)
            if prefix.is_sampled:
                first = _with_rows(first, prefix.counted_from)
            counts = csr_array(counts - returns_to_first_step(first, second, matrix))
        return PathBody(steps, without_diagonal(counts), prefix.counted_from, prefix.first_constants)

    def _sampled(self, prefix: PathBody, steps: tuple[int, ...], share: float) -> PathBody:
        """A prefix from a random share of the constants that it is counted from; one path, one sample for a seed."""
        number = max(1, int(share * len(prefix.counted_from)))
        rng = np.random.default_rng([self.seed, *steps])
        chosen = np.sort(rng.choice(prefix.counted_from, number, replace=False))
        return PathBody(prefix.steps, _with_rows(prefix.counts, chosen), chosen, prefix.first_constants)


def _with_rows(matrix: csr_array, rows: np.ndarray) -> csr_array:
    """The matrix with only these of its rows filled."""
    lengths = np.diff(matrix.indptr)
    kept = np.zeros(len(lengths), bool)
    kept[rows] = True
    entries = np.repeat(kept, lengths)
    starts = np.concatenate([[0], np.cumsum(lengths * kept)])
    return csr_array((matrix.data[entries], matrix.indices[entries], starts), shape=matrix.shape)


def count_heads(graph: StepGraph, path: PathBody) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Support, body pairs and PCA pairs of a path for every predicate as head: int64 (predicates,) each.

    Pairs outside the domains of a head are no pairs of its: there is no such atom.
    """
    x, y = path.pairs()
    support = np.bincount(graph.facts.among(x * graph.constants + y)[1], minlength=len(graph.predicates))
    body_pairs, pca_pairs = np.zeros_like(support), np.zeros_like(support)
    for domains in dict.fromkeys(predicate.domains for predicate in graph.predicates):
        which = np.array([predicate.domains == domains for predicate in graph.predicates])
        if not support[which].any():
            continue
        first, second = (graph.inside[domain] for domain in domains)
        reached = np.bincount(x[first[x] & second[y]], minlength=graph.constants)
        body_pairs[which] = reached.sum()
        pca_pairs[which] = (graph.known_first @ reached)[which]
    return support, body_pairs, pca_pairs


def found_of(graph: StepGraph, path: PathBody, thresholds: Thresholds) -> Found:
    """The rules of a path as body that pass the thresholds."""
    support, body_pairs, pca_pairs = count_heads(graph, path)
    passes = (support >= thresholds.min_support) & (support >= thresholds.min_confidence * body_pairs)
    passes &= graph.concluded
    if len(path.steps) == 1 and path.steps[0] % 2 == 0:
        passes[path.steps[0] // 2] = False  # p(x, y) -> p(x, y)
    heads = np.flatnonzero(passes)
    sample = (len(path.counted_from), path.first_constants) if path.is_sampled else (0, 0)
    return Found(
        np.stack([2 * heads, np.full_like(heads, -1)], axis=1),
        np.tile(np.array(path.steps, np.int64), (len(heads), 1)),
        support[heads],
        body_pairs[heads],
        pca_pairs[heads],
        np.tile(np.array(sample, np.int64), (len(heads), 1)),
    )


def paths_from(walker: PathWalker, prefix: PathBody, length: int) -> Iterator[PathBody]:
    """The paths of a length that begin with a prefix; one that leads nowhere is not extended."""
    if len(prefix.steps) == length:
        yield prefix
        return
    for longer in walker.extended(prefix):
        yield from paths_from(walker, longer, length)


def search_paths(walker: PathWalker, length: int, thresholds: Thresholds) -> Iterator[Part]:
    """The rules with bodies of so many steps; a part of the search is a first step."""
    total = len(walker.graph.steps)
    for step in range(total):
        yield step, total, None
        for path in paths_from(walker, walker.single(step), length):
            yield step, total, found_of(walker.graph, path, thresholds)


Counts = dict[tuple[int, ...], int]
"""Numbers of pairs by the steps of a path and what they were counted for."""


@dataclass(frozen=True, eq=False)
class PathCounter:
    """The steps of a graph as tables of an engine: `mined_steps` (s, x, y), and what heads are compared with."""

    engine: Engine
    graph: StepGraph

    def load(self) -> None:
        """Hand the tables over."""
        x, step, y = self.graph.edges
        self.engine.load("mined_steps", {"s": step, "x": x, "y": y})
        known = self.graph.known_first.tocoo()
        predicate, first = (np.ascontiguousarray(part, np.int64) for part in known.coords)
        self.engine.load("mined_firsts", {"p": predicate, "x": first})
        for number, inside in enumerate(self.graph.inside.values()):
            self.engine.load(f"mined_domain_{number}", {"c": np.flatnonzero(inside)})

    def pairs(self, length: int) -> str:
        """The distinct pairs that each path of a length reaches over distinct constants, as SQL."""
        steps = ", ".join(f"e{i}.s AS s{i}" for i in range(length))
        tables = "mined_steps AS e0" + "".join(
            f" JOIN mined_steps AS e{i} ON e{i - 1}.y = e{i}.x" for i in range(1, length)
        )
        nodes = ["e0.x", *(f"e{i}.y" for i in range(length))]
        apart = [f"{nodes[i]} <> {nodes[j]}" for i in range(length + 1) for j in range(i + 2, length + 1)]
        where = f" WHERE {' AND '.join(apart)}" if apart else ""
        return f"SELECT DISTINCT {steps}, e0.x AS x, e{length - 1}.y AS y FROM {tables}{where}"

    def counts(self, length: int, also: str, joined: str) -> Counts:
        """How many pairs each path of a length has, by other columns too, joined with other tables."""
        keys = [*(f"w.s{i}" for i in range(length)), *([also] if also else [])]
        named = ", ".join(f"{key} AS k{i}" for i, key in enumerate(keys))
        sql = f"SELECT {named}, COUNT(*) AS n FROM ({self.pairs(length)}) AS w {joined} GROUP BY {', '.join(keys)}"
        query = sqlglot.parse_one(sql, dialect="duckdb")
        assert isinstance(query, exp.Query)
        found = self.engine.run(query)
        columns = [found[f"k{i}"].tolist() for i in range(len(keys))]
        return dict(zip(zip(*columns, strict=True), found["n"].tolist(), strict=True))

    def within(self, domains: tuple[Domain, ...]) -> str:
        """The condition that x and y are in the domains of a head, as joins."""
        numbers = {domain: i for i, domain in enumerate(self.graph.inside)}
        return " ".join(
            f"JOIN mined_domain_{numbers[domain]} AS d{end} ON d{end}.c = w.{end}"
            for end, domain in zip("xy", domains, strict=True)
            if not self.graph.inside[domain].all()
        )

    def found(self, length: int, thresholds: Thresholds) -> Found:
        """The rules with bodies of a length that pass the thresholds."""
        heads = "JOIN mined_steps AS h ON h.x = w.x AND h.y = w.y AND h.s % 2 = 0"
        support = {key: n for key, n in self.counts(length, "h.s", heads).items() if n >= thresholds.min_support}
        rows: list[tuple[tuple[int, ...], int, int, int, int]] = []
        for domains in dict.fromkeys(predicate.domains for predicate in self.graph.predicates):
            own = {2 * p for p, predicate in enumerate(self.graph.predicates) if predicate.domains == domains}
            mine = {key: n for key, n in support.items() if key[-1] in own}
            if mine:
                within = self.within(domains)
                bodies = self.counts(length, "", within)
                pca = self.counts(length, "f.p", f"JOIN mined_firsts AS f ON f.x = w.x {within}")
                rows += [
                    (key[:-1], key[-1], n, bodies[key[:-1]], pca[*key[:-1], key[-1] // 2]) for key, n in mine.items()
                ]
        kept = sorted(
            row
            for row in rows
            if row[2] >= thresholds.min_confidence * row[3]
            and self.graph.concluded[row[1] // 2]
            and row[0] != (row[1],)  # p(x, y) -> p(x, y)
        )
        head = np.array([[row[1], -1] for row in kept], np.int64).reshape(-1, 2)
        body = np.array([row[0] for row in kept], np.int64).reshape(-1, length)
        counts = (np.array([row[i] for row in kept], np.int64) for i in (2, 3, 4))
        return Found(head, body, *counts, sample=np.zeros((len(kept), 2), np.int64))


def search_paths_by_queries(counter: PathCounter, length: int, thresholds: Thresholds) -> Iterator[Part]:
    """The rules with bodies of so many steps; nothing is sampled, and it is one part."""
    yield 0, 1, None
    yield 1, 1, counter.found(length, thresholds)


@dataclass(frozen=True, eq=False)
class Tally:
    """How often each key occurs, 0 for those that never do."""

    keys: Int64[np.ndarray, " keys"]
    counts: Int64[np.ndarray, " keys"]

    @classmethod
    def of(cls, keys: np.ndarray) -> "Tally":
        """Of keys as they occur."""
        return cls(*np.unique(keys, return_counts=True))

    @classmethod
    def of_matrix(cls, matrix: csr_array, width: int) -> "Tally":
        """Of entries, the key of an entry being row * width + column."""
        matrix = matrix.sorted_indices()
        return cls(row_of_entries(matrix).astype(np.int64) * width + matrix.indices, matrix.data)

    def at(self, keys: np.ndarray) -> np.ndarray:
        """The counts of some keys; same shape."""
        if not len(self.keys):
            return np.zeros(keys.shape, np.int64)
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.counts[place], 0)


@dataclass(frozen=True, eq=False)
class Ends:
    """The sets {x: a step leads from x to c} that have enough members: {x: p(x, c)} and {y: p(c, y)}.

    Each is an end: a `step` and a `constant`; `members` (ends, constants) is 1 where x is in it. No c is
    in its own set.
    """

    graph: StepGraph
    step: Int64[np.ndarray, " ends"]
    constant: Int64[np.ndarray, " ends"]
    members: csr_array

    @classmethod
    def of(cls, graph: StepGraph, least: int) -> "Ends":
        """Those with at least so many members."""
        x, step, c = graph.edges
        keys, end, sizes = np.unique(step * graph.constants + c, return_inverse=True, return_counts=True)
        kept = sizes >= least
        number = np.cumsum(kept) - 1
        entries = kept[end]
        members = csr_array(
            (np.ones(int(entries.sum()), np.int64), (number[end[entries]], x[entries])),
            shape=(int(kept.sum()), graph.constants),
        )
        return cls(graph, *np.divmod(keys[kept], graph.constants), members)

    def __len__(self) -> int:
        """The number of ends."""
        return len(self.step)

    def find(self, step: np.ndarray, constant: np.ndarray) -> np.ndarray:
        """The number of each end, -1 where it has too few members."""
        keys, wanted = self.step * self.graph.constants + self.constant, step * self.graph.constants + constant
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[place] == wanted, place, -1)

    @cached_property
    def is_concluded(self) -> Bool[np.ndarray, " ends"]:
        """Whether rules may conclude it as a head."""
        return self.graph.concluded[self.step // 2]

    @cached_property
    def _edges(self) -> Tally:
        x, step, c = self.graph.edges
        return Tally.of((x * len(self.graph.steps) + step) * self.graph.constants + c)

    def holds(self, end: np.ndarray, constant: np.ndarray) -> np.ndarray:
        """Whether each constant is a member of each end; bool, same shape."""
        steps = constant * len(self.graph.steps) + self.step[end]
        return self._edges.at(steps * self.graph.constants + self.constant[end]) > 0

    def known_first(self, predicate: np.ndarray, constant: np.ndarray) -> np.ndarray:
        """Whether each predicate has a known fact with this first constant; bool, same shape."""
        return self._known.at(predicate * self.graph.constants + constant) > 0

    @cached_property
    def _known(self) -> Tally:
        return Tally.of_matrix(self.graph.known_first, self.graph.constants)

    def found(
        self,
        thresholds: Thresholds,
        head: Int64[np.ndarray, " rules"],
        body: Int64[np.ndarray, "rules 2"],
        *counts: Int64[np.ndarray, " rules"],
    ) -> Found:
        """The rules with enough confidence, of heads (ends) and bodies (a step, and a constant or -1)."""
        support, body_pairs, pca_pairs = counts
        rows = np.flatnonzero(support >= thresholds.min_confidence * body_pairs)
        heads, none = np.stack([self.step, self.constant], axis=1)[head[rows]], np.zeros((len(rows), 2), np.int64)
        return Found(heads, body[rows], support[rows], body_pairs[rows], pca_pairs[rows], none)

    @cached_property
    def inside(self) -> Bool[np.ndarray, "domains constants"]:
        """Which constants are in each domain of `graph.inside`, in its order."""
        return np.array(list(self.graph.inside.values()))

    @cached_property
    def domain(self) -> Int64[np.ndarray, " ends"]:
        """The domain that its x runs over in an atom, by its number in `graph.inside`."""
        number = {domain: i for i, domain in enumerate(self.graph.inside)}
        of_step = [number[domain] for predicate in self.graph.predicates for domain in predicate.domains]
        return np.array(of_step, np.int64)[self.step]


@dataclass(frozen=True, eq=False)
class ConstantBodies:
    """Rules p(x, c) <- q(x, d): ends that share members."""

    ends: Ends

    @cached_property
    def _inside(self) -> Int64[np.ndarray, "domains ends"]:
        """How many members of each end are in each domain."""
        return (self.ends.members @ self.ends.inside.T).T

    def found(self, start: int, stop: int, thresholds: Thresholds) -> Found:
        """The rules whose bodies are the ends from `start` on, before `stop`."""
        ends, graph = self.ends, self.ends.graph
        shared = csr_array(ends.members[start:stop] @ ends.members.T).tocoo()
        body, head = shared.coords[0].astype(np.int64) + start, shared.coords[1].astype(np.int64)
        kept = (shared.data >= thresholds.min_support) & (body != head) & ends.is_concluded[head]
        body, head, support = body[kept], head[kept], shared.data[kept]
        predicate, constant, domain = ends.step[head] // 2, ends.constant[head], ends.domain[head]
        itself = ends.holds(body, constant)  # x = c is no substitution
        body_pairs = self._inside[domain, body] - (itself & ends.inside[domain, constant])
        known = csr_array(ends.members[start:stop] @ graph.known_first.T).toarray()
        knows = ends.known_first(predicate, constant)
        pca_pairs = np.where(
            ends.step[head] % 2 == 0, known[body - start, predicate] - (itself & knows), body_pairs
        )  # p(c, y): the x of the pair is c, which has a known fact
        columns = np.stack([ends.step[body], ends.constant[body]], axis=1)
        return ends.found(thresholds, head, columns, support, body_pairs, pca_pairs)


@dataclass(frozen=True, eq=False)
class VariableBodies:
    """Rules p(x, c) <- q(x, z): x has a step to some z other than x and c.

    That is every x with a step q, but those with one such step only, to c: the lonely ones.
    """

    ends: Ends

    @cached_property
    def _has_step(self) -> csr_array:
        """1 where a step leaves a constant: (steps, constants)."""
        leaving = self.ends.graph.leaving.copy()
        leaving.data[:] = 1
        return leaving

    @cached_property
    def _leaving(self) -> Tally:
        return Tally.of_matrix(self.ends.graph.leaving, self.ends.graph.constants)

    @cached_property
    def _lonely(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The steps from x to c that are the only one of their kind from x, as columns x, step, c."""
        x, step, c = self.ends.graph.edges
        alone = self._leaving.at(step * self.ends.graph.constants + x) == 1
        return x[alone], step[alone], c[alone]

    @cached_property
    def _lonely_members(self) -> csr_array:
        """How many members of an end have a lonely step to its own constant: (ends, steps)."""
        graph, (x, step, c) = self.ends.graph, self._lonely
        columns = []
        for direction, (first, second) in enumerate(((x, c), (c, x))):
            which, predicate = graph.facts.among(first * graph.constants + second)
            end = self.ends.find(2 * predicate + direction, c[which])
            columns.append(np.stack([end, step[which]])[:, end >= 0])
        end, body = np.concatenate(columns, axis=1)
        ones = np.ones(len(end), np.int64)
        return csr_array((ones, (end, body)), shape=(len(self.ends), len(graph.steps)))

    @cached_property
    def _totals(self) -> tuple[np.ndarray, Tally, np.ndarray, Tally]:
        """How many x of each domain have each step, how many of them lonely to c; the same for x with a known head."""
        graph, (x, step, c) = self.ends.graph, self._lonely
        width = len(graph.steps) * graph.constants
        ones = np.ones(len(x), np.int64)
        steps_to = csr_array((ones, (x, step * graph.constants + c)), shape=(graph.constants, width))
        inside = csr_array(self.ends.inside.astype(np.int64))
        return (
            csr_array(inside @ self._has_step.T).toarray(),
            Tally.of_matrix(csr_array(inside @ steps_to), width),
            csr_array(graph.known_first @ self._has_step.T).toarray(),
            Tally.of_matrix(csr_array(graph.known_first @ steps_to), width),
        )

    def found(self, start: int, stop: int, thresholds: Thresholds) -> Found:
        """The rules whose heads are the ends from `start` on, before `stop`."""
        ends, graph = self.ends, self.ends.graph
        having = csr_array(ends.members[start:stop] @ self._has_step.T - self._lonely_members[start:stop]).tocoo()
        head, body = having.coords[0].astype(np.int64) + start, having.coords[1].astype(np.int64)
        kept = (having.data >= thresholds.min_support) & ends.is_concluded[head]
        head, body, support = head[kept], body[kept], having.data[kept]
        predicate, constant, domain = ends.step[head] // 2, ends.constant[head], ends.domain[head]
        itself = self._leaving.at(body * graph.constants + constant) > 0  # x = c is no substitution
        inside, lonely_inside, known, lonely_known = self._totals
        target = body * graph.constants + constant
        width = len(graph.steps) * graph.constants
        body_pairs = inside[domain, body] - lonely_inside.at(domain * width + target)
        body_pairs -= itself & ends.inside[domain, constant]
        among_known = known[predicate, body] - lonely_known.at(predicate * width + target)
        among_known -= itself & ends.known_first(predicate, constant)
        pca_pairs = np.where(ends.step[head] % 2 == 0, among_known, body_pairs)
        columns = np.stack([body, np.full_like(body, -1)], axis=1)
        return ends.found(thresholds, head, columns, support, body_pairs, pca_pairs)


def search_constant_rules(ends: Ends, thresholds: Thresholds) -> Iterator[Part]:
    """The rules with a constant in the head; a part of the search is a part of the ends."""
    if not len(ends):
        return
    kinds = ConstantBodies(ends), VariableBodies(ends)
    meetings = np.cumsum(ends.members @ ends.members.sum(axis=0))
    bounds = np.searchsorted(meetings, np.arange(0, meetings[-1], MOST_MEETINGS))
    bounds = np.unique(np.append(bounds, len(ends))).tolist()
    for part, (start, stop) in enumerate(pairwise(bounds)):
        yield part, len(bounds) - 1, None
        for kind in kinds:
            yield part, len(bounds) - 1, kind.found(start, stop, thresholds)
