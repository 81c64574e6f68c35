"""Facts -> mined rules: paths as bodies, all of one length counted against every head by a few queries of an engine."""

from dataclasses import dataclass

import numpy as np
import sqlglot
from sqlglot import exp

from r2n.grounding.engines import Engine
from r2n.logic.language import Domain
from r2n.mining.ends import edges
from r2n.mining.mined_rules import Found
from r2n.mining.search import Clock, Search, Thresholds, best_of
from r2n.mining.step_graph import StepGraph

Counts = dict[tuple[int, ...], int]
"""Numbers of pairs by the steps of a path and what they were counted for."""


@dataclass(frozen=True, eq=False)
class PathCounter:
    """The steps of a graph as tables of an engine: `mined_steps` (s, x, y), and what heads are compared with."""

    engine: Engine
    graph: StepGraph

    def load(self) -> None:
        """Hand the tables over."""
        x, step, y = edges(self.graph)
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
            kept = {key: n for key, n in support.items() if key[-1] in own}
            if kept:
                within = self.within(domains)
                bodies = self.counts(length, "", within)
                pca = self.counts(length, "f.p", f"JOIN mined_firsts AS f ON f.x = w.x {within}")
                rows += [
                    (key[:-1], key[-1], n, bodies[key[:-1]], pca[*key[:-1], key[-1] // 2]) for key, n in kept.items()
                ]
        return self._passing(length, rows, thresholds)

    def _passing(
        self, length: int, rows: list[tuple[tuple[int, ...], int, int, int, int]], thresholds: Thresholds
    ) -> Found:
        kept = sorted(
            row
            for row in rows
            if row[2] >= thresholds.min_confidence * row[3]
            and self.graph.concluded[row[1] // 2]
            and row[0] != (row[1],)  # p(x, y) -> p(x, y)
        )
        head = np.array([[row[1], -1] for row in kept], np.int64).reshape(-1, 2)
        body = np.array([row[0] for row in kept], np.int64).reshape(-1, length)
        support, body_pairs, pca_pairs = (np.array([row[i] for row in kept], np.int64) for i in (2, 3, 4))
        return Found(head, body, support, body_pairs, pca_pairs, np.zeros((len(kept), 2), np.int64))


def mine_paths_by_queries(counter: PathCounter, length: int, thresholds: Thresholds, clock: Clock) -> Search:
    """The rules with bodies of so many steps, the best of each head; nothing is sampled, and it is one part."""
    clock.tell(0, 1)
    if clock.is_over:
        return Search((), 1, 0)
    return Search(best_of([counter.found(length, thresholds)], thresholds), 1, 1)
