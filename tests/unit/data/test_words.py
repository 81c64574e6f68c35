"""Bags of words: what is a word, whose words make the vocabulary, and what each weighs."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2n.data.features import WordWeights, bags_of_words

TEXTS = ("The cat sat, the cat ran", "a_dog ran", "", "zebra sat")
IN_TRAINING = np.array([True, True, True, False])


def as_dicts(matrix, names) -> list[dict[str, float]]:
    rows = matrix.toarray().tolist()
    return [{name: value for name, value in zip(names, row, strict=True) if value} for row in rows]


def test_words_are_told_apart_by_letters_and_digits_of_any_case() -> None:
    bags = bags_of_words(("Blum_A. 1998", "Zürich, Ελλάδα"), np.ones(2, bool))
    assert set(bags.vocabulary) == {"blum", "a", "1998", "zürich", "ελλάδα"}


def test_the_vocabulary_has_no_word_that_only_other_texts_have() -> None:
    bags = bags_of_words(TEXTS, IN_TRAINING)
    assert bags.vocabulary == ("a", "cat", "dog", "ran", "sat", "the")
    assert as_dicts(bags.known, bags.vocabulary) == [
        {"cat": 1, "ran": 1, "sat": 1, "the": 1},
        {"a": 1, "dog": 1, "ran": 1},
        {},
        {"sat": 1},
    ]


def test_every_word_is_marked_beside_the_vocabulary() -> None:
    every = bags_of_words(TEXTS, IN_TRAINING).every.toarray()
    assert every.sum(1).tolist() == [4, 3, 0, 2]
    assert set(np.unique(every)) == {0, 1}


def test_counts_and_least_number_of_texts() -> None:
    bags = bags_of_words(TEXTS, IN_TRAINING, weights="count", min_texts=2)
    assert as_dicts(bags.known, bags.vocabulary) == [{"ran": 1}, {"ran": 1}, {}, {}]
    bags = bags_of_words(TEXTS, IN_TRAINING, weights="count")
    assert as_dicts(bags.known, bags.vocabulary)[0] == {"cat": 2, "ran": 1, "sat": 1, "the": 2}


def test_tfidf_is_of_the_training_texts_and_gives_length_one() -> None:
    bags = bags_of_words(TEXTS, IN_TRAINING, weights="tfidf")
    dog = as_dicts(bags.known, bags.vocabulary)[1]
    rare, common = (math.log((1 + 3) / (1 + seen)) + 1 for seen in (1, 2))
    length = math.sqrt(2 * rare**2 + common**2)
    assert dog == pytest.approx({"a": rare / length, "dog": rare / length, "ran": common / length}, rel=1e-6)
    assert as_dicts(bags.known, bags.vocabulary)[3] == pytest.approx({"sat": 1.0})


@pytest.mark.parametrize("weights", ["binary", "count", "tfidf"])
@pytest.mark.parametrize("texts", [(), ("", "-"), ("only in test", "-")])
def test_an_empty_vocabulary_is_legal(weights, texts) -> None:
    bags = bags_of_words(texts, np.zeros(len(texts), bool), weights=weights)
    assert bags.vocabulary == ()
    assert bags.known.shape == (len(texts), 0)


@given(st.lists(st.tuples(st.lists(st.sampled_from("abcdef"), max_size=5), st.booleans()), max_size=6))
def test_bags_are_those_of_plain_loops(rows: list[tuple[list[str], bool]]) -> None:
    texts = [" ".join(words) for words, _ in rows]
    in_training = np.array([flag for _, flag in rows], bool)
    bags = bags_of_words(texts, in_training, weights="count")
    assert set(bags.vocabulary) == {word for words, flag in rows if flag for word in words}
    for row, (words, _) in enumerate(rows):
        for column, word in enumerate(bags.vocabulary):
            assert bags.known.toarray()[row, column] == words.count(word)


@pytest.mark.parametrize("weights", ["binary", "count", "tfidf"])
def test_bags_taken_without_a_word_are_those_of_a_text_without_it(weights: WordWeights) -> None:
    """All occurrences go; the vocabulary, and how rare words are, stay."""
    bags = bags_of_words(TEXTS, IN_TRAINING, weights=weights)
    the, zebra = bags.words.index("the"), bags.words.index("zebra")
    taken = bags.taken(np.array([0, 3, 0, 2, 3]), np.array([the, zebra, -1, the, -1]))
    shorter = bags_of_words((*TEXTS, "cat sat cat ran", "sat"), np.append(IN_TRAINING, [False, False]), weights=weights)
    assert taken.vocabulary == bags.vocabulary == shorter.vocabulary
    expected = [as_dicts(shorter.known, shorter.vocabulary)[row] for row in (4, 5, 0, 2, 3)]
    for found, wanted in zip(as_dicts(taken.known, taken.vocabulary), expected, strict=True):
        assert found == pytest.approx(wanted)
    assert as_dicts(taken.every, taken.words) == [
        as_dicts(shorter.every, shorter.words)[row] for row in (4, 5, 0, 2, 3)
    ]


@pytest.mark.parametrize("weights", ["binary", "tfidf"])
def test_a_bag_may_be_empty_and_so_may_the_vocabulary(weights: WordWeights) -> None:
    bags = bags_of_words(("cat", ""), np.array([True, True]), weights=weights)
    taken = bags.taken(np.array([0, 1]), np.array([0, 0]))
    assert taken.known.toarray().tolist() == taken.every.toarray().tolist() == [[0], [0]]
    nothing = bags_of_words(("cat", "dog"), np.zeros(2, bool), weights=weights).taken(np.array([1]), np.array([1]))
    assert nothing.known.shape == (1, 0)
    assert nothing.every.toarray().tolist() == [[0, 0]]
    none = bags.taken(np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert none.known.shape == (0, 1)
