"""Facts -> mined rules: p(x, c) <- q(x, d), p(x, c) <- q(x, z) and their mirrors, all terms distinct but c and d."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Int64
from scipy.sparse import csr_array

from r2n.mining.ends import Ends, Tally, edges
from r2n.mining.mined_rules import Found
from r2n.mining.search import Clock, Search, Thresholds, best_of

MOST_MEETINGS = 20_000_000
"""Members that the ends of one part of the search share with other ends, each counted once for each."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """Rules that have enough support: head (an end), body (a step, a constant or -1), and the counts."""

    head: Int64[np.ndarray, " rules"]
    body: Int64[np.ndarray, "rules 2"]
    support: Int64[np.ndarray, " rules"]
    body_pairs: Int64[np.ndarray, " rules"]
    pca_pairs: Int64[np.ndarray, " rules"]

    def found(self, ends: Ends, min_confidence: float) -> Found:
        """Those with enough confidence."""
        rows = np.flatnonzero(self.support >= min_confidence * self.body_pairs)
        head = np.stack([ends.step, ends.constant], axis=1)[self.head[rows]]
        counts = (column[rows] for column in (self.support, self.body_pairs, self.pca_pairs))
        return Found(head, self.body[rows], *counts, sample=np.zeros((len(rows), 2), np.int64))


def mine_constant_rules(ends: Ends, thresholds: Thresholds, clock: Clock) -> Search:
    """The rules with a constant in the head, the best of each predicate; a part of the search is a part of the ends."""
    if not len(ends):
        return Search((), 0, 0)
    fixed, free = ConstantBodies(ends), VariableBodies(ends)
    meetings = np.cumsum(ends.members @ ends.members.sum(axis=0))
    bounds = np.searchsorted(meetings, np.arange(0, meetings[-1], MOST_MEETINGS))
    bounds = np.unique(np.append(bounds, len(ends)))
    parts = list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
    found: list[Found] = []
    for part, (start, stop) in enumerate(parts):
        clock.tell(part, len(parts))
        if clock.is_over:
            return Search(best_of(found, thresholds), len(parts), part)
        counted = (bodies.counted(start, stop, thresholds.min_support) for bodies in (fixed, free))
        found.extend(candidates.found(ends, thresholds.min_confidence) for candidates in counted)
        found = list(best_of(found, thresholds))
    return Search(best_of(found, thresholds), len(parts), len(parts))


@dataclass(frozen=True, eq=False)
class ConstantBodies:
    """Rules p(x, c) <- q(x, d): ends that share members."""

    ends: Ends

    @cached_property
    def _inside(self) -> Int64[np.ndarray, "domains ends"]:
        """How many members of each end are in each domain."""
        return (self.ends.members @ self.ends.inside.T).T

    def counted(self, start: int, stop: int, min_support: int) -> Candidates:
        """The rules whose bodies are the ends from `start` on, before `stop`."""
        ends, graph = self.ends, self.ends.graph
        shared = csr_array(ends.members[start:stop] @ ends.members.T).tocoo()
        body, head = shared.coords[0].astype(np.int64) + start, shared.coords[1].astype(np.int64)
        kept = (shared.data >= min_support) & (body != head) & ends.is_concluded[head]
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
        return Candidates(head, columns, support, body_pairs, pca_pairs)


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
        x, step, c = edges(self.ends.graph)
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

    def counted(self, start: int, stop: int, min_support: int) -> Candidates:
        """The rules whose heads are the ends from `start` on, before `stop`."""
        ends, graph = self.ends, self.ends.graph
        having = csr_array(ends.members[start:stop] @ self._has_step.T - self._lonely_members[start:stop]).tocoo()
        head, body = having.coords[0].astype(np.int64) + start, having.coords[1].astype(np.int64)
        kept = (having.data >= min_support) & ends.is_concluded[head]
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
        return Candidates(head, np.stack([body, np.full_like(body, -1)], axis=1), support, body_pairs, pca_pairs)
