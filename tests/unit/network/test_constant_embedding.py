"""Emb(c): a table of vectors, or what encoders make of features."""

from typing import Any

import torch
from torch import Tensor, nn

from r2n.network.constant_embedding import ConstantEmbedding, FeatureEncoder, VectorChannel, WordChannel, make_channels
from r2n.options import ModelOptions
from tests.featured_problem import featured_problem


def read(embedding: ConstantEmbedding, ids: Tensor | None = None) -> Tensor:
    """Emb(c) of some constants, or of all."""
    return embedding(embedding.collate(ids))


def test_each_constant_has_its_own_row() -> None:
    embedding = ConstantEmbedding(3, 2, dropout=0.0)
    assert embedding.vectors.shape == (3, 2)
    ids = torch.tensor([[2, 0], [2, 1]])
    found = read(embedding, ids)
    assert found.shape == (2, 2, 2)
    for row, pair in enumerate(ids.tolist()):
        for place, constant in enumerate(pair):
            assert torch.equal(found[row, place], embedding.vectors[constant])


def test_vectors_begin_with_the_given_deviation() -> None:
    torch.manual_seed(0)
    assert abs(float(ConstantEmbedding(200, 50, scale=0.3, dropout=0.0).vectors.detach().std()) - 0.3) < 0.01
    assert abs(float(ConstantEmbedding(200, 50, scale=2.0, dropout=0.0).vectors.detach().std()) - 2.0) < 0.05


def test_dropout_blanks_a_constant_alike_wherever_it_stands_and_only_in_training() -> None:
    torch.manual_seed(0)
    embedding = ConstantEmbedding(4, 50, dropout=0.5)
    twice = torch.tensor([1, 3, 1])
    dropped = read(embedding.train(), twice)
    assert torch.equal(dropped[0], dropped[2])
    assert 10 < int((dropped[0] == 0).sum()) < 40
    assert torch.equal(read(embedding.eval(), twice), embedding.vectors[twice])


def test_no_constants_are_legal() -> None:
    assert read(ConstantEmbedding(0, 2, dropout=0.0), torch.zeros(0, 1, dtype=torch.int64)).shape == (0, 1, 2)


KNOWN = featured_problem().knowledge


def encoded(**options: Any) -> tuple[ConstantEmbedding, list[FeatureEncoder]]:
    torch.manual_seed(0)
    encoders = {"image": nn.Sequential(nn.Flatten(), nn.Linear(16, options.pop("image_dim", 2)))}
    channels = make_channels(KNOWN, encoders, ModelOptions(word_dropout=options.pop("word_dropout", 0.0)))
    made = [FeatureEncoder(of_domain, 3, hidden=5, dropout=0.0) for of_domain in channels.values()]
    return ConstantEmbedding(len(KNOWN.language.constants), 3, encoders=made, **{"dropout": 0.0, **options}), made


def test_encoded_constants_have_the_mlp_of_all_their_features() -> None:
    embedding, (papers, _) = encoded()
    numbers, words = papers.channels
    assert isinstance(numbers, VectorChannel)
    assert isinstance(words, WordChannel)
    for name in ("p1", "p4"):
        constant = KNOWN.language.constant_id(name)
        row = int(papers.place[constant])
        bag = torch.from_numpy(words.bags.known.toarray()[row])
        hidden = numbers.vectors[row] @ papers.first[0] + bag @ papers.first[1] + papers.bias
        expected = papers.last(torch.relu(hidden))  # pyright: ignore
        torch.testing.assert_close(read(embedding, torch.tensor([constant]))[0], expected)


def test_behind_a_callers_module_stands_a_map_only_where_sizes_differ() -> None:
    _, (_, images) = encoded(image_dim=3)
    assert images.last is None
    _, (_, images) = encoded(image_dim=2)
    assert images.last is not None
    module = images.channels[0]
    torch.testing.assert_close(images(torch.tensor([1])), images.last(module(torch.tensor([1]))))


def test_the_table_has_learned_and_encoded_vectors_in_their_places() -> None:
    embedding, encoders = encoded()
    table = read(embedding)
    assert table.shape == (len(KNOWN.language.constants), 3)
    ids = torch.tensor([[3, 0], [3, 5]])
    torch.testing.assert_close(read(embedding, ids), table[ids])
    ann, bob = (KNOWN.language.constant_id(name) for name in ("ann", "bob"))
    assert torch.equal(table[[ann, bob]], embedding.vectors)
    assert all(bool((encoder.place >= 0).any()) for encoder in encoders)


def test_each_constant_is_encoded_once_and_only_if_asked_for() -> None:
    embedding, (_, images) = encoded()
    seen: list[torch.Tensor] = []
    images.channels[0].register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    constant = KNOWN.language.constant_id("i1")
    read(embedding, torch.full((7, 2), constant))
    assert [len(rows) for rows in seen] == [1]
    read(embedding, torch.tensor([KNOWN.language.constant_id("p1")]))
    assert len(seen) == 1


def test_encoded_constants_are_dropped_and_forget_words_in_training() -> None:
    for options in ({"dropout": 0.5}, {"word_dropout": 0.5}):
        embedding, _ = encoded(**options)
        assert not torch.equal(read(embedding.train()), read(embedding))
        assert torch.equal(read(embedding.eval()), read(embedding))
