"""A network on changed features: rebuilt from a changed knowledge base, with the weights, words and scales it had."""

import math
import re
from collections.abc import Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from unittest.mock import patch

import numpy as np
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer
from torch import nn

from r2n.data.features import Bags
from r2n.data.knowledge_base import KnowledgeBase
from r2n.network.graph_sources import GraphSource
from r2n.network.r2n import R2N
from r2n.options import ModelOptions
from r2n.scoring import AtomLogits


def words_of(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())


def grams_of(text: str) -> list[str]:
    words = [f" {word} " for word in words_of(text)]
    return [word[i : i + n] for word in words for n in (2, 3, 4) for i in range(len(word) - n + 1)]


def common_prefix(one: str, other: str) -> int:
    return max(n for n in range(min(len(one), len(other)) + 1) if one[:n] == other[:n])


def without(text: str, word: str) -> str:
    return " ".join(other for other in words_of(text) if other != word)


@dataclass(frozen=True)
class Rerun:
    model: R2N
    knowledge: KnowledgeBase
    options: ModelOptions
    source: GraphSource
    encoders: Mapping[str, nn.Module]

    def logit(self, code: int, model: R2N | None = None) -> float:
        """The logit of an atom, by the network itself or another."""
        return float(AtomLogits(model or self.model, self.source, self.knowledge.evidence)(np.array([code]))[0])

    def without_word(self, code: int, constant: str, word: str) -> float:
        wanted = self.knowledge.language.constant_id(constant)
        changed, before = dict(self.knowledge.features), {}
        for name, features in changed.items():
            if features.texts is None:
                continue
            pairs = zip(features.constants.tolist(), features.texts, strict=True)
            texts = tuple(without(text, word) if own == wanted else text for own, text in pairs)
            changed[name] = replace(features, texts=texts)
            before[texts] = features.texts
        with words_as_before(before):
            knowledge = replace(self.knowledge, features=changed)
            model = R2N.build(knowledge, self.options, encoders=deepcopy(self.encoders))
        model.to(self.model.constants.vectors.dtype).load_state_dict(self.model.state_dict())
        return self.logit(code, model.eval())


@contextmanager
def words_as_before(before: Mapping[tuple[str, ...], tuple[str, ...]]):
    """Texts become bags over the vocabulary of the texts that stood in their place."""

    def bags(texts, in_training: np.ndarray, *, weights: str, min_texts: int, token: str) -> Bags:
        tokens_of = words_of if token == "word" else grams_of
        old = [tokens_of(text) for text in before[texts]]
        every = sorted({word for words in old for word in words})
        train = [set(words) for words, is_in in zip(old, in_training, strict=True) if is_in]
        seen_in = {word: sum(word in words for words in train) for word in every}
        vocabulary = [word for word in every if seen_in[word] >= max(1, min_texts)]
        rows = []
        for text in texts:
            own = tokens_of(text)
            row = [float(own.count(word)) for word in vocabulary]
            if weights == "binary":
                row = [float(value > 0) for value in row]
            if weights == "tfidf":
                rare = [math.log((1 + len(train)) / (1 + seen_in[word])) + 1 for word in vocabulary]
                row = [value * weight for value, weight in zip(row, rare, strict=True)]
                length = math.sqrt(sum(value * value for value in row)) or 1.0
                row = [value / length for value in row]
            rows.append(row)
        marks = [[float(word in tokens_of(text)) for word in every] for text in texts]
        known = csr_array(np.array(rows, np.float32).reshape(len(texts), len(vocabulary)))
        marked = csr_array(np.array(marks, np.float32).reshape(len(texts), len(every)))
        columns = np.array([every.index(word) for word in vocabulary], np.int64)
        found = Bags(
            tuple(texts), tuple(every), marked, CountVectorizer(), columns, "word" if token == "word" else "char"
        )
        vars(found).update(known=known, every=marked)
        return found

    with patch("r2n.network.constant_embedding.bags_of_words", bags):
        yield
