"""Channels: what the network reads of constants with features, and callers' modules that do not fit."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from r2n.data.knowledge_base import Evidence, KnowledgeBase
from r2n.errors import ConfigError
from r2n.network.constant_embedding import Channel, ModuleChannel, VectorChannel, WordChannel, make_channels
from r2n.options import ModelOptions
from tests.featured_problem import IMAGES, NUMBERS, TITLES, featured_problem

KNOWN = featured_problem().knowledge
PLAIN = ModelOptions()
FLAT = nn.Sequential(nn.Flatten(), nn.Linear(16, 5))


def ids(known: KnowledgeBase, *names: str) -> Tensor:
    return torch.tensor([known.language.constant_id(name) for name in names])


def test_a_place_for_each_constant_with_features_and_none_for_others() -> None:
    channel = Channel(np.array([4, 1]), 6, 2)
    assert channel.place.tolist() == [-1, 1, -1, -1, 0, -1]


def test_a_channel_says_whose_features_it_reads() -> None:
    found = make_channels(KNOWN, {"image": FLAT}, PLAIN)
    assert [channel.domain for of_domain in found.values() for channel in of_domain] == ["paper", "paper", "image"]


def test_words_are_those_of_labelled_constants_not_of_closed_facts_or_queries() -> None:
    words = make_channels(KNOWN, {}, PLAIN)["paper"][1]
    assert isinstance(words, WordChannel)
    assert words.bags.vocabulary == ("and", "cats", "dogs", "mice")
    assert words.size == 4
    table = torch.tensor([[1.0], [10.0], [100.0], [1000.0]])
    rows = words.place[ids(KNOWN, "p1", "p2", "p3", "p4")]
    assert words.times(table, None)[rows].flatten().tolist() == [111, 100, 1011, 100]


def test_word_weights_are_passed_on() -> None:
    words = make_channels(KNOWN, {}, ModelOptions(word_weights="count", word_min_texts=2))["paper"][1]
    assert isinstance(words, WordChannel)
    assert words.bags.vocabulary == ("and", "cats", "dogs")
    row = int(words.place[ids(KNOWN, "p3")])
    assert words.bags.known.toarray()[row].tolist() == [2, 2, 0]


def test_word_dropout_forgets_words_in_training_only_and_keeps_the_mean() -> None:
    words = make_channels(KNOWN, {}, ModelOptions(word_dropout=0.5))["paper"][1]
    assert isinstance(words, WordChannel)
    torch.manual_seed(0)
    drawn = torch.stack([found for _ in range(400) if (found := words.train().kept_words()) is not None])
    assert set(drawn.unique().tolist()) == {0.0, 2.0}
    assert abs(float(drawn.mean()) - 1) < 0.1
    assert words.eval().kept_words() is None
    kept = torch.tensor([0.0, 2.0, 0.0, 0.0])
    found = words.times(torch.ones(4, 1), kept)[words.place[ids(KNOWN, "p1", "p2", "p3")]]
    assert found.flatten().tolist() == [2, 0, 2]


def test_vectors_are_scaled_by_the_training_constants() -> None:
    vectors = make_channels(KNOWN, {}, PLAIN)["paper"][0]
    assert isinstance(vectors, VectorChannel)
    found = vectors(vectors.place[ids(KNOWN, *NUMBERS)])
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
        found.append(channel(channel.place[ids(known, "p1", "p2", "p3")]))
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=0)
    assert found[0][:, 0].std() > 1


def test_a_callers_module_reads_features_as_they_were_given() -> None:
    channel = make_channels(KNOWN, {"image": FLAT}, PLAIN)["image"][0]
    assert isinstance(channel, ModuleChannel)
    assert channel.size == 5
    rows = channel.place[ids(KNOWN, "i2", "i0")]
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
    assert channel(channel.place[ids(KNOWN, "p2", "p4")]).tolist() == [[4], [11]]
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
