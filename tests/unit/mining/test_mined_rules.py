"""Mined rules: how they are compared, cut and written."""

import numpy as np

from r2n.logic.language import Domain, Predicate
from r2n.mining.searches import Found, MinedRule, constant_rule, path_rule

D = Domain("d")
PREDICATES = (Predicate("p", (D, D)), Predicate("q", (D, D)))


def found(predicates: list[int], support: list[int], pairs: list[int], bodies: list[int] | None = None) -> Found:
    number = len(predicates)
    head = np.array([[2 * p, -1] for p in predicates], np.int64).reshape(-1, 2)
    body = np.array([[b] for b in (bodies or range(number))], np.int64).reshape(-1, 1)
    counts = (np.array(given, np.int64) for given in (support, pairs, pairs))
    return Found(head, body, *counts, sample=np.zeros((number, 2), np.int64))


def test_confidences_are_shares_of_pairs() -> None:
    rule = path_rule(PREDICATES, [0, -1], [2])
    mined = MinedRule(rule, 3, 12, 4)
    assert (mined.confidence, mined.pca_confidence) == (0.25, 0.75)
    assert str(mined) == "support 3 of 12 pairs, confidence 0.2500, PCA confidence 0.7500"
    assert "on a sample of 5 of 9 first constants" in str(MinedRule(rule, 3, 12, 4, (5, 9)))


def test_a_few_hits_are_worth_less_than_many() -> None:
    best = found([0, 0, 0], [3, 80, 40], [3, 100, 200]).best(2)
    assert best.support.tolist() == [80, 3]


def test_each_head_has_its_best_and_equals_have_an_order() -> None:
    best = found([1, 0, 1, 0, 0], [5, 5, 5, 5, 4], [9, 9, 9, 9, 9], [4, 3, 2, 1, 0]).best(2)
    assert best.predicate.tolist() == [0, 0, 1, 1]
    assert best.body[:, 0].tolist() == [1, 3, 2, 4]
    assert len(found([], [], []).best(2)) == 0


def test_paths_are_written_over_distinct_variables() -> None:
    texts = [str(path_rule(PREDICATES, [2, -1], steps)) for steps in ([0], [1], [0, 3], [0, 2, 1])]
    assert texts == [
        "rule mined: p(x, y) -> q(x, y), x != y",
        "rule mined: p(y, x) -> q(x, y), x != y",
        "rule mined: p(x, z) & q(y, z) -> q(x, y), x != y, x != z, y != z",
        "rule mined: p(x, z) & q(z, w) & p(y, w) -> q(x, y), x != y, x != z, x != w, y != z, y != w, z != w",
    ]


def test_constants_are_written_with_guards_too() -> None:
    given = (([0, 1], [2, 0]), ([1, 1], [3, 1]), ([0, 1], [3, -1]))
    assert [str(constant_rule(PREDICATES, ("a", "b"), head, body)) for head, body in given] == [
        'rule mined: q(x, "a") -> p(x, "b"), x != "b", x != "a"',
        'rule mined: q("b", y) -> p("b", y), y != "b"',
        'rule mined: q(z, x) -> p(x, "b"), x != z, x != "b", z != "b"',
    ]
