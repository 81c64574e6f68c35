"""Searches for rules in a step graph: paths as bodies, and rules with constants.

A search yields its `Part`s: (parts done, parts in all, what was found), with nothing found where a part begins.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Int64
from scipy.sparse import csr_array, vstack

from r2n.data.herbrand import RowIndex
from r2n.data.knowledge_base import KnowledgeBase
from r2n.errors import DataError
from r2n.grounding.counting import returns_to_first_step, row_of_entries, without_diagonal
from r2n.logic.language import Domain, Language, Predicate
from r2n.mining.mined_rules import MOST_STEPS, Found, MiningOptions

MOST_MEETINGS = 20_000_000
"""Members that the ends of one part of the search share with other ends, each counted once for each."""

Part = tuple[int, int, Found | None]


@dataclass(frozen=True, eq=False)
class StepGraph:
    """The true facts of the binary predicates as directed steps between constants (by id), without loops.

    Step 2i leads from x to y if the i-th predicate holds of (x, y), step 2i + 1 from y to x. `steps` are matrices
    (constants, constants) of ones. `known_first` (predicates, constants) is 1 if p(x, .) is known for some second
    constant, loops included. `pairs` indexes `between`, the predicate of each fact, by the key x * constants + y.
    """

    language: Language
    predicates: tuple[Predicate, ...]
    steps: tuple[csr_array, ...]
    known_first: csr_array
    pairs: RowIndex
    between: Int64[np.ndarray, " facts"]

    @classmethod
    def from_knowledge(cls, knowledge: KnowledgeBase) -> "StepGraph":
        """The graph of the evidence of a knowledge base, never of queries."""
        language, predicates = knowledge.language, binary_predicates(knowledge)
        constants = len(language.constants)
        facts = [knowledge.facts(predicate) for predicate in predicates]
        if not any(map(len, facts)):
            hint = "give the problem facts: [facts] train ="
            raise DataError("there is no true fact of a binary predicate to mine", hint=hint)
        no_loops = [rows[rows[:, 0] != rows[:, 1]] for rows in facts]
        steps = [
            _ones(rows[:, start], rows[:, 1 - start], (constants, constants)) for rows in no_loops for start in (0, 1)
        ]
        known = [_ones(np.zeros_like(rows[:, 0]), rows[:, 0], (1, constants)) for rows in facts]
        keys = np.concatenate([rows[:, 0] * constants + rows[:, 1] for rows in no_loops])
        index = np.repeat(np.arange(len(no_loops)), [len(rows) for rows in no_loops])
        order = np.argsort(keys, kind="stable")
        first = csr_array(vstack(known))
        return cls(language, predicates, tuple(steps), first, RowIndex.from_rows(keys[order]), index[order])

    @property
    def constants(self) -> int:
        """The number of constants of the language."""
        return len(self.language.constants)

    def facts_between(self, x: np.ndarray, y: np.ndarray) -> tuple[Int64[np.ndarray, " _"], Int64[np.ndarray, " _"]]:
        """The facts between pairs of constants: for each the index of its pair, and its predicate."""
        which, fact = self.pairs.entries(x * self.constants + y)
        return which, self.between[fact]

    @cached_property
    def edges(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All steps as columns: from x, which step, to c."""
        step = np.repeat(np.arange(len(self.steps)), [matrix.nnz for matrix in self.steps])
        x = np.concatenate([row_of_entries(matrix) for matrix in self.steps]).astype(np.int64)
        return x, step, np.concatenate([matrix.indices for matrix in self.steps]).astype(np.int64)

    @cached_property
    def leaving(self) -> csr_array:
        """How many constants each step leads to from each constant: (steps, constants)."""
        return csr_array(vstack([csr_array(np.diff(step.indptr)[None, :]) for step in self.steps]))

    @cached_property
    def inside(self) -> dict[Domain, Bool[np.ndarray, " constants"]]:
        """For each domain of a binary predicate, which constants are in it."""
        domains = dict.fromkeys(domain for predicate in self.predicates for domain in predicate.domains)
        every = np.arange(self.constants)
        return {domain: np.isin(every, self.language.members(domain)) for domain in domains}

    @cached_property
    def concluded(self) -> Bool[np.ndarray, " predicates"]:
        """Which predicates rules may conclude: of a closed one all is known already."""
        return np.array([not predicate.closed for predicate in self.predicates], bool)


def binary_predicates(knowledge: KnowledgeBase) -> tuple[Predicate, ...]:
    """The binary predicates but reciprocals, which state nothing new."""
    found = tuple(p for p in knowledge.language.predicates if p.arity == 2 and p.reciprocal_of is None)
    if not found:
        what = "the problem has no binary predicate, and rules are mined from facts p(x, y)"
        raise DataError(what, hint="give it facts of predicates with two positions")
    return found


def _ones(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> csr_array:
    """A matrix that is 1 at these entries, also at those that are given several times."""
    matrix = csr_array((np.ones(len(rows), np.int64), (rows, columns)), shape=shape)
    matrix.data[:] = 1
    return matrix


@dataclass(frozen=True, eq=False)
class PathBody:
    """A path of steps, and how many walks lead from x to y over distinct constants.

    `counts` (constants, constants) is off the diagonal and may store zeros. Only the rows `counted_from` (ids of
    constants) are filled, of the `first_constants` many that the first step leaves.
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
        """The paths of one step more that lead anywhere; the prefix has one step or two."""
        walks = np.asarray(self.graph.leaving @ prefix.counts.sum(axis=0))
        for last in np.flatnonzero(walks).tolist():
            steps, matrix = (*prefix.steps, last), self.graph.steps[last]
            counted, counts = prefix.counted_from, prefix.counts
            share = self.most_walks / int(walks[last])
            if share < 1:  # a random share of the first constants: one path, one sample per seed
                number, rng = max(1, int(share * len(counted))), np.random.default_rng([self.seed, *steps])
                counted = np.sort(rng.choice(counted, number, replace=False))
                counts = _with_rows(counts, counted)
            counts = csr_array(counts @ matrix)
            if len(steps) == MOST_STEPS:
                first, second = (self.graph.steps[step] for step in prefix.steps)
                if len(counted) < prefix.first_constants:
                    first = _with_rows(first, counted)
                counts = csr_array(counts - returns_to_first_step(first, second, matrix))
            yield PathBody(steps, without_diagonal(counts), counted, prefix.first_constants)


def _with_rows(matrix: csr_array, rows: np.ndarray) -> csr_array:
    """The matrix with only these of its rows filled."""
    lengths = np.diff(matrix.indptr)
    kept = np.zeros(len(lengths), bool)
    kept[rows] = True
    entries = np.repeat(kept, lengths)
    starts = np.concatenate([[0], np.cumsum(lengths * kept)])
    return csr_array((matrix.data[entries], matrix.indices[entries], starts), shape=matrix.shape)


def count_heads(graph: StepGraph, path: PathBody) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Support, body pairs and PCA pairs of a path, within the domains of each predicate as head: (predicates,) each."""
    x, y = path.pairs()
    support = np.bincount(graph.facts_between(x, y)[1], minlength=len(graph.predicates))
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


def path_rules(graph: StepGraph, path: PathBody, options: MiningOptions) -> Found:
    """The rules of a path as body that pass the options."""
    support, body_pairs, pca_pairs = count_heads(graph, path)
    passes = (support >= options.min_support) & (support >= options.min_confidence * body_pairs)
    passes &= graph.concluded
    if len(path.steps) == 1 and path.steps[0] % 2 == 0:
        passes[path.steps[0] // 2] = False  # p(x, y) -> p(x, y)
    heads = np.flatnonzero(passes)
    sample = (len(path.counted_from), path.first_constants) if path.is_sampled else (0, 0)
    return Found(
        np.stack([2 * heads, np.full_like(heads, -1)], axis=1),
        np.tile(np.array(path.steps, np.int64), (len(heads), 1)),
        *(counts[heads] for counts in (support, body_pairs, pca_pairs)),
        sample=np.tile(np.array(sample, np.int64), (len(heads), 1)),
    )


def paths_from(walker: PathWalker, prefix: PathBody, length: int) -> Iterator[PathBody]:
    """The paths of a length that begin with a prefix; one without any walk is not extended."""
    if len(prefix.steps) == length:
        yield prefix
        return
    for longer in walker.extended(prefix):
        yield from paths_from(walker, longer, length)


def search_paths(walker: PathWalker, length: int, options: MiningOptions) -> Iterator[Part]:
    """The rules with bodies of `length` steps; a part of the search is a first step."""
    total = len(walker.graph.steps)
    for step in range(total):
        yield step, total, None
        for path in paths_from(walker, walker.single(step), length):
            yield step, total, path_rules(walker.graph, path, options)


def _entries_at(matrix: csr_array, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The entries at pairs of a row and a column; scipy gives no array for none of them."""
    return matrix[rows, columns] if len(rows) else np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Ends:
    """The sets {x: a step leads from x to c} that have enough members: {x: p(x, c)} and {y: p(c, y)}.

    Each is an end: a `step` and a `constant`; `members` (ends, constants) is 1 if x is in it. No c is in its own set.
    """

    graph: StepGraph
    step: Int64[np.ndarray, " ends"]
    constant: Int64[np.ndarray, " ends"]
    members: csr_array

    @classmethod
    def from_graph(cls, graph: StepGraph, least: int) -> "Ends":
        """The ends with at least so many members."""
        x, step, c = graph.edges
        keys, end, sizes = np.unique(step * graph.constants + c, return_inverse=True, return_counts=True)
        kept = sizes >= least
        entries, number = kept[end], np.cumsum(kept) - 1
        members = _ones(number[end[entries]], x[entries], (int(kept.sum()), graph.constants))
        return cls(graph, *np.divmod(keys[kept], graph.constants), members)

    def __len__(self) -> int:
        return len(self.step)

    def find(self, step: np.ndarray, constant: np.ndarray) -> np.ndarray:
        """The number of each end, -1 if it has too few members."""
        keys, wanted = self.step * self.graph.constants + self.constant, step * self.graph.constants + constant
        index = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[index] == wanted, index, -1)

    @cached_property
    def is_concluded(self) -> Bool[np.ndarray, " ends"]:
        """Whether rules may conclude it as a head."""
        return self.graph.concluded[self.step // 2]

    @cached_property
    def inside(self) -> Bool[np.ndarray, "domains constants"]:
        """Which constants are in each domain of `graph.inside`, in its order."""
        return np.array(list(self.graph.inside.values()))

    @cached_property
    def domain(self) -> Int64[np.ndarray, " ends"]:
        """The domain of its x in an atom, by its index in `graph.inside`."""
        number = {domain: i for i, domain in enumerate(self.graph.inside)}
        of_step = [number[domain] for predicate in self.graph.predicates for domain in predicate.domains]
        return np.array(of_step, np.int64)[self.step]

    def found(self, options: MiningOptions, head: np.ndarray, body: np.ndarray, *counts: np.ndarray) -> Found:
        """The rules with enough confidence, of heads (ends) and bodies (a step, and a constant or -1).

        The counts are support, body pairs, and the pairs among them whose x has a known fact of the head's predicate;
        the x of a pair of p(c, y) is c, which has one.
        """
        support, body_pairs, known_pairs = counts
        pca_pairs = np.where(self.step[head] % 2 == 0, known_pairs, body_pairs)
        rows = np.flatnonzero(support >= options.min_confidence * body_pairs)
        heads, none = np.stack([self.step, self.constant], axis=1)[head[rows]], np.zeros((len(rows), 2), np.int64)
        return Found(heads, body[rows], support[rows], body_pairs[rows], pca_pairs[rows], none)

    def with_constant_bodies(self, start: int, stop: int, options: MiningOptions) -> Found:
        """Rules p(x, c) <- q(x, d), ends that share members, whose bodies are the ends from `start` to `stop`."""
        graph = self.graph
        shared = csr_array(self.members[start:stop] @ self.members.T).tocoo()
        body, head = shared.coords[0].astype(np.int64) + start, shared.coords[1].astype(np.int64)
        kept = (shared.data >= options.min_support) & (body != head) & self.is_concluded[head]
        body, head, support = body[kept], head[kept], shared.data[kept]
        predicate, constant, domain = self.step[head] // 2, self.constant[head], self.domain[head]
        itself = _entries_at(self.members, body, constant) > 0  # x = c is no substitution
        body_pairs = self._inside[domain, body] - (itself & self.inside[domain, constant])
        known = csr_array(self.members[start:stop] @ graph.known_first.T).toarray()[body - start, predicate]
        known -= itself & (_entries_at(graph.known_first, predicate, constant) > 0)
        columns = np.stack([self.step[body], self.constant[body]], axis=1)
        return self.found(options, head, columns, support, body_pairs, known)

    def with_variable_bodies(self, start: int, stop: int, options: MiningOptions) -> Found:
        """Rules p(x, c) <- q(x, z) whose heads are the ends from `start` to `stop`: z is neither x nor c."""
        graph = self.graph
        having = csr_array(self.members[start:stop] @ self._has_step.T - self._single_members[start:stop]).tocoo()
        head, body = having.coords[0].astype(np.int64) + start, having.coords[1].astype(np.int64)
        kept = (having.data >= options.min_support) & self.is_concluded[head]
        head, body, support = head[kept], body[kept], having.data[kept]
        predicate, constant, domain = self.step[head] // 2, self.constant[head], self.domain[head]
        itself = _entries_at(graph.leaving, body, constant) > 0  # x = c is no substitution
        inside, single_inside, known, single_known = self._totals
        target = body * graph.constants + constant
        body_pairs = inside[domain, body] - _entries_at(single_inside, domain, target)
        body_pairs -= itself & self.inside[domain, constant]
        known_pairs = known[predicate, body] - _entries_at(single_known, predicate, target)
        known_pairs -= itself & (_entries_at(graph.known_first, predicate, constant) > 0)
        columns = np.stack([body, np.full_like(body, -1)], axis=1)
        return self.found(options, head, columns, support, body_pairs, known_pairs)

    @cached_property
    def _inside(self) -> Int64[np.ndarray, "domains ends"]:
        """How many members of each end are in each domain."""
        return (self.members @ self.inside.T).T

    @cached_property
    def _has_step(self) -> csr_array:
        """1 if a step leaves a constant: (steps, constants)."""
        leaving = self.graph.leaving.copy()
        leaving.data[:] = 1
        return leaving

    @cached_property
    def _single(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The steps from x to c that are the only one of their kind from x, as columns x, step, c."""
        x, step, c = self.graph.edges
        single = _entries_at(self.graph.leaving, step, x) == 1
        return x[single], step[single], c[single]

    @cached_property
    def _single_members(self) -> csr_array:
        """How many members of an end have a single step to its own constant: (ends, steps)."""
        graph, (x, step, c) = self.graph, self._single
        columns = []
        for direction, (first, second) in enumerate(((x, c), (c, x))):
            which, predicate = graph.facts_between(first, second)
            end = self.find(2 * predicate + direction, c[which])
            columns.append(np.stack([end, step[which]])[:, end >= 0])
        end, body = np.concatenate(columns, axis=1)
        return csr_array((np.ones(len(end), np.int64), (end, body)), shape=(len(self), len(graph.steps)))

    @cached_property
    def _totals(self) -> tuple[np.ndarray, csr_array, np.ndarray, csr_array]:
        """How many x of each domain have each step, and how many only to c; the same for x with a known head."""
        graph, (x, step, c) = self.graph, self._single
        shape, totals = (graph.constants, len(graph.steps) * graph.constants), []
        steps_to = csr_array((np.ones(len(x), np.int64), (x, step * graph.constants + c)), shape=shape)
        for groups in (csr_array(self.inside.astype(np.int64)), graph.known_first):
            single = csr_array(groups @ steps_to)
            single.sort_indices()  # entries are found by bisection
            totals += [csr_array(groups @ self._has_step.T).toarray(), single]
        return totals[0], totals[1], totals[2], totals[3]


def search_constant_rules(ends: Ends, options: MiningOptions) -> Iterator[Part]:
    """The rules with a constant in the head; a part of the search is a part of the ends."""
    if not len(ends):
        return
    meetings = np.cumsum(ends.members @ ends.members.sum(axis=0))
    bounds = np.searchsorted(meetings, np.arange(0, meetings[-1], MOST_MEETINGS))
    bounds = np.unique(np.append(bounds, len(ends))).tolist()
    for part, (start, stop) in enumerate(pairwise(bounds)):
        yield part, len(bounds) - 1, None
        for search in (ends.with_constant_bodies, ends.with_variable_bodies):
            yield part, len(bounds) - 1, search(start, stop, options)
