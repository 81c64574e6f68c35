"""The baseline that counts proofs."""

import numpy as np

from r2n.datasets.benchmarks import load
from r2n.experiments.proof_counts import ProofCounts, best_depth
from r2n.grounding.known_body import KnownBodyGrounder
from r2n.knowledge.problem import Problem


def test_depth_one_counts_known_bodies(toy: Problem) -> None:
    grounding = KnownBodyGrounder().ground(toy.knowledge)
    heads = grounding.ground_rules[0].atoms[:, 2].tolist()
    codes = toy.test.atoms
    counts = ProofCounts(toy.knowledge, 1)(codes)
    assert counts.tolist() == [heads.count(code) for code in codes.tolist()]
    np.testing.assert_array_equal(ProofCounts(toy.knowledge, 1)(codes[::-1]), counts[::-1])


def test_the_depth_is_chosen_on_validation_alone() -> None:
    problem = load("countries-s3")
    assert best_depth(problem) > 1, "in S3 one step reaches almost nothing"
