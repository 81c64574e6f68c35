"""The pair classifier against plain loops."""

from typing import Any

import pytest
import torch
from torch import nn

import r2n
from r2n.network.constant_embedding import ConstantEmbedding
from r2n.network.input_layers import make_input
from r2n.network.pair_embedding import PairEmbedding
from r2n.options import ModelOptions
from tests.featured_problem import featured_problem, table
from tests.oracles import pair_classifier as oracle

KNOWN = featured_problem().knowledge
CODES = torch.arange(KNOWN.base.size)
INDEX, ARGUMENTS = (torch.from_numpy(part) for part in KNOWN.base.decode(CODES.numpy()))
PREDICATES = KNOWN.language.predicates


def classifier(**options: Any) -> tuple[ConstantEmbedding, PairEmbedding]:
    torch.manual_seed(0)
    encoders = {"image": nn.Sequential(nn.Flatten(), nn.Linear(16, 2))}
    chosen = ModelOptions(**{"input": "pair", "dim": 3, "encoder_dim": 4, **options})
    constants, embedding = make_input(KNOWN, chosen, encoders=encoders)
    assert isinstance(embedding, PairEmbedding)
    for parameter in embedding.parameters():  # no weight may be zero by chance, and no unit dead
        parameter.data.add_(0.3 * torch.rand_like(parameter))
    return constants, embedding


def atoms_of(arity: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Some atoms of an arity."""
    arities = torch.tensor([predicate.arity for predicate in PREDICATES])
    rows = (arities[INDEX] == arity).nonzero().flatten()[::3]
    return INDEX[rows], ARGUMENTS[rows, :arity]


@pytest.mark.parametrize("arity", [1, 2, 3])
def test_embeddings_are_those_of_plain_loops(arity: int) -> None:
    constants, embedding = classifier()
    index, arguments = atoms_of(arity)
    found = embedding.eval()(embedding.collate(index, arguments, constants), constants.eval())
    assert found.shape == (len(index), 3)
    for row, (predicate, names) in enumerate(zip(index.tolist(), arguments.tolist(), strict=True)):
        expected = oracle.embed(embedding, constants, predicate, names)
        torch.testing.assert_close(found[row], expected, rtol=1e-4, atol=1e-5)


def test_weights_are_only_for_what_can_occur() -> None:
    _, embedding = classifier()
    keys = set(embedding.first)
    names = ("channel0", "channel1", "channel2", "channel3")  # numbers, words, images, learned
    assert {f"shared-{name}-at0at1" for name in names} <= keys
    assert "shared-channel2-at1at2" not in keys  # no image has three positions
    assert {f"shared-{name}-at0" for name in names} <= keys
    assert set(embedding.counts) == {f"shared-channel1-at{pair}" for pair in ("0at1", "0at2", "1at2")}


def test_words_that_training_never_saw_count_as_shared_or_different() -> None:
    theory = r2n.parse_theory("domain c\npredicate same(c, c)\n")
    titles = {"a": "x y", "b": "x z", "t": "new words", "u": "new words", "v": "other terms"}
    asked = {"test": [table("same", ("t", "u"), ("t", "v"))]}
    known = r2n.Problem.build("x", theory, [table("same", ("a", "b"))], asked, features={"c": titles}).knowledge
    constants, embedding = make_input(known, ModelOptions(input="pair", dim=3))
    assert isinstance(embedding, PairEmbedding)
    ids = [[known.language.constant_id(name) for name in pair] for pair in ("tu", "tv")]
    batch = embedding.collate(torch.zeros(2, dtype=torch.int64), torch.tensor(ids), constants)
    assert len(batch.blocks[0].words.by_row[0]) == 0  # pyright: ignore
    assert batch.blocks[0].counts[:, 2].tolist() == [1, 0]  # pyright: ignore
    found = embedding(batch, constants)
    assert not torch.equal(found[0], found[1])


def test_the_score_is_a_head_of_each_predicate() -> None:
    _, embedding = classifier()
    values = torch.rand(2, 3)
    expected = torch.stack([values[i] @ embedding.head[p] + embedding.head_bias[p] for i, p in enumerate((3, 1))])
    torch.testing.assert_close(embedding.score(values, torch.tensor([3, 1])), expected)


def test_dropout_and_word_dropout_act_in_training_only() -> None:
    index, arguments = atoms_of(2)
    for options in ({"encoder_dropout": 0.5}, {"word_dropout": 0.5}, {"constant_dropout": 0.5}):
        constants, embedding = classifier(**options)
        batch = embedding.collate(index, arguments, constants)
        once, again = (embedding.train()(batch, constants.train()) for _ in range(2))
        assert not torch.equal(once, again)
        once, again = (embedding.eval()(batch, constants.eval()) for _ in range(2))
        assert torch.equal(once, again)


def test_gradients_reach_every_weight() -> None:
    constants, embedding = classifier()
    total = torch.zeros(())
    for arity in (1, 2, 3):
        rows = torch.tensor([predicate.arity == arity for predicate in PREDICATES])[INDEX]
        batch = embedding.collate(INDEX[rows], ARGUMENTS[rows, :arity], constants)
        total = total + embedding.score(embedding(batch, constants), INDEX[rows]).square().sum()
    total.backward()
    for name, parameter in [*embedding.named_parameters(), ("vectors", constants.vectors)]:
        assert parameter.grad is not None, name
        assert bool(parameter.grad.abs().sum() > 0), name
