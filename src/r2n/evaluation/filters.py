"""Predictions -> numbers: which true atoms are no candidates in a ranking, and what to say of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from r2n.knowledge.code_sets import union
from r2n.knowledge.herbrand import Codes
from r2n.knowledge.knowledge_base import Evidence
from r2n.knowledge.problem import TRAIN, Problem


@dataclass(frozen=True, eq=False)
class Filter:
    """True atoms that are no candidates beside a query, and the splits they are of; the queries are always added.

    Never for negative samples in training: that would tell the network what is held out.
    """

    facts: Codes
    splits: tuple[str, ...]

    @classmethod
    def of(cls, problem: Problem, splits: Sequence[str] | None = None) -> "Filter":
        """The true atoms of some splits of a problem: `train`, and the names of its queries; all by default."""
        every = {TRAIN: problem.train, **problem.queries}
        chosen = tuple(every) if splits is None else tuple(splits)
        return cls(true_atoms(every[split] for split in chosen), chosen)

    @classmethod
    def by(cls, evidence: Evidence | None) -> "Filter":
        """The true atoms of evidence, if there is any."""
        if evidence is None:
            return cls(np.zeros(0, np.int64), ())
        return cls(true_atoms([evidence]), ("evidence",))

    def words(self, split: str) -> str:
        """What a report on the queries of a split says."""
        splits = tuple(dict.fromkeys((*self.splits, split)))
        named = " and ".join(part for part in (", ".join(splits[:-1]), splits[-1]) if part)
        return f"other true atoms of {named} are no candidates"


def true_atoms(parts: Iterable[Evidence]) -> Codes:
    """The true atoms of several parts of evidence, sorted and distinct."""
    return union(*(part.atoms[part.truth] for part in parts))
