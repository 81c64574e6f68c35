"""What is known: a language that grows with the constants of new facts, and the codes of atoms in it.

Only constants that are new to the language join domains: those at whose positions they stand in facts, as far as the
theory neither lists the domain's constants nor makes it a union, and those they are declared to be in. A constant that
was there before stays in the domains it was in.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from r2n.data.features import Features, FeatureTable, read_features
from r2n.data.herbrand import Codes, HerbrandBase
from r2n.data.tables import Facts
from r2n.errors import DataError, nearest
from r2n.logic.language import Domain, Language

Members = dict[str, set[str]]


def members_by_facts(language: Language, facts: Sequence[Facts]) -> Members:
    """For each domain that may grow, the constants outside the language that facts put into it."""
    found: Members = {}
    known = pa.array(language.constants, pa.string())
    arities = {predicate.name: predicate for predicate in language.predicates}
    for group in facts:
        predicate = arities.get(group.predicate)
        if predicate is None or len(group.arguments) != predicate.arity:
            continue  # the error comes with the encoding, which knows where it stands
        for domain, column in zip(predicate.domains, group.arguments, strict=True):
            if may_grow(domain):
                names = pc.unique(column)
                new = names.filter(pc.invert(pc.is_in(names, value_set=known)))
                found.setdefault(domain.name, set()).update(new.to_pylist())
    return found


def members_by_atoms(trained: Language, base: HerbrandBase, atoms: Codes) -> Members:
    """The same of atoms given by their codes in the base of a grown language."""
    found: Members = {}
    is_new = constant_ids(base.language, trained) < 0
    index, arguments = base.decode(atoms)
    for i in np.unique(index):
        predicate = base.language.predicates[i]
        for position, domain in enumerate(predicate.domains):
            if may_grow(domain):
                ids = np.unique(arguments[index == i, position])
                names = {base.language.constants[constant] for constant in ids[is_new[ids]]}
                found.setdefault(domain.name, set()).update(names)
    return found


def members_of(language: Language, constants: np.ndarray) -> Members:
    """For each domain that may grow, which of some constants (by id) are in it."""
    return {
        domain.name: {language.constants[i] for i in np.intersect1d(constants, language.members(domain))}
        for domain in language.domains
        if may_grow(domain)
    }


def may_grow(domain: Domain) -> bool:
    """Whether the data says what is in a domain: the theory neither lists it nor makes it a union."""
    return domain.listed is None and not domain.parts


def check_declared(language: Language, declared: Mapping[str, Iterable[str]]) -> Members:
    """Constants declared to be in domains, by domain; only new ones, and only in domains that may grow."""
    domains = {domain.name: domain for domain in language.domains}
    found: Members = {}
    for name, constants in declared.items():
        if name not in domains:
            hint = nearest(name, domains) or f"the domains are: {', '.join(domains)}"
            raise DataError(f"constants are given for domain '{name}', which does not exist", hint=hint)
        if isinstance(constants, str):
            raise DataError(f"domain '{name}': a list of constants was expected, not one text")
        if not may_grow(domains[name]):
            what = f"constants are given for domain '{name}', but the theory already says what is in it"
            raise DataError(what, hint="declare them in one of its parts" if domains[name].parts else None)
        found[name] = set(constants)
        old = found[name].intersection(language.constants)
        if old:
            raise DataError(f"'{min(old)}' is declared to be in '{name}', but it is no new constant")
    return found


def grown(language: Language, *more: Mapping[str, Iterable[str]]) -> Language:
    """The language with more constants in its domains; itself where there are none."""
    if not any(names for part in more for names in part.values()):
        return language
    members = {
        domain.name: {language.constants[i] for i in language.members(domain)}.union(
            *(part.get(domain.name, ()) for part in more)
        )
        for domain in language.domains
        if may_grow(domain)
    }
    return Language.build(language.domains, language.predicates, members)


def recoded(codes: Codes, old: HerbrandBase, new: HerbrandBase) -> Codes:
    """The codes that atoms of one base have in another with the same predicates, -1 where it does not hold them."""
    if old.language is new.language:
        return np.array(codes, np.int64)
    ids = constant_ids(old.language, new.language)
    index, arguments = old.decode(codes)
    found = np.full(len(codes), -1, np.int64)
    for i in np.unique(index):
        predicate, which = old.language.predicates[i], index == i
        found[which] = new.encode(predicate, ids[arguments[which, : predicate.arity]])
    return found


def constant_ids(old: Language, new: Language) -> np.ndarray:
    """For each constant of a language its id in another, -1 where that lacks it; int64 (constants,)."""
    places = pc.index_in(pa.array(old.constants, pa.string()), value_set=pa.array(new.constants, pa.string()))
    return pc.fill_null(places, -1).to_numpy(zero_copy_only=False).astype(np.int64)


GivenFeatures = Mapping[str, Mapping[str, object]]
"""For domains, the features of new constants: a text or an array each."""


def grown_features(
    features: Mapping[str, Features], old: Language, new: Language, given: GivenFeatures
) -> dict[str, Features]:
    """The features of a language in one that has grown, with those given for its new constants.

    Where the names of constants are their texts, new constants have theirs too.
    """
    result: dict[str, Features] = {}
    for name in given:
        if name not in features:
            hint = nearest(name, features) or f"domains with features: {', '.join(features) or 'none'}"
            raise DataError(f"features are given for '{name}', but the network reads none of that domain", hint=hint)
    for name, part in features.items():
        more = dict(given.get(name, {}))
        if part.texts == tuple(old.constants[i] for i in part.constants):
            own = {new.constants[i] for i in new.members(part.domain)}.difference(old.constants)
            more = {constant: constant for constant in own} | more
        result[name] = _with_rows(part.in_language(old, new), old, new, more)
    return result


def _with_rows(part: Features, old: Language, new: Language, more: Mapping[str, object]) -> Features:
    """Features with those of more constants, which are new."""
    name = part.domain.name
    inside = {new.constants[i] for i in new.members(part.domain)}
    for constant in more:
        if constant in old.constants or constant not in inside:
            why = "it is no new constant" if constant in old.constants else f"no fact puts it into domain '{name}'"
            hint = None if constant in old.constants else f'declare it: domains={{"{name}": ["{constant}"]}}'
            raise DataError(f"features are given for '{constant}', but {why}", hint=hint)
    if not more:
        return part
    added = read_features(new, {name: FeatureTable(dict(more), missing="learn")})[0][name]
    for kind in ("texts", "vectors"):
        old_part, new_part = getattr(part, kind), getattr(added, kind)
        if (old_part is None) != (new_part is None) or np.shape(old_part)[1:] != np.shape(new_part)[1:]:
            raise DataError(f"the features of '{min(more)}' are not of the kind that domain '{name}' had in training")
    constants = np.concatenate([part.constants, added.constants])
    order = np.argsort(constants)
    texts = None if part.texts is None or added.texts is None else (*part.texts, *added.texts)
    vectors = None if part.vectors is None or added.vectors is None else np.concatenate([part.vectors, added.vectors])
    return replace(
        part,
        constants=constants[order],
        texts=None if texts is None else tuple(texts[i] for i in order),
        vectors=None if vectors is None else vectors[order],
    )
