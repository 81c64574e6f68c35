"""Predictions -> a run: constraints of the training facts that a ranking respects, as a result of its own."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int64

from r2n.errors import ConfigError, nearest
from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.mining.constraints import KINDS, Constraint, Kind, mine_constraints
from r2n.mining.forbidden import Forbidden

RANKED_KINDS: tuple[Kind, ...] = tuple(kind for kind in KINDS if not kind.startswith("range"))
"""By default: those that facts to come hardly break. Many have a constant that their position never had before."""

LEAST_SUPPORT = 30
"""By default: what 30 facts keep, hardly more than one in ten others breaks (1 - 0.05^(1/30))."""


@dataclass(frozen=True, eq=False)
class Constrained:
    """Constraints that no training fact breaks, and the candidates that they forbid: as `rank` wants it."""

    knowledge: KnowledgeBase
    constraints: tuple[Constraint, ...]

    @classmethod
    def of(
        cls, knowledge: KnowledgeBase, kinds: Collection[str] = RANKED_KINDS, min_support: int = LEAST_SUPPORT
    ) -> "Constrained":
        """Mine constraints of some kinds; they see what is known, and no query."""
        for kind in kinds:
            if kind not in KINDS:
                known = f"there are: {', '.join(KINDS)}"
                raise ConfigError(f"there is no kind of constraint '{kind}'", hint=nearest(kind, KINDS) or known)
        found = mine_constraints(knowledge, min_support=min_support)
        return cls(knowledge, tuple(constraint for constraint in found if constraint.kind in kinds))

    def __str__(self) -> str:
        """`irreflexive 40, disjoint 3`."""
        counts = Counter(constraint.kind for constraint in self.constraints)
        return ", ".join(f"{kind} {counts[kind]}" for kind in KINDS if counts[kind]) or "none found"

    def __call__(
        self, predicate: int, position: int, given: Int64[np.ndarray, "rows positions"]
    ) -> Bool[np.ndarray, "rows candidates"]:
        """Which candidates of rows cannot be; constraints speak of binary predicates alone."""
        language = self.knowledge.language
        asked = language.predicates[predicate]
        if asked.arity != 2:
            return np.zeros((len(given), len(language.members(asked.domains[position]))), bool)
        return self._forbidden.candidates(asked, position, given[:, 1 - position])

    @cached_property
    def _forbidden(self) -> Forbidden:
        return Forbidden(self.constraints, self.knowledge.base, self.knowledge.evidence)
