"""What is known: a knowledge base with the reciprocal of each binary predicate.

P^-1(y, x) is true where P(x, y) is. A network on it has parameters of its own for "what does x point to" and for "what
points to y": the constant at position 0 of P is asked for as the last one of P^-1.
"""

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from r2n.knowledge.herbrand import Codes, HerbrandBase
from r2n.knowledge.knowledge_base import Evidence, KnowledgeBase
from r2n.knowledge.options import GroundingOptions
from r2n.logic.formula import Atom
from r2n.logic.language import Predicate
from r2n.logic.theory import Rule


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
