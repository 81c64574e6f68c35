"""Emb(c): a table of vectors."""

import torch

from r2n.model.constant_embedding import ConstantEmbedding


def test_each_constant_has_its_own_row() -> None:
    embedding = ConstantEmbedding(3, 2)
    assert embedding.vectors.shape == (3, 2)
    ids = torch.tensor([[2, 0], [2, 1]])
    found = embedding(ids)
    assert found.shape == (2, 2, 2)
    for row, pair in enumerate(ids.tolist()):
        for place, constant in enumerate(pair):
            assert torch.equal(found[row, place], embedding.vectors[constant])


def test_vectors_begin_with_the_given_deviation() -> None:
    torch.manual_seed(0)
    assert abs(float(ConstantEmbedding(200, 50, scale=0.3).vectors.detach().std()) - 0.3) < 0.01
    assert abs(float(ConstantEmbedding(200, 50, scale=2.0).vectors.detach().std()) - 2.0) < 0.05


def test_dropout_blanks_a_constant_alike_wherever_it_stands_and_only_in_training() -> None:
    torch.manual_seed(0)
    embedding = ConstantEmbedding(4, 50, dropout=0.5)
    twice = torch.tensor([1, 3, 1])
    dropped = embedding.train()(twice)
    assert torch.equal(dropped[0], dropped[2])
    assert 10 < int((dropped[0] == 0).sum()) < 40
    assert torch.equal(embedding.eval()(twice), embedding.vectors[twice])


def test_no_constants_are_legal() -> None:
    assert ConstantEmbedding(0, 2)(torch.zeros(0, 1, dtype=torch.int64)).shape == (0, 1, 2)
