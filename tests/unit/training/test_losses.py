"""L_sup, L_sem and N3 against hand loops, and where they stand still."""

from collections.abc import Callable
from random import Random

import pytest
import torch
from torch import Tensor

from r2n.training.batches import known_ground_rules
from r2n.training.objective import binary_cross_entropy, n3_penalty, semantic_loss, softmax_loss
from tests.oracles import losses as oracle

DICE = Random(0)


def numbers(count: int) -> list[float]:
    return [DICE.gauss(0, 3) for _ in range(count)]


@pytest.mark.parametrize("loss", [binary_cross_entropy, semantic_loss])
@pytest.mark.parametrize("count", [0, 1, 5, 40])
def test_cross_entropy_is_a_mean(loss: Callable[[Tensor, Tensor], Tensor], count: int) -> None:
    logits, truth = numbers(count), [DICE.random() < 0.3 for _ in range(count)]
    found = loss(torch.tensor(logits, dtype=torch.float64), torch.tensor(truth, dtype=torch.bool))
    assert float(found) == pytest.approx(oracle.cross_entropy(logits, truth))


def test_a_sure_and_right_answer_costs_nothing_and_a_wrong_one_what_it_says() -> None:
    assert float(binary_cross_entropy(torch.tensor([100.0, -100.0]), torch.tensor([True, False]))) < 1e-30
    assert float(binary_cross_entropy(torch.tensor([100.0, -100.0]), torch.tensor([False, True]))) == 100.0


@pytest.mark.parametrize("rows", [0, 1, 6])
def test_softmax_over_a_fact_and_its_corruptions(rows: int) -> None:
    true = numbers(rows)
    corrupted = [[x if DICE.random() < 0.7 else None for x in numbers(4)] for _ in range(rows)]
    found = softmax_loss(
        torch.tensor(true, dtype=torch.float64),
        torch.tensor([[x or 0.0 for x in row] for row in corrupted], dtype=torch.float64).reshape(rows, 4),
        torch.tensor([[x is not None for x in row] for row in corrupted], dtype=torch.bool).reshape(rows, 4),
    )
    assert float(found) == pytest.approx(oracle.negative_softmax(true, corrupted))


def test_a_fact_without_corruptions_costs_nothing_and_has_a_slope() -> None:
    true, corrupted = torch.tensor([2.0], requires_grad=True), torch.tensor([[5.0]], requires_grad=True)
    loss = softmax_loss(true, corrupted, torch.tensor([[False]]))
    assert float(loss.detach()) == 0.0
    loss.backward()
    assert true.grad is not None
    assert corrupted.grad is not None
    assert true.grad.tolist() == [0.0]
    assert corrupted.grad.tolist() == [[0.0]]


def test_no_candidates_at_all_are_legal() -> None:
    assert float(softmax_loss(torch.tensor([1.0]), torch.zeros(1, 0), torch.zeros(1, 0, dtype=torch.bool))) == 0.0


def test_softmax_of_large_logits_stays_finite() -> None:
    loss = softmax_loss(torch.tensor([-1e4]), torch.tensor([[1e4]]), torch.tensor([[True]]))
    assert float(loss) == pytest.approx(2e4)


def test_nothing_asked_costs_nothing_and_can_be_derived() -> None:
    for loss in (
        binary_cross_entropy(torch.zeros(0, requires_grad=True), torch.zeros(0, dtype=torch.bool)),
        softmax_loss(torch.zeros(0, requires_grad=True), torch.zeros(0, 2), torch.zeros(0, 2, dtype=torch.bool)),
    ):
        assert float(loss.detach()) == 0.0
        loss.backward()


def test_n3() -> None:
    vectors = [numbers(3), numbers(3)]
    assert float(n3_penalty(torch.tensor(vectors, dtype=torch.float64))) == pytest.approx(oracle.n3(vectors))
    assert float(n3_penalty(torch.tensor([[1.0, -2.0], [0.0, 3.0]]))) == (1 + 8 + 27) / 2
    assert float(n3_penalty(torch.zeros(0, 3))) == 0.0  # all constants have features


def test_ground_rules_are_known_where_all_their_atoms_are() -> None:
    rows = torch.tensor([[0, 1], [1, 2], [0, 0], [2, 2]])
    assert known_ground_rules(rows, torch.tensor([1, 0, -1])).tolist() == [True, False, True, False]
    assert known_ground_rules(rows[:0], torch.tensor([1])).tolist() == []
