"""What every input layer promises, whatever its kind: one suite over the table of input layers and the classifier."""

from functools import partial

import pytest
import torch
from torch import Tensor

from r2n.components import input_layers
from r2n.data.knowledge_base import KnowledgeBase
from r2n.logic.parser import parse_theory
from r2n.network.constant_embedding import ConstantEmbedding
from r2n.network.input_layers import AtomEmbedding, VectorFormula, make_input
from r2n.options import ModelOptions

KNOWLEDGE = KnowledgeBase.build(
    parse_theory("domain d = {a, b, c}\npredicate p(d, d)\npredicate u(d)\npredicate q(d, d)")
)
CODES = torch.arange(KNOWLEDGE.base.size)
INDEX, ARGUMENTS = (torch.from_numpy(part) for part in KNOWLEDGE.base.decode(CODES.numpy()))
DIM = 4
Made = tuple[ConstantEmbedding, AtomEmbedding]


@pytest.fixture(params=list(input_layers))
def made(request: pytest.FixtureRequest) -> Made:
    torch.manual_seed(0)
    return make_input(KNOWLEDGE, ModelOptions(input=request.param, dim=DIM))


def atoms(arity: int) -> tuple[Tensor, Tensor]:
    """Predicates and constants of all atoms of an arity."""
    rows = (ARGUMENTS >= 0).sum(1) == arity
    return INDEX[rows], ARGUMENTS[rows, :arity]


def embedded(made: Made, predicates: Tensor, arguments: Tensor) -> Tensor:
    constants, embedding = made
    return embedding(embedding.collate(predicates, arguments, constants), constants)


def test_its_description_says_what_it_can_do(made: Made, request: pytest.FixtureRequest) -> None:
    described = input_layers[request.node.callspec.params["made"]]
    assert described.scores_rows == (made[1].rows is not None)
    assert described.over_grids == (made[1].grids is not None)
    assert isinstance(made[1], described.load())
    assert isinstance(made[1], AtomEmbedding)
    assert made[1].dim == DIM


@pytest.mark.parametrize("arity", [1, 2])
def test_each_atom_has_an_embedding_and_a_score(made: Made, arity: int) -> None:
    predicates, arguments = atoms(arity)
    found = embedded(made, predicates, arguments)
    assert found.shape == (len(predicates), DIM)
    score = made[1].score(found, predicates)
    assert score.shape == (len(predicates),)
    assert len(set(score.tolist())) > 1 or not made[1].tells_labels, "one that is fitted to features says nothing yet"


def test_nothing_comes_of_nothing(made: Made) -> None:
    predicates, arguments = (part[:0] for part in atoms(2))
    found = embedded(made, predicates, arguments)
    assert found.shape == (0, DIM)
    assert made[1].score(found, predicates).shape == (0,)


@pytest.mark.parametrize("arity", [1, 2])
def test_an_atom_is_embedded_alike_in_any_company_order_and_number(made: Made, arity: int) -> None:
    predicates, arguments = atoms(arity)
    full = embedded(made, predicates, arguments)
    chosen = torch.tensor([2, 0, 2, 1])
    torch.testing.assert_close(embedded(made, predicates[chosen], arguments[chosen]), full[chosen])


def test_gradients_reach_its_weights_and_the_constants(made: Made) -> None:
    constants, embedding = made
    predicates, arguments = atoms(2)
    found = embedded(made, predicates, arguments)
    if not embedding.tells_labels:
        pytest.skip("it is fitted before the training")
    embedding.score(found, predicates).square().sum().backward()
    for parameters in (embedding.parameters(), constants.parameters()):
        assert any(p.grad is not None and bool(p.grad.abs().sum() > 0) for p in parameters)


def test_over_a_grid_it_says_the_same(made: Made) -> None:
    constants, embedding = made
    if embedding.grids is None:
        return
    predicates, arguments = atoms(2)
    sides = [constants(constants.collate())] * 2
    features, diagonals, offsets = embedding.grids.grid(torch.tensor([0, 2]), sides)
    scores = embedding.grids.grid_score(features, diagonals, offsets)
    expected = embedding.score(embedded(made, predicates, arguments), predicates)
    torch.testing.assert_close(scores.flatten(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("position", [0, 1])
def test_a_row_of_candidates_has_the_same_scores(made: Made, position: int) -> None:
    constants, embedding = made
    if embedding.rows is None:
        return
    predicates, arguments = atoms(2)
    expected = embedding.score(embedded(made, predicates, arguments), predicates).view(2, 3, 3)
    table = constants(constants.collate())
    rows = torch.tensor([0, 2]).repeat_interleave(3)
    given = table[torch.arange(3).repeat(2)].unsqueeze(1).expand(-1, 2, -1)
    found = embedding.rows.row_scores(rows, position, given, table).view(2, 3, 3)
    torch.testing.assert_close(found if position == 1 else found.mT, expected, rtol=1e-5, atol=1e-5)


def test_predicates_of_the_same_constants_have_the_same_scores(made: Made) -> None:
    constants, embedding = made
    if embedding.rows is None:
        return
    predicates, arguments = atoms(2)
    expected = embedding.score(embedded(made, predicates, arguments), predicates).view(2, 9)
    vectors = constants(constants.collate())[arguments[:9]]
    for scores in (embedding.rows.predicate_scores, partial(VectorFormula.predicate_scores, embedding.rows)):
        torch.testing.assert_close(scores(torch.tensor([0, 2]), vectors).t(), expected, rtol=1e-5, atol=1e-5)
