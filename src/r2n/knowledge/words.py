"""What is known: texts -> bags of words, over a vocabulary that only the training texts make."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool
from scipy.sparse import csr_array

WORD = r"[^\W_]+"  # letters and digits of any script; an underscore parts words as a blank does
WordWeights = Literal["binary", "count", "tfidf"]


@dataclass(frozen=True, eq=False)
class Bags:
    """Texts as bags of words, row by row.

    `known` is over the `vocabulary`, which has only words of training texts. `every` marks all words, also those that
    training never saw: how many words two texts share can be told of them too.
    """

    vocabulary: tuple[str, ...]
    known: csr_array
    every: csr_array


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
    return Bags(tuple(words[chosen].tolist()), known, every)


def _counted(texts: Sequence[str]) -> tuple[csr_array, np.ndarray]:
    """How often each word stands in each text, and the words in order."""
    from sklearn.feature_extraction.text import CountVectorizer  # takes a second to import

    vectorizer = CountVectorizer(token_pattern=WORD)
    try:
        counts = vectorizer.fit_transform(texts)
    except ValueError:  # no text has any word
        return csr_array(np.zeros((len(texts), 0), np.float32)), np.zeros(0, str)
    return csr_array(counts, dtype=np.float32), vectorizer.get_feature_names_out()
