"""Predictions -> numbers: what rules say without a network, to be held beside it: proofs counted, by confidence.

    mass(a) = sum over rules j that conclude a of confidence_j n_j(a)^0.3

n_j(a) is the number of ground rules of j with a known body that conclude a, and the confidence that of the rule in the
training facts. Nothing is trained. As if each unit of mass were a chance of its own, a is true with the probability
1 - exp(-mass(a)); an atom that no rule concludes is taken for false.
"""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float64, Int64

from r2n.errors import GroundingError
from r2n.grounding.counting import RuleCounts, split_rules
from r2n.grounding.known_body import known_body_query
from r2n.grounding.store import Store
from r2n.knowledge.herbrand import Codes, HerbrandBase
from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.knowledge.sides import RowIndex, Side

POWER = 0.3  # of a count: the tenth proof by one rule says less than the first; counted rules begin there too
UNREACHED = -30.0  # the logit of an atom that no rule concludes: below all others
MOST_RULES = 20_000
MOST_GROUND_RULES = 5_000_000  # by the estimate, of all rules together: above, counting would take long

_BySide = tuple[RowIndex, Int64[np.ndarray, " atoms"], Float64[np.ndarray, " atoms"]]


@dataclass(frozen=True, eq=False)
class RulesAlone:
    """The atoms (ascending) that some rule concludes, and their logits."""

    base: HerbrandBase
    atoms: Codes
    logits: Float64[np.ndarray, " atoms"]
    _sides: dict[tuple[int, int], _BySide] = field(default_factory=dict)

    @classmethod
    def of(cls, knowledge: KnowledgeBase) -> "RulesAlone | None":
        """None where no rule can be counted, or not at once."""
        rules, store = split_rules(knowledge)[1], Store(knowledge)
        if not rules or len(rules) > MOST_RULES:
            return None
        if sum(known_body_query(store, rule).estimate() for rule in rules) > MOST_GROUND_RULES:
            return None
        try:
            return cls.by(RuleCounts.of(store, rules))
        except GroundingError:  # the estimate was wrong
            return None

    @classmethod
    def by(cls, counts: RuleCounts) -> "RulesAlone":
        """What rules say by their counts."""
        atoms, number = np.unique(counts.codes, return_inverse=True)
        masses = np.bincount(number, counts.confidences[counts.rule] * counts.counts**POWER, minlength=len(atoms))
        return cls(counts.base, atoms, np.log(np.expm1(masses)))

    def __call__(self, codes: Codes) -> Float64[np.ndarray, " atoms"]:
        """The logits of atoms."""
        found = np.full(len(codes), UNREACHED)
        place = np.searchsorted(self.atoms, codes)
        inside = np.flatnonzero(place < len(self.atoms))
        reached = inside[self.atoms[place[inside]] == codes[inside]]
        found[reached] = self.logits[place[reached]]
        return found

    def rows(
        self, predicate: int, position: int, given: Int64[np.ndarray, "rows positions"]
    ) -> Float64[np.ndarray, "rows candidates"]:
        """The logits of a predicate's atoms with each constant of the open position's domain, in its order."""
        side = Side.of(self.base, predicate, position)
        if (predicate, position) not in self._sides:
            self._sides[predicate, position] = self._made(side)
        index, places, logits = self._sides[predicate, position]
        row, entry = index.entries(side.rows(given))
        found = np.full((len(given), side.candidates), UNREACHED)
        found[row, places[entry]] = logits[entry]
        return found

    def _made(self, side: Side) -> _BySide:
        part = slice(*np.searchsorted(self.atoms, side.bounds))
        rows, places = side.located(self.atoms[part])
        order = np.argsort(rows, kind="stable")
        return RowIndex.of(rows[order]), places[order], self.logits[part][order]
