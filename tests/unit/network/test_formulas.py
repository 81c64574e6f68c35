"""Emb^0(a): each formula by hand, in numbers small enough to check by eye and in Python's complex numbers."""

from cmath import exp as complex_exp

import pytest
import torch
from torch import Tensor

from r2n.logic.language import Domain, Predicate
from r2n.network.input_layers import ComplEx, DistMult, RotatE, TransE
from tests.model_strategies import shaken, vectors

DOMAIN = Domain("d")
UNARY, BINARY, TERNARY = (Predicate(f"p{n}", (DOMAIN,) * n) for n in (1, 2, 3))
BOTH = (UNARY, BINARY)


def constants(*rows: list[list[float]]) -> Tensor:
    return torch.tensor(rows)


def index(*predicates: int) -> Tensor:
    return torch.tensor(predicates)


def as_complex(vector: Tensor) -> list[complex]:
    """Real parts in the first half, imaginary in the second."""
    numbers, half = vector.tolist(), len(vector) // 2
    return [complex(re, im) for re, im in zip(numbers[:half], numbers[half:], strict=True)]


def test_distmult_multiplies_componentwise_at_any_arity() -> None:
    embedding = DistMult((UNARY, BINARY, TERNARY), 2)
    with torch.no_grad():
        embedding.vectors.copy_(torch.tensor([[1.0, 2.0], [3.0, -1.0], [-2.0, 5.0]]))
    assert embedding.formula(index(0), constants([[4.0, 5.0]])).tolist() == [[4.0, 10.0]]
    assert embedding.formula(index(1), constants([[4.0, 5.0], [2.0, 3.0]])).tolist() == [[24.0, -15.0]]
    three = constants([[4.0, 5.0], [2.0, 3.0], [10.0, -1.0]])
    assert embedding.formula(index(2), three).tolist() == [[-160.0, -75.0]]
    assert embedding.score(torch.tensor([[24.0, -15.0]]), index(1)).tolist() == [9.0]


@pytest.mark.parametrize("kind", [ComplEx, RotatE])
def test_complex_forms_are_real_parts_of_products_with_a_conjugate(kind: type[ComplEx] | type[RotatE]) -> None:
    """RotatE's factors have length 1; unary atoms leave the second constant out."""
    embedding = shaken(kind(BOTH, 3), seed=0)
    assert (embedding.dim, embedding.constant_dim) == (3, 6)
    if isinstance(embedding, RotatE):
        factors = [[complex_exp(1j * angle) for angle in angles] for angles in embedding.angles.tolist()]
    else:
        factors = [as_complex(vector) for vector in embedding.vectors]
    pairs = vectors(4, 6, seed=1).reshape(2, 2, 6)
    found = embedding.formula(index(1, 1), pairs)
    for row, (head, tail) in zip(found.tolist(), pairs, strict=True):
        parts = zip(factors[1], as_complex(head), as_complex(tail), strict=True)
        assert row == pytest.approx([(r * h * t.conjugate()).real for r, h, t in parts])
    assert embedding.score(found, index(1, 1)).tolist() == pytest.approx([sum(row) for row in found.tolist()])
    expected = [(r * c).real for r, c in zip(factors[0], as_complex(pairs[0, 0]), strict=True)]
    assert embedding.formula(index(0), pairs[:1, :1])[0].tolist() == pytest.approx(expected)


def test_transe_moves_the_first_constant_towards_the_second() -> None:
    embedding = TransE(BOTH, 2)
    with torch.no_grad():
        embedding.vectors.copy_(torch.tensor([[1.0, 2.0], [3.0, -1.0]]))
    assert embedding.formula(index(1), constants([[4.0, 5.0], [7.0, 1.0]])).tolist() == [[0.0, 3.0]]
    assert embedding.formula(index(0), constants([[4.0, 5.0]])).tolist() == [[5.0, 7.0]]


def test_transe_scores_by_its_margin_minus_the_norm() -> None:
    embedding = TransE(BOTH, 2)
    with torch.no_grad():
        embedding.margin.fill_(2.0)
    given = torch.tensor([[3.0, 4.0], [0.0, 0.0]], requires_grad=True)
    found = embedding.score(given, index(0, 1))
    assert found.tolist() == pytest.approx([-3.0, 2.0], abs=1e-5)
    slope, at_a_match = torch.autograd.grad(found.sum(), [embedding.margin, given])
    assert float(slope) == 2.0
    assert bool(torch.isfinite(at_a_match).all())


def one_by_one(embedding: DistMult, predicates: Tensor, position: int, given: Tensor, candidates: Tensor) -> Tensor:
    """The scores of rows, each atom written out, embedded and scored by itself."""
    rows = []
    for predicate, constants in zip(predicates, given, strict=True):
        row = []
        for candidate in candidates:
            atom = torch.cat([constants[:position], candidate[None], constants[position + 1 :]])[None]
            row.append(embedding.score(embedding.formula(predicate[None], atom), predicate[None])[0])
        rows.append(torch.stack(row))
    return torch.stack(rows)


ROWS = [
    *(
        (kind, arity, position)
        for kind in (DistMult, ComplEx, TransE, RotatE)
        for arity in (1, 2)
        for position in range(arity)
    ),
    *((DistMult, 3, position) for position in range(3)),
]


@pytest.mark.parametrize(("kind", "arity", "position"), ROWS)
def test_a_row_has_the_scores_of_its_atoms_and_their_gradients(kind: type[DistMult], arity: int, position: int) -> None:
    predicates = (UNARY, BINARY, TERNARY) if arity == 3 else BOTH
    embedding = shaken(kind(predicates, 3), seed=0)
    given = vectors(4 * arity, embedding.constant_dim, seed=1).view(4, arity, -1).requires_grad_()
    candidates = vectors(5, embedding.constant_dim, seed=2).requires_grad_()
    asked = index(0, 1, 1, 0) if arity < 3 else index(2, 2, 0, 2)
    unread = given.clone()
    unread[:, position] = float("nan")
    found = embedding.row_scores(asked, position, unread, candidates)
    expected = one_by_one(embedding, asked, position, given, candidates)
    torch.testing.assert_close(found, expected)
    into = [*embedding.parameters(), given, candidates]
    weights = vectors(4, 5, seed=3)
    slopes = torch.autograd.grad((found * weights).sum(), into, allow_unused=True, materialize_grads=True)
    for slope, other in zip(
        slopes, torch.autograd.grad((expected * weights).sum(), into, materialize_grads=True), strict=True
    ):
        torch.testing.assert_close(slope, other)


@pytest.mark.parametrize("position", [0, 1])
def test_near_its_perfect_match_transe_keeps_the_order_of_candidates_in_single_precision(position: int) -> None:
    """Long vectors, small distances: the squares are large, and what is left of them is small."""
    torch.manual_seed(0)
    embedding = TransE((BINARY,), 8)
    given = torch.full((1, 2, 8), 10.0)
    match = embedding.asking(index(0), position, given)
    candidates = (match + torch.arange(8)[:, None] * 1e-3).detach()
    found = embedding.row_scores(index(0), position, given, candidates)
    expected = one_by_one(embedding, index(0), position, given, candidates)  # pyright: ignore
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)
    assert found[0].argsort().tolist() == expected[0].argsort().tolist() == list(range(7, -1, -1))
