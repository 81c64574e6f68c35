"""Searches for rules: the graph that is mined, paths by matrices and by queries, and rules with constants."""

import numpy as np
import pytest

from r2n.data.knowledge_base import with_reciprocals
from r2n.errors import DataError
from r2n.mining import searches
from r2n.mining.mine import MiningOptions, mine_rules
from r2n.mining.searches import Ends, PathBody, PathWalker, StepGraph, count_heads, path_rules, paths_from
from tests.mining_problems import knowledge_of, random_knowledge
from tests.oracles import paths as oracle

GRAPH = StepGraph.from_knowledge(random_knowledge(1, 0.5))
TYPED_THEORY = (
    "domain low = {a, b}\ndomain high = {c}\ndomain all = low | high\npredicate p(all, all)\npredicate q(low, low)\n"
)
TYPED = StepGraph.from_knowledge(
    knowledge_of(TYPED_THEORY, {"p": np.array([[0, 1], [1, 0], [0, 2]]), "q": np.array([[0, 1]])})
)
ANY = MiningOptions(min_support=1, min_confidence=0.0)
STEPS = "domain d = {a, b, c}\ndomain e = {a, b}\npredicate p(d, d)\npredicate q(e, d) closed\npredicate u(d)\n"
OF_STEPS = knowledge_of(
    STEPS, {"p": np.array([[0, 1], [2, 2]]), "q": np.array([[0, 1], [0, 2]])}, {"u": np.array([[0]])}
)


def test_steps_go_both_ways_and_loops_are_left_out() -> None:
    graph = StepGraph.from_knowledge(OF_STEPS)
    dense = [step.toarray() for step in graph.steps]
    assert dense[0].tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]
    assert dense[2].tolist() == [[0, 1, 1], [0, 0, 0], [0, 0, 0]]
    assert all((dense[i + 1] == dense[i].T).all() for i in (0, 2))
    assert graph.leaving.toarray().tolist() == [[1, 0, 0], [0, 1, 0], [2, 0, 0], [0, 1, 1]]
    assert graph.known_first.toarray().tolist() == [[1, 0, 1], [1, 0, 0]], "a loop is a known fact"


def test_reciprocals_say_nothing_of_their_own() -> None:
    knowledge = random_knowledge(0, 0.5)
    both = [StepGraph.from_knowledge(part) for part in (knowledge, with_reciprocals(knowledge))]
    assert both[0].predicates == both[1].predicates
    assert all((a.toarray() == b.toarray()).all() for a, b in zip(both[0].steps, both[1].steps, strict=True))


def test_nothing_to_mine_is_refused() -> None:
    with pytest.raises(DataError, match="no true fact"):
        StepGraph.from_knowledge(knowledge_of(STEPS, {}, {"p": np.array([[0, 1]])}))


def single(graph: StepGraph, step: int) -> PathBody:
    return PathBody((step,), graph.steps[step])


def bodies(length: int) -> dict[tuple[int, ...], PathBody]:
    walker = PathWalker(GRAPH)
    found = (path for step in range(len(GRAPH.steps)) for path in paths_from(walker, single(GRAPH, step), length))
    return {path.steps: path for path in found}


@pytest.mark.parametrize("length", [1, 2, 3])
def test_counts_are_those_of_plain_loops_and_no_path_is_missing(length: int) -> None:
    found = bodies(length)
    for steps in np.ndindex(*[len(GRAPH.steps)] * length):
        expected = oracle.path_counts([GRAPH.steps[step].toarray() for step in steps], distinct=True)
        if expected.any():
            path = found[steps]
            assert (path.counts.toarray() == expected).all()
            assert sorted(zip(*path.pairs(), strict=True)) == list(zip(*np.nonzero(expected), strict=True))


def test_pairs_outside_the_domains_of_a_head_are_none_of_its_pairs() -> None:
    support, body_pairs, pca_pairs = count_heads(TYPED, single(TYPED, 0))
    assert support.tolist() == [3, 1]
    assert body_pairs.tolist() == [3, 2], "q(a, c) is no atom"
    assert pca_pairs.tolist() == [3, 1], "of b no q is known"


def test_what_says_nothing_is_left_out() -> None:
    assert path_rules(TYPED, single(TYPED, 0), ANY).head.tolist() == [[2, -1]], "p(x, y) -> p(x, y) is"
    assert path_rules(TYPED, single(TYPED, 1), ANY).head.tolist() == [[0, -1], [2, -1]], "p(y, x) -> p(x, y) is not"


def test_parts_of_the_search_find_what_the_whole_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    knowledge, options = random_knowledge(4, 0.4), MiningOptions(1, 10**6, 1, 0.0, constants=True, constant_length=2)
    full = mine_rules(knowledge, options)
    monkeypatch.setattr(searches, "MOST_MEETINGS", 40)
    begun: list[int] = []
    assert mine_rules(knowledge, options, lambda _, done, total: begun.append(done)) == full
    assert len([done for done in begun if done >= 1000]) > 1, "paths are the first thousand"


def test_there_are_no_rules_of_too_few_members() -> None:
    graph = StepGraph.from_knowledge(knowledge_of("domain d = {a, b}\npredicate p(d, d)\n", {"p": np.array([[0, 1]])}))
    assert list(searches.search_constant_rules(Ends.from_graph(graph, 2), ANY)) == []
    assert list(searches.search_longer_constant_rules(Ends.from_graph(graph, 2), ANY)) == []
