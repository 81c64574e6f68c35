"""Facts -> mined rules: paths as bodies, counted against every head at once."""

from collections.abc import Iterator

import numpy as np

from r2n.mining.mined_rules import Found
from r2n.mining.path_bodies import PathBody, PathWalker
from r2n.mining.search import Clock, Search, Thresholds, best_of
from r2n.mining.step_graph import StepGraph

PATHS_BETWEEN_CUTS = 1000


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


def mine_paths(walker: PathWalker, length: int, thresholds: Thresholds, clock: Clock) -> Search:
    """The rules with bodies of so many steps, the best of each head; a part of the search is a first step."""
    total = len(walker.graph.steps)
    found: list[Found] = []
    for step in range(total):
        clock.tell(step, total)
        for path in paths_from(walker, walker.single(step), length):
            if clock.is_over:
                return Search(best_of(found, thresholds), total, step)
            found.append(found_of(walker.graph, path, thresholds))
            if len(found) >= PATHS_BETWEEN_CUTS:
                found = list(best_of(found, thresholds))
    return Search(best_of(found, thresholds), total, total)


def paths_from(walker: PathWalker, prefix: PathBody, length: int) -> Iterator[PathBody]:
    """The paths of a length that begin with a prefix; one that leads nowhere is not extended."""
    if len(prefix.steps) == length:
        yield prefix
        return
    for longer in walker.extended(prefix):
        yield from paths_from(walker, longer, length)
