"""Constants without a part of their features: which there are, and what an input layer with the same weights reads."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from r2n.explanation import features
from r2n.explanation.features import Variant, VariedInput, channels_of, variants_of, without_word
from r2n.network.constant_embedding import VectorChannel, WordChannel
from r2n.network.r2n import R2N
from tests.featured_problem import TITLES, featured_problem

KNOWN = featured_problem().knowledge
LANGUAGE = KNOWN.language


class CountsLetters(nn.Module):
    """A caller's module that reads texts."""

    def forward(self, texts: Sequence[str]) -> Tensor:
        return torch.tensor([[float(text.count(letter)) for letter in "adn"] for text in texts])


def network(input: str = "pair", encoders: dict[str, nn.Module] | None = None, **changes: Any) -> R2N:
    torch.manual_seed(0)
    return R2N.build(KNOWN, input=input, dim=4, layers=1, encoders=encoders, **changes).eval()


def ids(*names: str) -> list[int]:
    return [LANGUAGE.constant_id(name) for name in names]


def test_a_constant_has_a_variant_for_each_word() -> None:
    p3, ann = ids("p3", "ann")
    model = network()
    assert [type(channel) for channel in channels_of(model)] == [VectorChannel, WordChannel, VectorChannel]
    assert variants_of(model, p3) == [Variant(p3, word) for word in ("and", "cats", "mice")]
    assert variants_of(model, ann) == []


def test_words_of_the_vocabulary_come_first_and_no_more_than_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """Training knows `dogs` and not `unseen`, as it knows p2 and not p4."""
    (p4,) = ids("p4")
    assert [v.word for v in variants_of(network(), p4)] == ["dogs", "unseen"]
    monkeypatch.setattr(features, "WORDS_OF_A_BAG", 1)
    assert [v.word for v in variants_of(network(), p4)] == ["dogs"]


def test_a_text_for_a_module_loses_its_words_one_by_one_but_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = featured_problem({"paper": TITLES})
    model = R2N.build(problem.knowledge, input="pair", dim=4, layers=1, encoders={"paper": CountsLetters()})
    p2, p3 = ids("p2", "p3")
    assert [v.word for v in variants_of(model, p3)] == ["cats", "and", "mice"]
    assert [v.word for v in variants_of(model, p2)] == [], "dogs alone"
    monkeypatch.setattr(features, "WORDS_OF_A_TEXT", 2)
    assert [v.word for v in variants_of(model, p3)] == ["cats", "and"]


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("Cats and more cats", "cats", "and more "),
        ("a_cat, catty CAT!", "cat", "a_, catty !"),
        ("nothing", "cat", "nothing"),
        ("cat", "cat", ""),
    ],
)
def test_all_occurrences_of_a_word_go_and_no_other_word(text: str, word: str, expected: str) -> None:
    assert without_word(text, word) == expected


def test_no_atoms_and_no_variants_are_fine() -> None:
    model = network()
    read = VariedInput.from_network(model, np.zeros(0, np.int64), [])
    assert read.embed(np.zeros(0, np.int64), np.zeros((0, 3), np.int64)).shape == (0, 4)
