"""What is known: evidence E with its truths y_E, and the knowledge base that joins it with language and theory."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int64

from r2n.errors import DataError, counted
from r2n.knowledge.closed_world import closed_atoms
from r2n.knowledge.encoding import EncodedFacts, complete, encode_facts
from r2n.knowledge.features import Features, FeatureTable, read_features
from r2n.knowledge.herbrand import Codes, HerbrandBase
from r2n.knowledge.reading.tables import Facts
from r2n.logic.language import Language, Predicate
from r2n.logic.theory import Theory


@dataclass(frozen=True, eq=False)
class Evidence:
    """Ground atoms whose truth is known: codes, sorted and distinct, with a truth each."""

    atoms: Int64[np.ndarray, " atoms"]
    truth: Bool[np.ndarray, " atoms"]

    def __post_init__(self) -> None:
        """Check the order once, and make the arrays read-only."""
        if self.atoms.shape != self.truth.shape or (np.diff(self.atoms) <= 0).any():
            raise DataError("evidence needs distinct codes in ascending order with one truth each")
        self.atoms.setflags(write=False)
        self.truth.setflags(write=False)

    @classmethod
    def empty(cls) -> "Evidence":
        """Nothing is known."""
        return cls(np.zeros(0, np.int64), np.zeros(0, bool))

    @classmethod
    def from_encoded(cls, encoded: EncodedFacts, base: HerbrandBase) -> "Evidence":
        """Facts as evidence: duplicates fall together, a fact both true and false is an error that names both lines."""
        order = np.argsort(encoded.codes, kind="stable")
        codes, truth = encoded.codes[order], encoded.truth[order]
        same = codes[1:] == codes[:-1]
        clash = np.flatnonzero(same & (truth[1:] != truth[:-1]))
        if len(clash):
            first, second = sorted((int(order[clash[0]]), int(order[clash[0] + 1])))
            raise DataError(
                f"{base.names(codes[clash[:1]])[0]} is stated both true and false",
                where=encoded.location(second),
                hint=f"it is stated the other way at {encoded.location(first)}; keep one of the two",
            )
        kept = np.concatenate([np.ones(len(codes[:1]), bool), ~same])
        return cls(codes[kept], truth[kept])

    def __len__(self) -> int:
        """The number of atoms."""
        return len(self.atoms)

    def __repr__(self) -> str:
        """How many atoms there are of each truth."""
        true = int(self.truth.sum())
        return f"Evidence({counted(len(self), 'atom')}: {true:,} true, {len(self) - true:,} false)"


@dataclass(frozen=True, eq=False)
class KnowledgeBase:
    """What a grounder works on: theory, language and evidence; and the features of constants, by domain.

    `candidates` holds, for predicates that not every ground rule may speak of, the codes (ascending) of the atoms that
    ground rules may hold.
    """

    theory: Theory
    language: Language
    evidence: Evidence
    features: Mapping[str, Features] = field(default_factory=dict)
    candidates: Mapping[str, Codes] = field(default_factory=dict)

    @classmethod
    def build(
        cls,
        theory: Theory,
        facts: Sequence[Facts] = (),
        *,
        domains: Mapping[str, Iterable[str]] | None = None,
        features: Mapping[str, FeatureTable | Mapping[str, object]] | None = None,
    ) -> "KnowledgeBase":
        """Complete the theory and the language from the facts, and take the facts as evidence."""
        theory, language = complete(theory, facts, domains or {})
        base = HerbrandBase(language)
        encoded, _ = encode_facts(base, facts)
        return cls(theory, language, Evidence.from_encoded(encoded, base), read_features(language, features or {})[0])

    def __repr__(self) -> str:
        """How large it is."""
        return f"KnowledgeBase({self.size})"

    @property
    def size(self) -> str:
        """`271 constants, 2 predicates, 3 rules, 1,110 known atoms`."""
        parts = {"constant": self.language.constants, "predicate": self.language.predicates, "rule": self.theory.rules}
        counts = [counted(len(part), name) for name, part in (*parts.items(), ("known atom", self.evidence))]
        return ", ".join(counts)

    @cached_property
    def base(self) -> HerbrandBase:
        """The Herbrand base of the language."""
        return HerbrandBase(self.language)

    @cached_property
    def training_constants(self) -> Int64[np.ndarray, " constants"]:
        """Ids of the constants that labels tell something of: those in the evidence that is not of a closed world."""
        labelled = self.evidence.atoms[~closed_atoms(self.base, self.evidence.atoms)]
        arguments = self.base.decode(labelled)[1]
        return np.unique(arguments[arguments >= 0])

    def facts(self, predicate: Predicate) -> Int64[np.ndarray, "atoms positions"]:
        """Arguments (constant ids) of the predicate's atoms known to be true, in the order of their codes."""
        return self._known(predicate, True)

    def false_facts(self, predicate: Predicate) -> Int64[np.ndarray, "atoms positions"]:
        """Arguments (constant ids) of the predicate's atoms known to be false, in the order of their codes."""
        return self._known(predicate, False)

    def _known(self, predicate: Predicate, truth: bool) -> np.ndarray:
        return self.base.decode(self.known_codes(predicate, truth))[1][:, : predicate.arity]

    def known_codes(self, predicate: Predicate, truth: bool) -> Codes:
        """Codes of the predicate's atoms known to be true, or false, ascending."""
        index = self.language.predicate_index(predicate.name)
        start, end = np.searchsorted(self.evidence.atoms, self.base.offsets[index : index + 2])
        return self.evidence.atoms[start:end][self.evidence.truth[start:end] == truth]
