"""Constants without a part of their features: which there are, and what an input layer with the same weights reads."""

from collections.abc import Sequence
from dataclasses import replace
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


def embed(model: R2N, predicate: str, *rows: tuple[int, ...], read: VariedInput | None = None) -> Tensor:
    """Emb^0 of atoms of one predicate."""
    arguments = np.full((len(rows), 3), -1)
    arguments[:, : len(rows[0])] = rows
    read = read or VariedInput(model.constants, model.atom_embedding)
    with torch.no_grad():
        return read.embed(np.full(len(rows), LANGUAGE.predicate_index(predicate)), arguments)


def test_a_constant_has_a_variant_for_each_word() -> None:
    p3, ann = ids("p3", "ann")
    model = network()
    assert [type(channel) for channel in channels_of(model)] == [VectorChannel, WordChannel, VectorChannel]
    assert variants_of(model, p3) == [Variant(p3, 1, word) for word in ("and", "cats", "mice")]
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


@pytest.mark.parametrize("input", ["pair", "mlp", "distmult"])
def test_constants_as_they_are_are_read_as_the_network_reads_them(input: str) -> None:
    """Also those with learned vectors, and where only some of the constants are read."""
    model = network(input, encoders={"image": nn.Sequential(nn.Flatten(), nn.Linear(16, 4))})
    p1, p3, i1, ann = ids("p1", "p3", "i1", "ann")
    read = VariedInput.from_network(model, np.sort([p1, p3, i1, ann]), [Variant(p1, 1, "dogs")])
    rows = [(p1, p3), (p3, i1), (ann, p1), (ann, ann)]
    assert torch.allclose(embed(model, "alike", *rows, read=read), embed(model, "alike", *rows))
    assert torch.allclose(embed(model, "good", (p1,), read=read), embed(model, "good", (p1,)))


@pytest.mark.parametrize("input", ["pair", "mlp"])
def test_a_variant_without_its_only_word_is_a_text_without_words(input: str) -> None:
    """p2's title is `dogs`, which p1's has too: the vocabulary stays what it is."""
    p2, p3 = ids("p2", "p3")
    model, new = network(input), len(LANGUAGE.constants)
    read = VariedInput.from_network(model, np.array([p2, p3]), [Variant(p2, 1, "dogs")])
    papers = KNOWN.features["paper"]
    assert papers.texts is not None
    texts = tuple("" if text == "dogs" else text for text in papers.texts)
    changed = replace(KNOWN, features={**KNOWN.features, "paper": replace(papers, texts=texts)})
    other = R2N.build(changed, input=input, dim=4, layers=1).eval()
    other.load_state_dict(model.state_dict())
    found = embed(model, "alike", (new, p3), (p3, new), (new, new), read=read)
    assert torch.allclose(found, embed(other, "alike", (p2, p3), (p3, p2), (p2, p2)), atol=1e-6)


def test_weights_are_shared_and_the_network_stays_what_it_was() -> None:
    model = network("mlp", encoders={"image": nn.Sequential(nn.Flatten(), nn.Linear(16, 4))})
    p1, i0 = ids("p1", "i0")
    before = embed(model, "alike", (p1, i0))
    read = VariedInput.from_network(
        model, np.array(sorted((p1, i0))), [*variants_of(model, p1), *variants_of(model, i0)]
    )
    assert {id(w) for w in read.constants.parameters()} == {id(w) for w in model.constants.parameters()}
    assert torch.equal(embed(model, "alike", (p1, i0)), before)


def test_no_atoms_and_no_variants_are_fine() -> None:
    model = network()
    read = VariedInput.from_network(model, np.zeros(0, np.int64), [])
    assert read.embed(np.zeros(0, np.int64), np.zeros((0, 3), np.int64)).shape == (0, 4)
