"""MLP_P of each predicate, and the rows of each; what all input layers promise is in tests/contracts."""

import torch

from r2n.logic.language import Domain, Predicate
from r2n.network.constant_embedding import ConstantEmbedding
from r2n.network.input_layers import AtomMLP, rows_by_predicate
from tests.model_strategies import plain_maps, shaken
from tests.oracles import message_passing

DOMAIN = Domain("d")
UNARY, BINARY, TERNARY = (Predicate(f"p{n}", (DOMAIN,) * n) for n in (1, 2, 3))


def test_predicates_that_are_there_have_their_rows() -> None:
    found = [(i, rows.tolist()) for i, rows in rows_by_predicate(torch.tensor([3, 1, 3, 3]))]
    assert found == [(1, [1]), (3, [0, 2, 3])]
    assert rows_by_predicate(torch.zeros(0, dtype=torch.int64)) == ()


def test_mlp_has_one_network_for_each_predicate_at_any_arity() -> None:
    embedding = shaken(AtomMLP((UNARY, BINARY, TERNARY, BINARY), 2), seed=0)
    constants = shaken(ConstantEmbedding(4, 2, dropout=0.0), seed=1)
    for arity, which in ((1, [0, 0]), (2, [3, 1, 3]), (3, [2])):
        predicates, arguments = torch.tensor(which), torch.arange(len(which) * arity).view(-1, arity) % 4
        found = embedding(embedding.collate(predicates, arguments, constants), constants)
        for row, predicate, own in zip(found, which, arguments, strict=True):
            maps = plain_maps(embedding.networks[predicate])  # pyright: ignore
            torch.testing.assert_close(row, message_passing.mlp(maps, constants.vectors[own].flatten()))
    assert embedding.score(torch.tensor([[1.0, 2.5]]), torch.tensor([0])).tolist() == [3.5]
