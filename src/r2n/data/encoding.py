"""What is known: facts as text -> the language they need, and codes in its Herbrand base."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from r2n.data.herbrand import HerbrandBase
from r2n.data.tables import Facts
from r2n.errors import DataError, Location, TheoryError, nearest
from r2n.logic.formula import Constant
from r2n.logic.language import Domain, Language, Predicate
from r2n.logic.theory import ANY_PREDICATE, Theory

MOST_COMPARED = 20  # wrong constants that are compared with all right ones, for a hint
DEFAULT_DOMAIN = Domain("constant")


def complete(
    theory: Theory, facts: Sequence[Facts], domains: Mapping[str, Iterable[str]], *, are_all_here: bool = True
) -> tuple[Theory, Language]:
    """The theory with the predicates that the facts bring, and the language with the constants they bring.

    `domains` lists the constants of domains that the theory leaves open; what is listed nowhere is
    gathered from the facts: a domain holds what stands in its positions. Where not all constants are here, those that
    rules name are not checked.
    """
    if not theory.predicates:
        theory = _with_predicates_of(theory, facts)
    theory = theory.completed(theory.domains, theory.predicates)
    given = {name: _distinct(name, constants) for name, constants in domains.items()}
    _check_given(theory, given)
    members: dict[str, set[str]] = {name: set(constants) for name, constants in given.items()}
    predicates = {predicate.name: predicate for predicate in theory.predicates}
    for group in facts:
        predicate = predicates.get(group.predicate)
        if predicate is not None and len(group.arguments) == predicate.arity:
            for domain, column in zip(predicate.domains, group.arguments, strict=True):
                if domain.name not in given and domain.listed is None and not domain.parts:
                    members.setdefault(domain.name, set()).update(pc.unique(column).to_pylist())
    _gather_rule_constants(theory, given, members)
    language = Language.build(theory.domains, theory.predicates, members)
    if are_all_here:
        _check_rule_constants(theory, language)
    return theory, language


def _with_predicates_of(theory: Theory, facts: Sequence[Facts]) -> Theory:
    """Declare what the theory leaves to the data: every predicate that facts or rules name, over one domain."""
    domains = theory.domains or (DEFAULT_DOMAIN,)
    if len(domains) > 1:
        raise TheoryError(
            "the theory declares several domains but no predicate, so the predicates' positions have no domain",
            where=Location(theory.source) if theory.source else None,
            hint="declare the predicates: predicate NAME(DOMAIN, ...)",
        )
    arities = {group.predicate: len(group.arguments) for group in reversed(facts)}
    for rule in theory.rules:
        for atom in rule.atoms:
            if atom.predicate != ANY_PREDICATE:
                arities.setdefault(atom.predicate, len(atom.terms))
    predicates = tuple(Predicate(name, domains * arity) for name, arity in sorted(arities.items()))
    return theory.completed(domains, predicates)


def _distinct(name: str, constants: Iterable[str]) -> tuple[str, ...]:
    if isinstance(constants, str):
        raise DataError(f"domain '{name}': a list of constants was expected, not one text")
    return tuple(dict.fromkeys(constants))


def _check_given(theory: Theory, given: Mapping[str, tuple[str, ...]]) -> None:
    declared = {domain.name: domain for domain in theory.domains}
    for name in given:
        if name not in declared:
            raise DataError(
                f"constants are given for domain '{name}', which the theory does not declare",
                hint=nearest(name, declared) or f"declare it: domain {name}",
            )
        if declared[name].parts or declared[name].listed is not None:
            raise DataError(f"constants are given for domain '{name}', but the theory already says what is in it")


def rule_constants(theory: Theory) -> list[tuple[str, Domain, Location | None]]:
    """The constants that rules name, each with the domain of its position, and where."""
    predicates = {predicate.name: predicate for predicate in theory.predicates}
    return [
        (term.name, domain, atom.where)
        for rule in theory.rules
        for atom in rule.atoms
        for term, domain in zip(atom.terms, predicates[atom.predicate].domains, strict=True)
        if isinstance(term, Constant)
    ]


def _gather_rule_constants(theory: Theory, given: Mapping[str, object], members: dict[str, set[str]]) -> None:
    for name, domain, _ in rule_constants(theory):
        if domain.name not in given and domain.listed is None and not domain.parts:
            members.setdefault(domain.name, set()).add(name)


def _check_rule_constants(theory: Theory, language: Language) -> None:
    names_of: dict[str, set[str]] = {}  # rules and constants may be many
    for name, domain, where in rule_constants(theory):
        if domain.name not in names_of:
            names_of[domain.name] = {language.constants[i] for i in language.members(domain)}
        names = names_of[domain.name]
        if name not in names:
            raise outside_domain(name, domain, where, nearest(name, names))


def outside_domain(name: str, domain: Domain, where: Location | None, near: str = "") -> TheoryError:
    """The error for a constant of a rule that its position's domain does not hold."""
    what = f"constant '{name}' is outside domain '{domain.name}'"
    return TheoryError(what, where=where, hint=near or f"add it to domain '{domain.name}'")


@dataclass(frozen=True, eq=False)
class EncodedFacts:
    """Facts as codes, in the order they were read, with the way back to their lines.

    `codes` int64 (facts,), `truth` bool (facts,), `group` and `row` int64 (facts,) point into `groups`.
    """

    codes: np.ndarray
    truth: np.ndarray
    group: np.ndarray
    row: np.ndarray
    groups: tuple[Facts, ...]

    def location(self, i: int) -> Location:
        """Where the i-th fact was read."""
        return self.groups[self.group[i]].location(int(self.row[i]))


def encode_facts(
    base: HerbrandBase, facts: Sequence[Facts], *, skip: bool = False
) -> tuple[EncodedFacts, tuple[DataError, ...]]:
    """Codes of the facts; a wrong one raises, or (`skip`) is left out and told in the second part."""
    parts: list[tuple[np.ndarray, ...]] = []
    rejected: list[DataError] = []
    for number, (group, ids) in enumerate(zip(facts, _ids(base.language, facts), strict=True)):
        try:
            codes = _encode_group(base, group, ids)
        except DataError as error:
            if not skip:
                raise
            rejected.append(error)
            continue
        bad = np.flatnonzero(codes < 0)
        if len(bad) and not skip:
            raise _outside(base.language, group, int(bad[0]))
        rejected += _all_outside(base.language, group, bad, MOST_COMPARED - len(rejected))
        good = np.flatnonzero(codes >= 0)
        parts.append((codes[good], group.truth[good], np.full(len(good), number), good))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)] if parts else [np.zeros(0, int)] * 4
    codes, truth, group, row = columns
    return EncodedFacts(codes.astype(np.int64), truth.astype(bool), group, row, tuple(facts)), tuple(rejected)


def _ids(language: Language, facts: Sequence[Facts]) -> list[list[np.ndarray]]:
    """For each group and position the constants' ids, -1 where there is none; all constants are looked up in one go."""
    columns = [column for group in facts for column in group.arguments]
    vocabulary = pa.array(language.constants, pa.string())
    found = pc.fill_null(pc.index_in(pa.chunked_array(columns, pa.string()), value_set=vocabulary), -1)
    ids = found.to_numpy().astype(np.int64)
    parts = iter(np.split(ids, np.cumsum([len(column) for column in columns[:-1]], dtype=np.int64)))
    return [[next(parts) for _ in group.arguments] for group in facts]


def _encode_group(base: HerbrandBase, group: Facts, ids: list[np.ndarray]) -> np.ndarray:
    language = base.language
    try:
        predicate = language.predicate(group.predicate)
    except DataError as error:
        raise DataError(error.what, where=group.location(0), hint=error.hint) from None
    if len(group.arguments) != predicate.arity:
        raise wrong_arity(group, predicate.arity, declaration(predicate))
    return base.encode_columns(predicate, ids)


def wrong_arity(facts: Facts, arity: int, hint: str) -> DataError:
    """The error for facts with more or fewer constants than their predicate takes."""
    what = f"{facts.predicate} takes {arity} constants, but here it has {len(facts.arguments)}"
    where = facts.location(0) if len(facts.rows) else Location(facts.table.name)  # of a definition that gives no row
    return DataError(what, where=where, hint=hint)


def declaration(predicate: Predicate) -> str:
    """How a predicate is declared, for a hint."""
    return f"it is declared as {predicate.name}({', '.join(domain.name for domain in predicate.domains)})"


def _outside(language: Language, group: Facts, i: int) -> DataError:
    return _all_outside(language, group, np.array([i]), 1)[0]


def _all_outside(language: Language, group: Facts, bad: np.ndarray, compared: int) -> list[DataError]:
    """An error for each of the facts that are outside; the first so many are compared with the constants there are."""
    if not len(bad):
        return []
    predicate = language.predicate(group.predicate)
    names = [{language.constants[c]: None for c in language.members(domain)} for domain in predicate.domains]
    found = []
    for i in bad.tolist():
        constants = [column[i].as_py() for column in group.arguments]
        position = next(p for p, name in enumerate(constants) if name not in names[p])
        name, domain, where = constants[position], predicate.domains[position], group.location(i)
        column = where.excerpt.find(name) + 1 if where.excerpt else 0
        near = nearest(name, names[position]) if len(found) < compared else ""
        found.append(
            DataError(
                f"constant '{name}' is outside domain '{domain.name}' (position {position + 1} of {predicate.name})",
                where=Location(where.source, where.line, column or None, where.excerpt),
                hint=near or f"{_where_to_add(domain)}, or correct the line",
            )
        )
    return found


def _where_to_add(domain: Domain) -> str:
    """What a user can do to put a constant in a domain; a fact cannot tell which part of a union it is in."""
    if not domain.parts:
        return f"add it to domain '{domain.name}'"
    parts = ", ".join(f"'{part.name}'" for part in domain.parts)
    return f"list it under one of the parts of '{domain.name}' ({parts}), in [domains] of the problem file"
