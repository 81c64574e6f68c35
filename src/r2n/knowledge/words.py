"""What is known: texts -> bags of words, over a vocabulary that only the training texts make."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Int64
from scipy.sparse import csr_array

WORD = r"[^\W_]+"  # letters and digits of any script; an underscore parts words as a blank does
WordWeights = Literal["binary", "count", "tfidf"]


@dataclass(frozen=True, eq=False)
class Bags:
    """Texts as bags of words, row by row.

    `known` is over the `vocabulary`, which has only words of training texts. `every` marks all `words`, also those that
    training never saw: how many words two texts share can be told of them too. `columns` holds the places of the
    vocabulary among all words. `is_scaled`: each bag has length one.
    """

    vocabulary: tuple[str, ...]
    known: csr_array
    every: csr_array
    words: tuple[str, ...]
    columns: Int64[np.ndarray, " vocabulary"]
    is_scaled: bool = False

    def taken(self, rows: Int64[np.ndarray, " taken"], without: Int64[np.ndarray, " taken"]) -> "Bags":
        """The bags of some rows, each without a word (by its place among all words; -1: with all that it has)."""
        place = np.minimum(np.searchsorted(self.columns, without), max(0, len(self.columns) - 1))
        is_known = (self.columns[place] == without) if len(self.columns) else np.zeros(len(without), bool)
        known = _without(csr_array(self.known[rows]), np.where(is_known, place, -1))
        if self.is_scaled:
            length = np.sqrt(np.asarray(known.multiply(known).sum(axis=1)).reshape(-1))
            scale = np.where(is_known & (length > 0), 1 / np.where(length > 0, length, 1.0), 1.0)
            known.data *= np.repeat(scale, np.diff(known.indptr)).astype(known.dtype)
        every = _without(csr_array(self.every[rows]), without)
        return Bags(self.vocabulary, known, every, self.words, self.columns, self.is_scaled)


def _without(matrix: csr_array, columns: Int64[np.ndarray, " rows"]) -> csr_array:
    """The matrix without an entry of each row; -1: with all."""
    sizes = np.diff(matrix.indptr)
    kept = matrix.indices != np.repeat(columns, sizes)
    ends = np.concatenate([[0], np.cumsum(kept)])[matrix.indptr]
    return csr_array((matrix.data[kept], matrix.indices[kept], ends), shape=matrix.shape)


def bags_of_words(
    texts: Sequence[str],
    in_training: Bool[np.ndarray, " texts"],
    *,
    weights: WordWeights = "binary",
    min_texts: int = 1,
) -> Bags:
    """The bags of texts; a word of the vocabulary stands in at least `min_texts` training texts.

    Words are told apart by their letters, not by case. `tfidf` weighs a word by how rare it is in the training texts,
    and gives each bag length one.
    """
    counts, words = _counted(texts)
    every = csr_array((np.ones_like(counts.data), counts.indices, counts.indptr), shape=counts.shape)
    seen_in = np.asarray(every[in_training].sum(axis=0)).reshape(-1)
    chosen = np.flatnonzero(seen_in >= max(1, min_texts))
    known = csr_array((every if weights == "binary" else counts)[:, chosen])
    if weights == "tfidf" and len(chosen):
        from sklearn.feature_extraction.text import TfidfTransformer  # takes a second to import

        known = csr_array(TfidfTransformer().fit(known[in_training]).transform(known), dtype=np.float32)
    named = tuple(words.tolist())
    return Bags(tuple(named[i] for i in chosen), known, every, named, chosen, is_scaled=weights == "tfidf")


def _counted(texts: Sequence[str]) -> tuple[csr_array, np.ndarray]:
    """How often each word stands in each text, and the words in order."""
    from sklearn.feature_extraction.text import CountVectorizer  # takes a second to import

    vectorizer = CountVectorizer(token_pattern=WORD)
    try:
        counts = vectorizer.fit_transform(texts)
    except ValueError:  # no text has any word
        return csr_array(np.zeros((len(texts), 0), np.float32)), np.zeros(0, str)
    return csr_array(counts, dtype=np.float32), vectorizer.get_feature_names_out()
