"""The paper's tables: baselines that learn nothing: proofs counted, and what an evidence predicate and words say."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float64
from scipy.sparse import csr_array

from r2n.evaluation.evaluate import classify
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.store import Store
from r2n.knowledge.herbrand import Codes
from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.knowledge.problem import Problem
from r2n.knowledge.words import bags_of_words

DEPTHS = (1, 2, 3)


@dataclass(frozen=True, eq=False)
class ProofCounts:
    """The number of ground rules with an atom in their consequent, by backward chaining of a given depth."""

    knowledge: KnowledgeBase
    depth: int

    def __call__(self, codes: Codes) -> Float64[np.ndarray, " atoms"]:
        """The counts of atoms given by their codes."""
        width = 0 if self.depth == 1 else 1
        grounding = BackwardGrounder(width, self.depth).ground(Store(self.knowledge), codes)
        counts = np.zeros(len(codes))
        order = np.argsort(codes)
        for part in grounding.ground_rules:
            for position in part.rule.head_positions:
                heads = part.atoms[:, position]
                place = np.searchsorted(codes, heads, sorter=order)
                found = place < len(codes)
                found[found] = codes[order[place[found]]] == heads[found]
                np.add.at(counts, order[place[found]], 1.0)
        return counts


def best_depth(problem: Problem) -> int:
    """The depth whose counts classify the validation queries best."""
    base = problem.knowledge.base
    precision = {
        depth: classify(ProofCounts(problem.knowledge, depth), problem.valid, base).metrics["ap"] for depth in DEPTHS
    }
    return max(DEPTHS, key=lambda depth: precision[depth])


@dataclass(frozen=True, eq=False)
class EvidenceScores:
    """An atom P(x, y) scores 1 where `reads`(x, y) is a fact, plus (`words`) the Jaccard similarity of their texts."""

    knowledge: KnowledgeBase
    reads: str
    words: bool

    def __call__(self, codes: Codes) -> Float64[np.ndarray, " atoms"]:
        """The scores of binary atoms given by their codes."""
        knowledge = self.knowledge
        arguments = knowledge.base.decode(codes)[1][:, :2]
        read = knowledge.language.predicate(self.reads)
        same = knowledge.base.encode(read, np.ascontiguousarray(arguments))
        scores = np.isin(same, knowledge.known_codes(read, True)).astype(np.float64)
        return scores + self._jaccard(*arguments.T) if self.words else scores

    @cached_property
    def _bags(self) -> csr_array:
        """The words of each constant, by id; none for constants without a text."""
        texts = [""] * len(self.knowledge.language.constants)
        for part in self.knowledge.features.values():
            for constant, text in zip(part.constants.tolist(), part.texts or (), strict=False):
                texts[constant] = text
        return bags_of_words(texts, np.ones(len(texts), bool)).every

    def _jaccard(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        sizes = np.asarray(self._bags.sum(axis=1)).reshape(-1)
        shared = np.asarray(self._bags[left].multiply(self._bags[right]).sum(axis=1)).reshape(-1)
        return shared / np.maximum(sizes[left] + sizes[right] - shared, 1)
