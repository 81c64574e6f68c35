"""Emb(c): learned vectors, channels of features and their encoders."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from torch import Tensor, nn

from r2n.data.knowledge_base import Evidence, KnowledgeBase
from r2n.errors import ConfigError
from r2n.network.constant_embedding import (
    ConstantEmbedding,
    FeatureEncoder,
    ModuleChannel,
    SparseRows,
    VectorChannel,
    WordChannel,
    make_channels,
)
from r2n.options import ModelOptions
from tests.examples import at_most
from tests.featured_problem import IMAGES, NUMBERS, TITLES, featured_problem


def read(embedding: ConstantEmbedding, ids: Tensor | None = None) -> Tensor:
    """Emb(c) of some constants, or of all."""
    return embedding(embedding.collate(ids))


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
        row = int(papers.row_of[constant])
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
    assert all(bool((encoder.row_of >= 0).any()) for encoder in encoders)


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


PLAIN = ModelOptions()
FLAT = nn.Sequential(nn.Flatten(), nn.Linear(16, 5))


def ids(known: KnowledgeBase, *names: str) -> Tensor:
    return torch.tensor([known.language.constant_id(name) for name in names])


def test_words_are_those_of_labelled_constants_not_of_closed_facts_or_queries() -> None:
    words = make_channels(KNOWN, {}, PLAIN)["paper"][1]
    assert isinstance(words, WordChannel)
    assert words.bags.vocabulary == ("and", "cats", "dogs", "mice")
    assert words.size == 4
    table = torch.tensor([[1.0], [10.0], [100.0], [1000.0]])
    rows = words.row_of[ids(KNOWN, "p1", "p2", "p3", "p4")]
    assert words.times(table, None)[rows].flatten().tolist() == [111, 100, 1011, 100]


def test_word_dropout_forgets_words_in_training_only_and_keeps_the_mean() -> None:
    words = make_channels(KNOWN, {}, ModelOptions(word_dropout=0.5))["paper"][1]
    assert isinstance(words, WordChannel)
    torch.manual_seed(0)
    drawn = torch.stack([found for _ in range(400) if (found := words.train().kept_words()) is not None])
    assert set(drawn.unique().tolist()) == {0.0, 2.0}
    assert abs(float(drawn.mean()) - 1) < 0.1
    assert words.eval().kept_words() is None
    kept = torch.tensor([0.0, 2.0, 0.0, 0.0])
    found = words.times(torch.ones(4, 1), kept)[words.row_of[ids(KNOWN, "p1", "p2", "p3")]]
    assert found.flatten().tolist() == [2, 0, 2]


def test_vectors_are_scaled_by_the_training_constants() -> None:
    vectors = make_channels(KNOWN, {}, PLAIN)["paper"][0]
    assert isinstance(vectors, VectorChannel)
    found = vectors(vectors.row_of[ids(KNOWN, *NUMBERS)])
    seen = np.array([NUMBERS[name][0] for name in ("p1", "p2", "p3")])
    expected = [(NUMBERS[name][0] - seen.mean()) / seen.std() for name in NUMBERS]
    np.testing.assert_allclose(found[:, 0].numpy(), expected, rtol=1e-6)
    assert found[:, 1].tolist() == [0.0] * 4  # the same number everywhere


@pytest.mark.parametrize("in_training", [[True, True, True, False], [False] * 4])
def test_what_training_did_not_have_changes_no_other_vector(in_training: list[bool]) -> None:
    known = KNOWN if any(in_training) else replace(KNOWN, evidence=Evidence(np.zeros(0, np.int64), np.zeros(0, bool)))
    of_papers = known.features["paper"]
    assert of_papers.vectors is not None
    small = np.array([[0.1, 5.0], [0.2, 5.0], [0.3, 5.0], [0.2, 5.0]])
    outlier = np.vstack([small[:3], [[1e7, -1e9]]])
    new = ids(known, "p4").numpy()
    found = []
    for vectors in (small, outlier):
        features = {"paper": replace(of_papers, vectors=vectors, texts=None)}
        (channel,) = make_channels(replace(known, features=features), {}, PLAIN, new=new)["paper"]
        assert isinstance(channel, VectorChannel)
        found.append(channel(channel.row_of[ids(known, "p1", "p2", "p3")]))
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=0)
    assert found[0][:, 0].std() > 1


def test_a_callers_module_reads_features_as_they_were_given() -> None:
    channel = make_channels(KNOWN, {"image": FLAT}, PLAIN)["image"][0]
    assert isinstance(channel, ModuleChannel)
    assert channel.size == 5
    rows = channel.row_of[ids(KNOWN, "i2", "i0")]
    given = torch.tensor(np.stack([IMAGES["i2"], IMAGES["i0"]]), dtype=torch.float32)
    torch.testing.assert_close(channel(rows), FLAT(given))


class Twice(nn.Module):
    """Gives no tensor."""

    def forward(self, given: Tensor) -> tuple[Tensor, Tensor]:
        return given, given


class Lengths(nn.Module):
    """Reads texts, or vectors and texts."""

    def forward(self, *given: object) -> Tensor:
        self.seen = given
        texts = given[-1]
        assert isinstance(texts, list)
        return torch.tensor([[float(len(text))] for text in texts])


def test_a_callers_module_reads_texts_and_vectors_together() -> None:
    module = Lengths()
    (channel,) = make_channels(KNOWN, {"paper": module}, PLAIN)["paper"]
    assert isinstance(channel, ModuleChannel)
    assert channel(channel.row_of[ids(KNOWN, "p2", "p4")]).tolist() == [[4], [11]]
    assert isinstance(module.seen[0], Tensor)
    assert module.seen[0].tolist() == [list(NUMBERS["p2"]), list(NUMBERS["p4"])]
    (channel,) = make_channels(featured_problem({"paper": TITLES}).knowledge, {"paper": module}, PLAIN)["paper"]
    assert isinstance(channel, ModuleChannel)
    assert channel.size == 1
    assert module.seen == (["cats and dogs", "dogs"],)


def test_asking_for_the_size_leaves_no_trace() -> None:
    module = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(16), nn.Dropout(0.5))
    before = {name: value.clone() for name, value in module.state_dict().items()}
    random = torch.get_rng_state()
    make_channels(KNOWN, {"image": module}, PLAIN)
    assert torch.equal(torch.get_rng_state(), random)
    assert module.training
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


@pytest.mark.parametrize(
    ("encoders", "said"),
    [
        ({"imag": FLAT}, "an encoder is given for 'imag'"),
        ({"person": FLAT}, "'person', which is no domain with features"),
        ({"image": lambda x: x}, "is a function, not a torch.nn.Module"),
        ({"image": nn.Linear(3, 2)}, r"fails on vectors of shape \(2, 1, 4, 4\)"),
        ({"image": nn.Flatten(0)}, r"gives a tensor of shape \(32,\) for the features of 2 constants"),
        ({"image": nn.Flatten(0, 1)}, None),
        ({"image": nn.LSTM(4, 3)}, "fails on vectors of shape"),
        ({"image": Twice()}, "gives a tuple for the features of 2 constants"),
    ],
)
def test_modules_that_do_not_fit_are_refused(encoders: dict[str, Any], said: str | None) -> None:
    if said is None:
        assert make_channels(KNOWN, encoders, PLAIN)["image"][0].size == 16
        return
    with pytest.raises(ConfigError, match=said):
        make_channels(KNOWN, encoders, PLAIN)


def test_a_domain_without_any_features_has_no_channel() -> None:
    assert make_channels(featured_problem({}).knowledge, {}, PLAIN) == {}


@at_most(40, "a matrix has few shapes that matter")
@given(st.integers(0, 5), st.integers(1, 6), st.integers(1, 4), st.integers(0, 10_000))
def test_the_product_and_its_gradient_are_those_of_dense_matrices(rows: int, columns: int, dim: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(rows, columns)) * (rng.random((rows, columns)) < 0.4)
    table = torch.from_numpy(rng.normal(size=(columns, dim)).astype(np.float32)).requires_grad_()
    matrix = torch.from_numpy(dense.astype(np.float32))
    found, expected = SparseRows.from_matrix(csr_array(dense)).times(table), matrix @ table
    assert found.shape == (rows, dim)
    torch.testing.assert_close(found, expected)
    slope = torch.from_numpy(rng.normal(size=(rows, dim)).astype(np.float32))
    (gradient,) = torch.autograd.grad(found, table, slope)
    torch.testing.assert_close(gradient, matrix.t() @ slope)


def test_a_matrix_without_columns() -> None:
    found = SparseRows.from_matrix(csr_array(np.zeros((3, 0)))).times(torch.ones(1, 2, requires_grad=True))
    assert found.tolist() == [[0, 0]] * 3
