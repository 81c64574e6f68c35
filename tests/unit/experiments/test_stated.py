"""The baseline without learning, by hand."""

import pyarrow as pa
import pytest

from r2n.experiments.stated import StatedScores
from r2n.knowledge.problem import Problem
from r2n.knowledge.tables import Table
from r2n.logic.parser import parse_theory
from tests.strategies import codes_of

THEORY = "domain d\npredicate same(d, d)\npredicate linked(d, d) closed"
TEXTS = {"a": "machine learning 88", "b": "Machine_Learning", "c": "databases", "e": "!"}


@pytest.mark.parametrize(("words", "expected"), [(False, (1.0, 0.0, 0.0, 1.0)), (True, (1 + 2 / 3, 0.0, 1.0, 1.0))])
def test_a_fact_scores_one_and_words_their_jaccard_similarity(words: bool, expected: tuple[float, ...]) -> None:
    linked = Table(pa.table({"x": ["a", "e"], "y": ["b", "c"]}), "linked")
    knowledge = Problem.build(
        "x", parse_theory(THEORY), [linked], domains={"d": TEXTS}, features={"d": TEXTS}
    ).knowledge
    atoms = [("same", "a", "b"), ("same", "b", "c"), ("same", "c", "c"), ("same", "e", "c")]
    codes = codes_of(knowledge.base, knowledge.language, atoms)
    assert StatedScores(knowledge, "linked", words)(codes).tolist() == pytest.approx(expected)
