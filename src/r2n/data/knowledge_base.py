"""What is known: theory, language, evidence and features; reciprocal predicates."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int64

from r2n.data.encoding import EncodedFacts, complete, encode_facts
from r2n.data.features import Features, FeatureTable, read_features
from r2n.data.herbrand import Codes, HerbrandBase, closed_atoms
from r2n.data.tables import Facts
from r2n.errors import DataError, counted
from r2n.logic.formula import Atom
from r2n.logic.language import Language, Predicate
from r2n.logic.theory import Rule, Theory
from r2n.options import GroundingOptions


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


def as_trained(knowledge: KnowledgeBase, options: GroundingOptions) -> KnowledgeBase:
    """What is known, in the language that the network is trained in."""
    return with_reciprocals(knowledge) if options.reciprocal else knowledge


def with_reciprocals(knowledge: KnowledgeBase) -> KnowledgeBase:
    """The knowledge base with a reciprocal predicate, and its facts, for each binary one.

    The codes of atoms stay what they are. Implicit rules relate the reciprocals too: of P(x, y) they take in P^-1(x, y)
    where both positions have one domain, else P^-1(y, x). Explicit rules stay as they are.
    """
    theory, language = knowledge.theory, knowledge.language
    added, taken = dict[str, Predicate](), {predicate.name for predicate in language.predicates}
    for predicate in language.predicates:
        if predicate.arity == 2:
            added[predicate.name] = _reciprocal(predicate, taken)
            taken.add(added[predicate.name].name)
    predicates = (*language.predicates, *added.values())
    theory = replace(theory, predicates=predicates, rules=tuple(_extended(rule, added) for rule in theory.rules))
    language = replace(language, predicates=predicates)
    evidence, base = knowledge.evidence, HerbrandBase(language)
    mirrored = reciprocal_codes(base, evidence.atoms)
    has_one = mirrored >= 0
    atoms = np.concatenate([evidence.atoms, mirrored[has_one]])
    order = np.argsort(atoms)
    truth = np.concatenate([evidence.truth, evidence.truth[has_one]])
    candidates = dict(knowledge.candidates)
    for name in candidates.keys() & added.keys():
        candidates[added[name].name] = np.sort(reciprocal_codes(base, candidates[name]))
    return replace(
        knowledge,
        theory=theory,
        language=language,
        evidence=Evidence(atoms[order], truth[order]),
        candidates=candidates,
    )


def _reciprocal(predicate: Predicate, taken: Collection[str]) -> Predicate:
    """Named P^-1; where the data has a predicate of this name, it is said which of them is the reciprocal."""
    name = f"{predicate.name}^-1"
    while name in taken:
        name += " (reciprocal)"
    return Predicate(
        name,
        predicate.domains[::-1],
        predicate.closed,
        tuple(part[::-1] for part in predicate.closed_parts),
        reciprocal_of=predicate.name,
    )


def _extended(rule: Rule, added: dict[str, Predicate]) -> Rule:
    if not rule.is_implicit:
        return rule
    more = []
    for atom in rule.atoms:
        if atom.predicate in added:
            predicate = added[atom.predicate]
            terms = atom.terms if predicate.domains[0] == predicate.domains[1] else atom.terms[::-1]
            more.append(Atom(predicate.name, terms, atom.where))
    return replace(rule, atoms=(*rule.atoms, *more))


def reciprocal_codes(base: HerbrandBase, codes: Codes) -> Codes:
    """The code of each atom's reciprocal in a base that has them, -1 where it has none."""
    index, arguments = base.decode(codes)
    result = np.full(len(codes), -1, np.int64)
    for predicate in base.language.predicates:
        if predicate.reciprocal_of is not None:
            which = index == base.language.predicate_index(predicate.reciprocal_of)
            result[which] = base.encode_columns(predicate, [arguments[which, 1], arguments[which, 0]])
    return result


def counterparts(base: HerbrandBase, codes: Codes) -> Codes:
    """The code of what says the same of each atom in the other direction, of P or of P^-1; -1 where nothing does."""
    index, arguments = base.decode(codes)
    result = reciprocal_codes(base, codes)
    for predicate in base.language.predicates:
        if predicate.reciprocal_of is not None:
            which = index == base.language.predicate_index(predicate.name)
            plain = base.language.predicate(predicate.reciprocal_of)
            result[which] = base.encode_columns(plain, [arguments[which, 1], arguments[which, 0]])
    return result
