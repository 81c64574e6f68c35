"""Rules of paths: pairs outside a head's domains do not count, and a clock ends the search."""

from time import monotonic

import numpy as np

from r2n.mining.path_bodies import PathWalker
from r2n.mining.path_rules import count_heads, found_of, mine_paths
from r2n.mining.search import Clock, Thresholds
from r2n.mining.step_graph import StepGraph
from tests.mining_problems import knowledge_of

THEORY = (
    "domain low = {a, b}\ndomain high = {c}\ndomain all = low | high\npredicate p(all, all)\npredicate q(low, low)\n"
)
GRAPH = StepGraph.of(knowledge_of(THEORY, {"p": np.array([[0, 1], [1, 0], [0, 2]]), "q": np.array([[0, 1]])}))
ANY = Thresholds(1, 0.0, 100)


def test_pairs_outside_the_domains_of_a_head_are_none_of_its_pairs() -> None:
    support, body_pairs, pca_pairs = count_heads(GRAPH, PathWalker(GRAPH, 100).single(0))
    assert support.tolist() == [3, 1]
    assert body_pairs.tolist() == [3, 2], "q(a, c) is no atom"
    assert pca_pairs.tolist() == [3, 1], "of b no q is known"


def test_what_says_nothing_is_left_out() -> None:
    walker = PathWalker(GRAPH, 100)
    assert found_of(GRAPH, walker.single(0), ANY).head.tolist() == [[2, -1]], "p(x, y) -> p(x, y) is"
    assert found_of(GRAPH, walker.single(1), ANY).head.tolist() == [[0, -1], [2, -1]], "p(y, x) -> p(x, y) is not"


def test_a_search_ends_with_its_time_and_says_where() -> None:
    walker = PathWalker(GRAPH, 100)
    told: list[tuple[int, int]] = []
    whole = mine_paths(walker, 2, ANY, Clock(lambda *parts: told.append(parts)))
    assert told == [(0, 4), (1, 4), (2, 4), (3, 4)]
    assert (whole.parts, whole.parts_done) == (4, 4)
    cut = mine_paths(walker, 2, ANY, Clock(lambda *_: None, monotonic() - 1))
    assert (cut.found, cut.parts, cut.parts_done) == ((), 4, 0)
