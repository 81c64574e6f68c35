"""Knowledge bases: theory, language, evidence and features; reciprocal predicates; languages that grow.

With new facts, constants that are new to the language join domains: those of their positions in facts, if the theory
neither lists the domain's constants nor makes it a union, and those they are declared to be in. A constant that was
there before stays in the domains it was in.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Int64
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from r2n.data.features import Features, FeatureTable, read_features
from r2n.data.herbrand import Codes, HerbrandBase, QueryPattern, closed_atoms, is_first
from r2n.data.tables import Facts
from r2n.errors import DataError, Location, TheoryError, counted, nearest
from r2n.logic.formula import Atom, Constant, printed_name
from r2n.logic.language import Domain, Language, Predicate
from r2n.logic.theory import ANY_PREDICATE, Theory
from r2n.options import GroundingOptions

MOST_COMPARED = 20  # wrong constants that are compared with all right ones, for a hint
FEWEST_ROWS = 20  # with one fact each, to hold a predicate for functional
ROWS_A_VALUE = 5  # at least: where values are many, one for each row may be chance
DEFAULT_DOMAIN = Domain("constant")
VARIABLE = "\0"  # before the name of a variable of a rule, next to names of constants
ONE_KIND = 0.9  # share of the constants in one domain: above, all are candidates for each other

Members = dict[str, set[str]]
"""The constants of domains."""


def complete(
    theory: Theory,
    facts: Sequence[Facts],
    domains: Mapping[str, Iterable[str]],
    *,
    featured: Collection[str] = (),
    are_all_here: bool = True,
) -> tuple[Theory, Language]:
    """The theory with the predicates that the facts bring, and the language with the constants they bring.

    `domains` lists the constants of domains that the theory leaves open; what is listed nowhere is gathered from the
    facts: a domain holds what stands in its positions. `featured` names domains with features. Unless all constants are
    here, those of rules are not checked, and no domain is found by constants.
    """
    domains = {name: names if isinstance(names, str) else tuple(names) for name, names in domains.items()}
    if not theory.predicates:
        is_one = DEFAULT_DOMAIN.name in {*domains, *featured} or not are_all_here
        theory = _with_predicates_of(theory, facts, None if is_one else domains)
    theory = theory.completed(theory.domains, theory.predicates)
    members = given_members(theory.domains, domains)
    gathered, in_rules = gathered_members(theory.predicates, facts), rule_constants(theory)
    for name, domain, _ in in_rules:
        gathered.setdefault(domain.name, set()).add(name)
    language = Language.build(theory.domains, theory.predicates, gathered | members)
    names_of: dict[str, set[str]] = {}  # rules and constants may be many
    for name, domain, where in in_rules if are_all_here else ():
        if domain.name not in names_of:
            names_of[domain.name] = {language.constants[i] for i in language.members(domain)}
        if name not in names_of[domain.name]:
            raise outside_domain(name, domain, where, nearest(name, names_of[domain.name]))
    return theory, language


def _with_predicates_of(theory: Theory, facts: Sequence[Facts], listed: Mapping[str, Iterable[str]] | None) -> Theory:
    """Declare what the theory leaves to the data: every predicate that facts or rules name.

    If nothing declares domains, positions of rules that share a constant or a variable have one domain, and the listed
    domains are those of the positions that share constants with them. Without rules, or with rules about all
    predicates, there is one domain.
    """
    if len(theory.domains) > 1:
        what = "the theory declares several domains but no predicate, so the predicates' positions have no domain"
        hint = "declare the predicates: predicate NAME(DOMAIN, ...)"
        raise TheoryError(what, where=Location(theory.source) if theory.source else None, hint=hint)
    default = next(iter(theory.domains), DEFAULT_DOMAIN)
    arities = {group.predicate: len(group.arguments) for group in reversed(facts)}
    atoms = [atom for rule in theory.rules for atom in rule.atoms]
    are_named = not any(atom.predicate == ANY_PREDICATE for atom in atoms)
    for atom in atoms:
        if atom.predicate != ANY_PREDICATE:
            arities.setdefault(atom.predicate, len(atom.terms))
    arities = dict(sorted(arities.items()))
    is_text = any(isinstance(names, str) for names in (listed or {}).values())  # which is refused later
    by_constants = not (theory.domains or listed is None or is_text) and are_named and bool(theory.rules or listed)
    found = _domains_by_constants(theory, facts, arities, listed or {}) if by_constants else {}
    predicates = tuple(
        Predicate(name, tuple(found.get((name, i), default) for i in range(arity))) for name, arity in arities.items()
    )
    domains = dict.fromkeys([*map(Domain, listed or {}), *found.values()]) if by_constants else [default]
    return theory.completed(tuple(domains), predicates)


Position = tuple[str, int]
"""A predicate and the index of one of its positions; or a listed domain and -1."""


def _domains_by_constants(
    theory: Theory, facts: Sequence[Facts], arities: Mapping[str, int], listed: Mapping[str, Iterable[str]]
) -> dict[Position, Domain]:
    """The domain of each position: all that share constants or variables of rules, one by one, have the same.

    Queries count as facts do: what is asked can only make domains wider. A knowledge graph, with at most a few
    constants of other kinds, has one domain.
    """
    positions = [(name, i) for name, arity in arities.items() for i in range(arity)]
    number = {position: i for i, position in enumerate([*positions, *((name, -1) for name in listed)])}
    members = [(number[name, -1], pa.array(names, pa.string())) for name, names in listed.items()]
    for group in facts:
        if len(group.arguments) == arities[group.predicate]:
            members += [(number[group.predicate, i], pc.unique(column)) for i, column in enumerate(group.arguments)]
    for rule in theory.rules:  # a variable is a constant of its own
        of_variable = {name: f"{VARIABLE}{rule.name} {name}" for name in rule.variables}
        held = [((domain, -1), of_variable[name]) for name, domain in rule.types]
        terms = ((atom.predicate, i, term) for atom in rule.atoms for i, term in enumerate(atom.terms))
        held += [((p, i), t.name if isinstance(t, Constant) else of_variable[t.name]) for p, i, t in terms]
        members += [(number[key], pa.array([name], pa.string())) for key, name in held if key in number]
    names = pa.chunked_array([column for _, column in members], pa.string()).combine_chunks().dictionary_encode()
    second = len(number) + names.indices.to_numpy().astype(np.int64)
    first = np.repeat([holder for holder, _ in members], [len(column) for _, column in members]).astype(np.int64)
    size, is_constant = len(number) + len(names.dictionary), ~np.array(pc.starts_with(names.dictionary, VARIABLE))
    found = connected_components(coo_array((np.ones(len(first), bool), (first, second)), (size, size)), directed=False)
    component = found[1][: len(number)].tolist()
    of_constants = np.bincount(found[1][len(number) :], is_constant, minlength=1)
    if not listed and of_constants.max() >= ONE_KIND * of_constants.sum():
        return dict.fromkeys(positions, DEFAULT_DOMAIN)
    domains = dict[int, Domain]()
    for name in listed:
        other = domains.setdefault(component[number[name, -1]], Domain(name))
        if other.name != name:
            what = f"domains '{other.name}' and '{name}' meet in positions that share constants, or variables of rules"
            raise TheoryError(what, hint="declare the predicates in the theory: predicate NAME(DOMAIN, ...)")
    for position in positions:
        domains.setdefault(component[number[position]], Domain(f"{position[0]}_{position[1] + 1}"))
    return {position: domains[component[number[position]]] for position in positions}


def with_functional(
    theory: Theory, language: Language, evidence: "Evidence"
) -> tuple[Theory, Language, tuple[str, ...], tuple[str, ...]]:
    """The theory and the language in which predicates that the facts show to be functional are so, and what to note.

    An open predicate with enough facts (`FEWEST_ROWS`) is, if each row holds one of them, and there are few values
    (`ROWS_A_VALUE`). The last part warns of rows that hold several facts of a predicate declared functional.
    """
    base, found, notes, warnings = HerbrandBase(language), list(language.predicates), list[str](), list[str]()
    for i, predicate in enumerate(language.predicates):
        if predicate.arity < 2 or (predicate.closed and not predicate.functional):
            continue
        part = slice(*np.searchsorted(evidence.atoms, base.offsets[i : i + 2]))
        pattern = QueryPattern.from_base(base, i, predicate.arity - 1)
        rows, value = pattern.located(evidence.atoms[part][evidence.truth[part]])
        values, again, name = len(np.unique(value)), ~is_first(rows), printed_name(predicate.name)
        if predicate.functional and again.any():
            row = ", ".join(language.constants[c] for c in pattern.given(rows[again][:1])[0, :-1])
            warnings.append(f"{name} is declared functional, but {row} has several values")
        is_one_of_few = not again.any() and len(rows) >= max(FEWEST_ROWS, ROWS_A_VALUE * values) and values > 1
        if is_one_of_few and not predicate.functional:
            found[i] = replace(predicate, functional=True)
            notes.append(f"{name} is functional: {len(rows):,} facts give each first constant one of {values:,} values")
    if not notes:
        return theory, language, (), tuple(warnings)
    predicates = tuple(found)
    theory, language = replace(theory, predicates=predicates), replace(language, predicates=predicates)
    return theory, language, tuple(notes), tuple(warnings)


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
    def joined(cls, *parts: "Evidence") -> "Evidence":
        """The evidence of all parts, which share no atom."""
        atoms = np.concatenate([part.atoms for part in parts])
        order = np.argsort(atoms)
        return cls(atoms[order], np.concatenate([part.truth for part in parts])[order])

    @classmethod
    def from_encoded(cls, encoded: EncodedFacts, base: HerbrandBase) -> "Evidence":
        """Facts as evidence: duplicates fall together, a fact both true and false is an error that names both lines."""
        order = np.argsort(encoded.codes, kind="stable")
        codes, truth = encoded.codes[order], encoded.truth[order]
        same = codes[1:] == codes[:-1]
        clash = np.flatnonzero(same & (truth[1:] != truth[:-1]))
        if len(clash):
            first, second = sorted((int(order[clash[0]]), int(order[clash[0] + 1])))
            what = f"{base.names(codes[clash[:1]])[0]} is stated both true and false"
            hint = f"it is stated the other way at {encoded.location(first)}; keep one of the two"
            raise DataError(what, where=encoded.location(second), hint=hint)
        kept = is_first(codes)
        return cls(codes[kept], truth[kept])

    @property
    def facts(self) -> Codes:
        """The atoms that are true."""
        return self.atoms[self.truth]

    def __len__(self) -> int:
        return len(self.atoms)

    def __repr__(self) -> str:
        true = int(self.truth.sum())
        return f"Evidence({counted(len(self), 'atom')}: {true:,} true, {len(self) - true:,} false)"


@dataclass(frozen=True, eq=False)
class KnowledgeBase:
    """What a grounder works on: theory, language and evidence; and the features of constants, by domain.

    `candidates` holds the codes (ascending) of the only atoms of some predicates that ground rules may hold.
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
        theory, language = complete(theory, facts, domains or {}, featured=features or {})
        base = HerbrandBase(language)
        encoded, _ = encode_facts(base, facts)
        return cls(theory, language, Evidence.from_encoded(encoded, base), read_features(language, features or {})[0])

    def __repr__(self) -> str:
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
        """Ids of the constants in labelled atoms: in the evidence that is not of a closed world."""
        return np.unique(self._labelled[self._labelled >= 0])

    @cached_property
    def training_first_constants(self) -> Int64[np.ndarray, " constants"]:
        """Ids of the constants at the first position of labelled atoms."""
        return np.unique(self._labelled[:, 0])

    @cached_property
    def _labelled(self) -> Int64[np.ndarray, "atoms positions"]:
        labelled = self.evidence.atoms[~closed_atoms(self.base, self.evidence.atoms)]
        return self.base.decode(labelled)[1]

    def facts(self, predicate: Predicate) -> Int64[np.ndarray, "atoms positions"]:
        """Arguments (constant ids) of the predicate's atoms known to be true, in the order of their codes."""
        return self.base.decode(self.known_codes(predicate, True))[1][:, : predicate.arity]

    def false_facts(self, predicate: Predicate) -> Int64[np.ndarray, "atoms positions"]:
        """Arguments (constant ids) of the predicate's atoms known to be false, in the order of their codes."""
        return self.base.decode(self.known_codes(predicate, False))[1][:, : predicate.arity]

    def known_codes(self, predicate: Predicate, truth: bool) -> Codes:
        """Codes of the predicate's atoms known to be true, or false, ascending."""
        index = self.language.predicate_index(predicate.name)
        start, end = np.searchsorted(self.evidence.atoms, self.base.offsets[index : index + 2])
        return self.evidence.atoms[start:end][self.evidence.truth[start:end] == truth]


def as_trained(knowledge: KnowledgeBase, options: GroundingOptions) -> KnowledgeBase:
    """What is known, in the language that the network is trained in."""
    return with_reciprocals(knowledge) if options.reciprocal else knowledge


def with_reciprocals(knowledge: KnowledgeBase) -> KnowledgeBase:
    """The knowledge base with a reciprocal predicate, and its facts, for each binary one; codes of atoms do not change.

    Implicit rules relate the reciprocals too: of P(x, y) they take in P^-1(x, y) if both positions have one domain,
    else P^-1(y, x). Explicit rules stay as they are.
    """
    theory, language = knowledge.theory, knowledge.language
    added, taken = dict[str, Predicate](), {predicate.name for predicate in language.predicates}
    for predicate in language.predicates:
        if predicate.arity == 2:
            reciprocal = f"{predicate.name}^-1"
            while reciprocal in taken:  # a predicate of the data has this name
                reciprocal += " (reciprocal)"
            closed = tuple(part[::-1] for part in predicate.closed_parts)
            domains = predicate.domains[::-1]
            added[predicate.name] = Predicate(reciprocal, domains, predicate.closed, closed, predicate.name)
            taken.add(reciprocal)
    predicates = (*language.predicates, *added.values())
    rules = []
    for rule in theory.rules:
        more = []
        for atom in rule.atoms if rule.is_implicit else ():
            if atom.predicate in added:
                predicate = added[atom.predicate]
                terms = atom.terms if predicate.domains[0] == predicate.domains[1] else atom.terms[::-1]
                more.append(Atom(predicate.name, terms, atom.where))
        rules.append(replace(rule, atoms=(*rule.atoms, *more)) if more else rule)
    language = replace(language, predicates=predicates)
    evidence, base = knowledge.evidence, HerbrandBase(language)
    reciprocal = reciprocal_codes(base, evidence.atoms)
    order = np.argsort(reciprocal)
    order = order[reciprocal[order] >= 0]
    candidates = dict(knowledge.candidates)
    for name in candidates.keys() & added.keys():
        candidates[added[name].name] = np.sort(reciprocal_codes(base, candidates[name]))
    return replace(
        knowledge,
        theory=replace(theory, predicates=predicates, rules=tuple(rules)),
        language=language,
        evidence=Evidence.joined(evidence, Evidence(reciprocal[order], evidence.truth[order])),
        candidates=candidates,
    )


def reciprocal_codes(base: HerbrandBase, codes: Codes, *, both_ways: bool = False) -> Codes:
    """The code of each atom's reciprocal, -1 if there is none; with `both_ways`, that of P for atoms of P^-1 too."""
    language = base.language
    index, arguments = base.decode(codes)
    result = np.full(len(codes), -1, np.int64)
    for predicate in language.predicates:
        if predicate.reciprocal_of is not None:
            original = language.predicate(predicate.reciprocal_of)
            for source, target in [(original, predicate), (predicate, original)][: 1 + both_ways]:
                which = index == language.predicate_index(source.name)
                result[which] = base.encode_columns(target, [arguments[which, 1], arguments[which, 0]])
    return result


def counterparts(base: HerbrandBase, codes: Codes) -> Codes:
    """The code of the atom that says the same in the other direction, of P or of P^-1; -1 if there is none."""
    return reciprocal_codes(base, codes, both_ways=True)


def gathered_members(predicates: Sequence[Predicate], facts: Sequence[Facts]) -> Members:
    """The constants that stand in the positions of each domain of which the data says what is in it.

    Facts that do not fit their predicate are passed over: their encoding says what is wrong, and where.
    """
    found, domains = Members(), {predicate.name: predicate.domains for predicate in predicates}
    for group in facts:
        if len(group.arguments) == len(domains.get(group.predicate, ())):
            for domain, column in zip(domains[group.predicate], group.arguments, strict=True):
                if domain.is_open:
                    found.setdefault(domain.name, set()).update(pc.unique(column).to_pylist())
    return found


def members_by_facts(language: Language, facts: Sequence[Facts]) -> Members:
    """For each domain that may grow, the constants outside the language that facts put into it."""
    gathered = gathered_members(language.predicates, facts)
    return {name: names.difference(language.constants) for name, names in gathered.items()}


def members_by_atoms(trained: Language, base: HerbrandBase, atoms: Codes) -> Members:
    """The same of atoms given by their codes in the base of a grown language."""
    found: Members = {}
    is_new = constant_ids(base.language, trained) < 0
    index, arguments = base.decode(atoms)
    for i in np.unique(index):
        predicate = base.language.predicates[i]
        for position, domain in enumerate(predicate.domains):
            if domain.is_open:
                ids = np.unique(arguments[index == i, position])
                names = {base.language.constants[constant] for constant in ids[is_new[ids]]}
                found.setdefault(domain.name, set()).update(names)
    return found


def members_of(language: Language, constants: np.ndarray) -> Members:
    """For each domain that may grow, which of some constants (by id) are in it."""
    return {
        domain.name: {language.constants[i] for i in np.intersect1d(constants, language.members(domain))}
        for domain in language.domains
        if domain.is_open
    }


def check_declared(language: Language, declared: Mapping[str, Iterable[str]]) -> Members:
    """Constants declared to be in domains, by domain; only new ones, and only in domains that may grow."""
    hint = f"the domains are: {', '.join(domain.name for domain in language.domains)}"
    found = given_members(language.domains, declared, hint)
    for name, constants in found.items():
        old = constants.intersection(language.constants)
        if old:
            raise DataError(f"'{min(old)}' is declared to be in '{name}', but it is no new constant")
    return found


def grown(language: Language, *more: Mapping[str, Iterable[str]]) -> Language:
    """The language with more constants in its domains; itself where there are none."""
    if not any(names for part in more for names in part.values()):
        return language
    members = members_of(language, np.arange(len(language.constants)))
    members = {name: old.union(*(part.get(name, ()) for part in more)) for name, old in members.items()}
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
    if new is old:
        return np.arange(len(old.constants))
    found = pc.index_in(pa.array(old.constants, pa.string()), value_set=pa.array(new.constants, pa.string()))
    return pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)


GivenFeatures = Mapping[str, Mapping[str, object]]
"""For domains, the features of new constants: a text or an array each."""


def grown_features(
    features: Mapping[str, Features], old: Language, new: Language, given: GivenFeatures
) -> dict[str, Features]:
    """The features of a language in one that has grown, with those given (or the names, if these are the texts)."""
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
        inside = {new.constants[i] for i in new.members(part.domain)}
        for constant in more:
            if constant in old.constants or constant not in inside:
                why = "it is no new constant" if constant in old.constants else f"no fact puts it into domain '{name}'"
                hint = None if constant in old.constants else f'declare it: domains={{"{name}": ["{constant}"]}}'
                raise DataError(f"features are given for '{constant}', but {why}", hint=hint)
        part = part.in_language(old, new)
        if more:
            added = read_features(new, {name: FeatureTable(dict(more), missing="learn")})[0][name]
            part = part.joined(added, min(more))
        result[name] = part
    return result
