"""Who decides: the symbolic baseline, which learns nothing: an atom's score is the number of its ground rules."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from r2n.evaluation.evaluate import classify
from r2n.grounding.backward import BackwardGrounder
from r2n.knowledge.herbrand import Codes
from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.knowledge.problem import Problem

DEPTHS = (1, 2, 3)


@dataclass(frozen=True, eq=False)
class ProofCounts:
    """The number of ground rules with an atom in their consequent, by backward chaining of a given depth."""

    knowledge: KnowledgeBase
    depth: int

    def __call__(self, codes: Codes) -> Float64[np.ndarray, " atoms"]:
        """The counts of atoms given by their codes."""
        width = 0 if self.depth == 1 else 1
        grounding = BackwardGrounder(width, self.depth).ground(self.knowledge, codes)
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
