"""Clauses read off the truths of an implicit rule: as they were planted, short, told once, and counted right."""

from random import Random

import numpy as np
import pytest

import r2n
from r2n.explanation.rules import LEAST_AGREEMENT, LEAST_FIDELITY, Truths, _Table, learned_clauses
from r2n.logic.theory import Theory
from tests.oracles import rules as oracle

THEORY = r2n.parse_theory(
    "domain item\n"
    + "".join(f"predicate {name}(item)\n" for name in "abcdeg")
    + "implicit related: [a(x), b(x), c(x), d(x), e(x), g(x)]\n"
)


def truths_of(believed: np.ndarray, known: np.ndarray | None = None, says: np.ndarray | None = None) -> Truths:
    known = believed.astype(np.int64) if known is None else known
    return Truths(known, believed, believed if says is None else says)


def planted(seed: int, rows: int = 300) -> np.ndarray:
    """a & b -> e, c & !d -> g, both now and then without a reason."""
    dice = np.random.default_rng(seed)
    a, b, c, d = dice.random((4, rows)) < 0.5
    chance = dice.random((2, rows)) < 0.05
    return np.stack([a, b, c, d, (a & b) | chance[0], (c & ~d) | chance[1]], axis=1)


def clauses(truths: Truths, theory: Theory = THEORY, most: int = 10) -> list[str]:
    return [str(clause) for clause in learned_clauses(theory.rules[0], truths, theory, most=most)]


@pytest.mark.parametrize("seed", range(5))
def test_the_clauses_that_made_the_data_come_first(seed: int) -> None:
    assert set(clauses(truths_of(planted(seed)))[:2]) == {"a(x) & b(x) -> e(x)", "c(x) & !d(x) -> g(x)"}


def test_a_clause_is_told_in_one_direction_and_without_needless_literals() -> None:
    """a -> b, b random otherwise; c is noise: not also !b -> !a, nor a & c -> b."""
    dice = np.random.default_rng(0)
    theory = r2n.parse_theory(
        "domain item\npredicate a(item)\npredicate b(item)\npredicate c(item)\nimplicit i: [a(x), b(x), c(x)]"
    )
    a, c = dice.random((2, 400)) < 0.5
    believed = np.stack([a, a | (dice.random(400) < 0.5), c], axis=1)
    assert clauses(truths_of(believed), theory) == ["a(x) -> b(x)"]


def test_clauses_that_differ_in_the_names_of_variables_alone_are_one() -> None:
    theory = r2n.parse_theory("domain d\npredicate p(d, d)\nimplicit i: [p(x, y), p(y, x)]")
    dice = np.random.default_rng(1)
    one = dice.random(300) < 0.4
    believed = np.stack([one, one], axis=1)
    assert clauses(truths_of(believed), theory) == ["p(y, x) -> p(x, y)"]


def test_noise_teaches_nothing() -> None:
    dice = np.random.default_rng(2)
    assert clauses(truths_of(dice.random((500, 6)) < 0.5)) == []


def test_what_the_network_does_not_say_or_labels_contradict_is_not_told() -> None:
    believed = planted(3)
    unsaid = believed.copy()
    unsaid[:, 4] = False
    assert "a(x) & b(x) -> e(x)" not in clauses(truths_of(believed, says=unsaid))
    known = believed.astype(np.int64)
    wrong = np.flatnonzero(believed[:, 0] & believed[:, 1])[::2]
    known[wrong, 4] = 0
    assert "a(x) & b(x) -> e(x)" not in clauses(truths_of(believed, known=known))


def test_empty_is_legal() -> None:
    nothing = np.zeros((0, 6), bool)
    assert clauses(truths_of(nothing)) == []
    assert clauses(truths_of(np.ones((50, 6), bool))) == []
    alone = r2n.parse_theory("domain d\npredicate p(d)\nimplicit i: [p(x)]")
    assert clauses(truths_of(np.ones((9, 1), bool)), alone) == []


def test_at_most_so_many_and_only_of_the_heads_that_are_wanted() -> None:
    believed = planted(4)
    assert len(clauses(truths_of(believed), most=1)) == 1
    found = learned_clauses(THEORY.rules[0], truths_of(believed), THEORY, targets=[5])
    assert found
    assert all("-> g(x)" in str(clause) or "-> !g(x)" in str(clause) for clause in found)


def test_a_sample_of_many_ground_rules() -> None:
    truths = truths_of(planted(0))
    assert len(truths.sampled(100).known) == 100
    assert truths.sampled(300) is truths


@pytest.mark.parametrize("seed", range(30))
def test_the_counts_are_those_of_plain_loops(seed: int) -> None:
    dice, random = np.random.default_rng(seed), Random(seed)
    rows, positions = random.randint(1, 40), random.randint(2, 5)
    known = dice.integers(-1, 2, (rows, positions))
    known[:, 0] = np.maximum(known[:, 0] * 2 - 1, -1) if seed % 2 else known[:, 0]  # a position without labels
    believed = np.where(known >= 0, known == 1, dice.random((rows, positions)) < 0.5)
    says = dice.random((rows, positions)) < 0.7
    table = _Table.of(Truths(known, believed, says))
    head = (random.randrange(positions), random.random() < 0.5)
    others = [i for i in range(positions) if i != head[0]]
    body = tuple((i, random.random() < 0.5) for i in random.sample(others, random.randint(1, len(others))))
    found = table._counted(body, head)
    support, agreement, fidelity, judged, confidence = oracle.clause_counts(
        body, head, known.tolist(), believed.tolist(), says.tolist()
    )
    assert (found.support, found.known) == (support, judged)
    assert found.agreement == pytest.approx(agreement)
    assert found.fidelity == pytest.approx(fidelity)
    if judged >= 5:
        assert found.confidence == pytest.approx(confidence)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_told_is_worth_it(seed: int) -> None:
    for clause in learned_clauses(THEORY.rules[0], truths_of(planted(seed)), THEORY):
        assert clause.support >= 5
        assert clause.fidelity >= LEAST_FIDELITY
        assert clause.confidence is None or clause.confidence >= LEAST_AGREEMENT
        assert clause.score > 0
