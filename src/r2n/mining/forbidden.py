"""Constraints -> atoms that they rule out: for a query with a free position, which candidates known facts forbid."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Int64
from scipy.sparse import csr_array

from r2n.data.herbrand import HerbrandBase
from r2n.data.knowledge_base import Evidence
from r2n.logic.language import Predicate
from r2n.mining.constraints import Constraint


def forbidden(
    constraints: Sequence[Constraint],
    base: HerbrandBase,
    evidence: Evidence,
    predicate: Predicate,
    position: int,
    given_constants: Int64[np.ndarray, " rows"],
) -> Bool[np.ndarray, "rows candidates"]:
    """As `Forbidden.candidates`, for one call."""
    return Forbidden(constraints, base, evidence).candidates(predicate, position, given_constants)


@dataclass(frozen=True, eq=False)
class Forbidden:
    """Which atoms would break a constraint, were they true beside the known facts other than themselves."""

    constraints: Sequence[Constraint]
    base: HerbrandBase
    evidence: Evidence
    _facts: dict[str, csr_array] = field(default_factory=dict)

    def candidates(
        self, predicate: Predicate, position: int, given_constants: Int64[np.ndarray, " rows"]
    ) -> Bool[np.ndarray, "rows candidates"]:
        """For each constant given at the other position, which candidates at this position of a binary predicate.

        The candidates are the constants of the position's domain, in the order of `language.members`.
        """
        asked = self.base.language.members(predicate.domains[position])
        ids = (asked, given_constants) if position == 0 else (given_constants, asked)
        found = np.zeros((len(given_constants), len(asked)), bool)
        for constraint in self.constraints:
            if predicate.name in constraint.predicates:
                atoms = self._broken(constraint, predicate.name, *ids)
                found |= atoms.T if position == 0 else atoms
        return found

    def _broken(self, constraint: Constraint, name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Whether p(x, y) breaks the constraint, for all x (rows) and y (columns); what broadcasts is left to."""
        breaks = {
            "irreflexive": self._loops,
            "asymmetric": self._mirrored,
            "functional": self._other_second,
            "inverse-functional": self._other_first,
            "range-first": self._outside_first,
            "range-second": self._outside_second,
            "disjoint": self._excluded,
        }
        other = constraint.predicates[constraint.predicates[0] == name] if len(constraint.predicates) > 1 else name
        return np.broadcast_to(breaks[constraint.kind](other, x, y), (len(x), len(y)))

    def _loops(self, _: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return x[:, None] == y[None, :]

    def _mirrored(self, name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return (self._known(name, y, x).T > 0) & (x[:, None] != y[None, :])

    def _other_second(self, name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self._number(name, 1)[x][:, None] > self._known(name, x, y)

    def _other_first(self, name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self._number(name, 0)[y][None, :] > self._known(name, x, y)

    def _outside_first(self, name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self._number(name, 1)[x][:, None] == 0

    def _outside_second(self, name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self._number(name, 0)[y][None, :] == 0

    def _excluded(self, other: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self._known(other, x, y) > 0

    def _known(self, name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """1 where name(x, y) is a known true fact: (x, y)."""
        return self._matrix(name)[x][:, y].toarray()

    def _number(self, name: str, axis: int) -> np.ndarray:
        """Known true facts with each constant at one position, summed over the other, which is `axis`."""
        return np.asarray(self._matrix(name).sum(axis=axis))

    def _matrix(self, name: str) -> csr_array:
        """The known true facts of a predicate: (constants, constants)."""
        if name not in self._facts:
            index, size = self.base.language.predicate_index(name), len(self.base.language.constants)
            start, end = np.searchsorted(self.evidence.atoms, self.base.offsets[index : index + 2])
            codes = self.evidence.atoms[start:end][self.evidence.truth[start:end]]
            rows = self.base.decode(codes)[1]
            self._facts[name] = csr_array((np.ones(len(rows), np.int64), (rows[:, 0], rows[:, 1])), shape=(size, size))
        return self._facts[name]
