"""Bodies: the counts of paths, also of a sample of first constants."""

import numpy as np
import pytest

from r2n.mining.path_bodies import PathBody, PathWalker
from r2n.mining.path_rules import paths_from
from r2n.mining.step_graph import StepGraph
from tests.mining_problems import random_knowledge
from tests.oracles import paths as oracle

GRAPH = StepGraph.of(random_knowledge(1, 0.5))


def bodies(most_walks: int, length: int, seed: int = 0) -> dict[tuple[int, ...], PathBody]:
    walker = PathWalker(GRAPH, most_walks, seed)
    found = (path for step in range(len(GRAPH.steps)) for path in paths_from(walker, walker.single(step), length))
    return {path.steps: path for path in found}


@pytest.mark.parametrize("length", [1, 2, 3])
def test_counts_are_those_of_plain_loops_and_no_path_is_missing(length: int) -> None:
    found = bodies(10**9, length)
    for steps in np.ndindex(*[len(GRAPH.steps)] * length):
        expected = oracle.path_counts([GRAPH.steps[step].toarray() for step in steps], distinct=True)
        if expected.any():
            path = found[steps]
            assert (path.counts.toarray() == expected).all()
            assert sorted(zip(*path.pairs(), strict=True)) == list(zip(*np.nonzero(expected), strict=True))
            assert not path.is_sampled


@pytest.mark.parametrize("length", [2, 3])
def test_a_sample_has_the_counts_of_its_constants_and_of_no_other(length: int) -> None:
    whole, found = bodies(10**9, length), bodies(4, length)
    sampled = [path for path in found.values() if path.is_sampled]
    assert sampled
    for path in sampled:
        expected = np.zeros((GRAPH.constants, GRAPH.constants), int)
        expected[path.counted_from] = whole[path.steps].counts.toarray()[path.counted_from]
        assert (path.counts.toarray() == expected).all()
        assert 1 <= len(path.counted_from) < path.first_constants


def test_samples_are_drawn_by_the_seed() -> None:
    def drawn(seed: int) -> list[list[int]]:
        return [path.counted_from.tolist() for path in bodies(4, 2, seed).values()]

    assert drawn(0) == drawn(0)
    assert drawn(0) != drawn(1)
