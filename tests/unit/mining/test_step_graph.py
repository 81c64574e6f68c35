"""The graph that is mined: steps both ways, without loops; which predicates hold between two constants."""

import numpy as np
import pytest

from r2n.data.knowledge_base import with_reciprocals
from r2n.errors import DataError
from r2n.mining.step_graph import FactsByPair, StepGraph
from tests.mining_problems import knowledge_of, random_knowledge

THEORY = "domain d = {a, b, c}\ndomain e = {a, b}\npredicate p(d, d)\npredicate q(e, d) closed\npredicate u(d)\n"
KNOWLEDGE = knowledge_of(
    THEORY, {"p": np.array([[0, 1], [2, 2]]), "q": np.array([[0, 1], [0, 2]])}, {"u": np.array([[0]])}
)


def test_steps_go_both_ways_and_loops_are_left_out() -> None:
    graph = StepGraph.of(KNOWLEDGE)
    dense = [step.toarray() for step in graph.steps]
    assert dense[0].tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]
    assert dense[2].tolist() == [[0, 1, 1], [0, 0, 0], [0, 0, 0]]
    assert all((dense[i + 1] == dense[i].T).all() for i in (0, 2))
    assert graph.leaving.toarray().tolist() == [[1, 0, 0], [0, 1, 0], [2, 0, 0], [0, 1, 1]]
    assert graph.known_first.toarray().tolist() == [[1, 0, 1], [1, 0, 0]], "a loop is a known fact"


def test_domains_and_heads() -> None:
    graph = StepGraph.of(KNOWLEDGE)
    assert {domain.name: inside.tolist() for domain, inside in graph.inside.items()} == {
        "d": [True, True, True],
        "e": [True, True, False],
    }
    assert graph.concluded.tolist() == [True, False]
    assert graph.constants == 3


def test_facts_are_found_by_their_pair() -> None:
    facts = FactsByPair.of(np.array([7, 2, 7, 4]), np.array([1, 0, 0, 2]))
    which, predicates = facts.among(np.array([9, 7, 1, 4, 7]))
    assert sorted(zip(which.tolist(), predicates.tolist(), strict=True)) == [(1, 0), (1, 1), (3, 2), (4, 0), (4, 1)]
    empty = FactsByPair.of(np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert [len(part) for part in empty.among(np.array([1]))] == [0, 0]


def test_reciprocals_say_nothing_of_their_own() -> None:
    knowledge = random_knowledge(0, 0.5)
    both = [StepGraph.of(part) for part in (knowledge, with_reciprocals(knowledge))]
    assert both[0].predicates == both[1].predicates
    assert all((a.toarray() == b.toarray()).all() for a, b in zip(both[0].steps, both[1].steps, strict=True))


def test_nothing_to_mine_is_refused() -> None:
    with pytest.raises(DataError, match="no true fact"):
        StepGraph.of(knowledge_of(THEORY, {}, {"p": np.array([[0, 1]])}))
