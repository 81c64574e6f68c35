"""The language that facts need, and their codes in its Herbrand base."""

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

    `domains` lists the constants of domains that the theory leaves open; what is listed nowhere is gathered from the
    facts: a domain holds what stands in its positions. Unless all constants are here, those of rules are not checked.
    """
    if not theory.predicates:
        theory = _with_predicates_of(theory, facts)
    theory = theory.completed(theory.domains, theory.predicates)
    members = given_members(theory.domains, domains)
    gathered = {d.name: set[str]() for d in theory.domains if d.is_open and d.name not in members}
    positions = {predicate.name: predicate.domains for predicate in theory.predicates}
    for group in facts:
        if len(group.arguments) == len(positions.get(group.predicate, ())):
            for domain, column in zip(positions[group.predicate], group.arguments, strict=True):
                if domain.name in gathered:
                    gathered[domain.name].update(pc.unique(column).to_pylist())
    in_rules = rule_constants(theory)
    for name, domain, _ in in_rules:
        gathered.get(domain.name, set()).add(name)
    language = Language.build(theory.domains, theory.predicates, members | gathered)
    names_of: dict[str, set[str]] = {}  # rules and constants may be many
    for name, domain, where in in_rules if are_all_here else ():
        if domain.name not in names_of:
            names_of[domain.name] = {language.constants[i] for i in language.members(domain)}
        if name not in names_of[domain.name]:
            raise outside_domain(name, domain, where, nearest(name, names_of[domain.name]))
    return theory, language


def _with_predicates_of(theory: Theory, facts: Sequence[Facts]) -> Theory:
    """Declare what the theory leaves to the data: every predicate that facts or rules name, over one domain."""
    domains = theory.domains or (DEFAULT_DOMAIN,)
    if len(domains) > 1:
        what = "the theory declares several domains but no predicate, so the predicates' positions have no domain"
        hint = "declare the predicates: predicate NAME(DOMAIN, ...)"
        raise TheoryError(what, where=Location(theory.source) if theory.source else None, hint=hint)
    arities = {group.predicate: len(group.arguments) for group in reversed(facts)}
    for rule in theory.rules:
        for atom in rule.atoms:
            if atom.predicate != ANY_PREDICATE:
                arities.setdefault(atom.predicate, len(atom.terms))
    predicates = tuple(Predicate(name, domains * arity) for name, arity in sorted(arities.items()))
    return theory.completed(domains, predicates)


def given_members(
    domains: Sequence[Domain], given: Mapping[str, Iterable[str]], hint: str | None = None
) -> dict[str, set[str]]:
    """The constants given for domains, of which the data says what is in them."""
    known = {domain.name: domain for domain in domains}
    for name, constants in given.items():
        if isinstance(constants, str):
            raise DataError(f"domain '{name}': a list of constants was expected, not one text")
        what = f"constants are given for domain '{name}', "
        if name not in known:
            raise DataError(
                what + "which does not exist", hint=nearest(name, known) or hint or f"declare: domain {name}"
            )
        if not known[name].is_open:
            hint = "declare them in one of its parts" if known[name].parts else None
            raise DataError(what + "but the theory already says what is in it", hint=hint)
    return {name: set(constants) for name, constants in given.items()}


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


def outside_domain(name: str, domain: Domain, where: Location | None, near: str = "") -> TheoryError:
    """The error for a constant of a rule that its position's domain does not hold."""
    what = f"constant '{name}' is outside domain '{domain.name}'"
    return TheoryError(what, where=where, hint=near or f"add it to domain '{domain.name}'")


@dataclass(frozen=True, eq=False)
class EncodedFacts:
    """Facts as codes (facts,), in the order they were read; `group` and `row` (facts,) point into `groups`."""

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
    """Codes of the facts; a wrong one raises, or (`skip`) is left out, and its error is in the second part."""
    parts: list[tuple[np.ndarray, ...]] = []
    rejected: list[DataError] = []
    columns = [column for group in facts for column in group.arguments]  # all constants are looked up at once
    vocabulary = pa.array(base.language.constants, pa.string())
    found = pc.fill_null(pc.index_in(pa.chunked_array(columns, pa.string()), value_set=vocabulary), -1)
    sizes = np.cumsum([len(column) for column in columns[:-1]], dtype=np.int64)
    ids = iter(np.split(found.to_numpy().astype(np.int64), sizes))
    for number, group in enumerate(facts):
        arguments = [next(ids) for _ in group.arguments]
        try:
            predicate = base.language.predicate(group.predicate)
            if len(group.arguments) != predicate.arity:
                raise wrong_arity(group, predicate.arity, declaration(predicate))
        except DataError as error:
            wrong = DataError(error.what, where=error.where or group.location(0), hint=error.hint)
            if not skip:
                raise wrong from None
            rejected.append(wrong)
            continue
        codes = base.encode_columns(predicate, arguments)
        bad = np.flatnonzero(codes < 0)
        outside = _outside(base.language, group, bad if skip else bad[:1], MOST_COMPARED - len(rejected))
        if outside and not skip:
            raise outside[0]
        rejected += outside
        good = np.flatnonzero(codes >= 0)
        parts.append((codes[good], group.truth[good], np.full(len(good), number), good))
    codes, truth, groups, rows = map(np.concatenate, zip(*parts, strict=True)) if parts else [np.zeros(0, int)] * 4
    return EncodedFacts(codes.astype(np.int64), truth.astype(bool), groups, rows, tuple(facts)), tuple(rejected)


def wrong_arity(facts: Facts, arity: int, hint: str) -> DataError:
    """The error for facts with more or fewer constants than their predicate takes."""
    what = f"{facts.predicate} takes {arity} constants, but here it has {len(facts.arguments)}"
    where = facts.location(0) if len(facts.rows) else Location(facts.table.name)  # of a definition that gives no row
    return DataError(what, where=where, hint=hint)


def declaration(predicate: Predicate) -> str:
    """How a predicate is declared, for a hint."""
    return f"it is declared as {predicate.name}({', '.join(domain.name for domain in predicate.domains)})"


def _outside(language: Language, group: Facts, bad: np.ndarray, compared: int) -> list[DataError]:
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
        hint = nearest(name, names[position]) if len(found) < compared else ""
        if not hint:
            hint = f"add it to domain '{domain.name}'"
            if domain.parts:  # a fact cannot tell which part it is in
                parts = ", ".join(f"'{part.name}'" for part in domain.parts)
                hint = f"list it under one of the parts of '{domain.name}' ({parts}), in [domains] of the problem file"
            hint += ", or correct the line"
        what = f"constant '{name}' is outside domain '{domain.name}' (position {position + 1} of {predicate.name})"
        found.append(
            DataError(what, where=Location(where.source, where.line, column or None, where.excerpt), hint=hint)
        )
    return found
