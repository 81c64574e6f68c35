"""Ends: sets of constants with one step to one constant."""

import numpy as np
from scipy.sparse import csr_array

from r2n.mining.ends import Ends, Tally, edges
from r2n.mining.step_graph import StepGraph
from tests.mining_problems import random_knowledge

GRAPH = StepGraph.of(random_knowledge(2, 0.5))


def test_a_tally_knows_what_never_occurs() -> None:
    tally = Tally.of(np.array([5, 2, 5]))
    assert tally.at(np.array([[5, 2], [1, 9]])).tolist() == [[2, 1], [0, 0]]
    assert Tally.of(np.zeros(0, np.int64)).at(np.array([1])).tolist() == [0]
    matrix = csr_array(np.array([[0, 3], [4, 0]]))
    assert Tally.of_matrix(matrix, 2).at(np.arange(4)).tolist() == [0, 3, 4, 0]


def test_ends_hold_the_constants_that_step_to_them() -> None:
    ends = Ends.of(GRAPH, 2)
    sets: dict[tuple[int, int], set[int]] = {}
    for x, step, c in zip(*edges(GRAPH), strict=True):
        sets.setdefault((int(step), int(c)), set()).add(int(x))
    expected = {end: members for end, members in sets.items() if len(members) >= 2}
    members = ends.members.toarray()
    keys = list(zip(ends.step.tolist(), ends.constant.tolist(), strict=True))
    assert {key: set(np.flatnonzero(members[i]).tolist()) for i, key in enumerate(keys)} == expected
    for key in sets:
        place = int(ends.find(np.array([key[0]]), np.array([key[1]]))[0])
        assert place == (keys.index(key) if key in expected else -1)
    number = np.repeat(np.arange(len(ends)), GRAPH.constants)
    constant = np.tile(np.arange(GRAPH.constants), len(ends))
    assert ends.holds(number, constant).tolist() == (members[number, constant] > 0).tolist()


def test_heads_and_their_domains() -> None:
    ends = Ends.of(GRAPH, 1)
    domains = list(GRAPH.inside)
    for i, step in enumerate(ends.step.tolist()):
        assert domains[ends.domain[i]] == GRAPH.predicates[step // 2].domains[step % 2]
        assert ends.is_concluded[i]
    known = GRAPH.known_first.toarray()
    rows, columns = np.nonzero(known + 1)
    assert ends.known_first(rows, columns).tolist() == (known[rows, columns] > 0).tolist()
