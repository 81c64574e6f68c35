"""The baselines that learn nothing."""

import numpy as np
import pyarrow as pa
import pytest

from r2n.data.problem import Problem
from r2n.data.tables import Table
from r2n.datasets.benchmarks import load
from r2n.grounding.known_body import KnownBodyGrounder
from r2n.grounding.store import Store
from r2n.logic.parser import parse_theory
from r2n.reproduction.reproduce import EvidenceScores, ProofCounts, best_depth
from tests.strategies import codes_of

THEORY = "domain d\npredicate same(d, d)\npredicate linked(d, d) closed"
TEXTS = {"a": "machine learning 88", "b": "Machine_Learning", "c": "databases", "e": "!"}


def test_depth_one_counts_known_bodies(toy: Problem) -> None:
    grounding = KnownBodyGrounder().ground(Store(toy.knowledge))
    heads = grounding.ground_rules[0].atoms[:, 2].tolist()
    codes = toy.test.atoms
    counts = ProofCounts(toy.knowledge, 1)(codes)
    assert counts.tolist() == [heads.count(code) for code in codes.tolist()]
    np.testing.assert_array_equal(ProofCounts(toy.knowledge, 1)(codes[::-1]), counts[::-1])


def test_the_depth_is_chosen_on_validation_alone() -> None:
    problem = load("countries-s3")
    assert best_depth(problem) > 1, "in S3 one step reaches almost nothing"


@pytest.mark.parametrize(("words", "expected"), [(False, (1.0, 0.0, 0.0, 1.0)), (True, (1 + 2 / 3, 0.0, 1.0, 1.0))])
def test_a_fact_scores_one_and_words_their_jaccard_similarity(words: bool, expected: tuple[float, ...]) -> None:
    linked = Table(pa.table({"x": ["a", "e"], "y": ["b", "c"]}), "linked")
    knowledge = Problem.build(
        "x", parse_theory(THEORY), [linked], domains={"d": TEXTS}, features={"d": TEXTS}
    ).knowledge
    atoms = [("same", "a", "b"), ("same", "b", "c"), ("same", "c", "c"), ("same", "e", "c")]
    codes = codes_of(knowledge.base, knowledge.language, atoms)
    assert EvidenceScores(knowledge, "linked", words)(codes).tolist() == pytest.approx(expected)
