"""A trained network, explained: what is explained: networks, what is known to them, and what is said of atoms."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float64

from r2n.explanation.records import Belief
from r2n.knowledge.herbrand import Codes, HerbrandBase
from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.knowledge.reciprocal import counterparts
from r2n.model.atom_logits import AtomLogits

_NOTHING: Codes = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Otherwise:
    """What might be otherwise: facts (codes) that are not known, those of them that are known to be false, a rule."""

    unknown: Codes = field(default_factory=lambda: _NOTHING)
    false: Codes = field(default_factory=lambda: _NOTHING)
    without_rule: str | None = None


@dataclass(frozen=True, eq=False)
class Subject:
    """The networks of an answer (`members`), and how others are made of them.

    `knowledge` is what they know, in the language of the training. `beliefs` tells what is said of atoms, `probability`
    what logits mean, and `half` is the logit that means one half. `otherwise` gives the networks as they would answer
    if something were otherwise: they are grounded again, so it costs what a new question costs, or more.
    """

    members: tuple[AtomLogits, ...]
    knowledge: KnowledgeBase
    beliefs: Callable[[Codes], Sequence[Belief]]
    probability: Callable[[np.ndarray], np.ndarray]
    otherwise: Callable[[Otherwise], tuple[AtomLogits, ...]]
    half: float = 0.0

    @property
    def base(self) -> HerbrandBase:
        """The Herbrand base of the networks."""
        return self.members[0].model.base

    def plain(self, codes: Codes) -> Codes:
        """The atoms as they are asked for: P(x, y) in the place of its reciprocal."""
        if all(predicate.reciprocal_of is None for predicate in self.base.language.predicates):
            return codes
        is_reciprocal = np.array([p.reciprocal_of is not None for p in self.base.language.predicates])
        return np.where(is_reciprocal[self.base.decode(codes)[0]], counterparts(self.base, codes), codes)

    def names(self, codes: Codes) -> list[str]:
        """The atoms as text, none as a reciprocal."""
        return self.base.names(self.plain(codes))

    def logits(self, codes: Codes) -> Float64[np.ndarray, " atoms"]:
        """The mean of the networks' logits."""
        return mean_logits(self.members, codes)


def mean_logits(members: Sequence[AtomLogits], codes: Codes) -> Float64[np.ndarray, " atoms"]:
    """The mean over networks of the logits of atoms."""
    return np.mean([member(codes) for member in members], axis=0)
