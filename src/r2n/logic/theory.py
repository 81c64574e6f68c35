"""Theories: rules, implicit rules and definitions over typed predicates, and their text form."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isfinite

from r2n.errors import Location, TheoryError, counted, nearest
from r2n.logic.formula import And, Atom, Formula, Implies, Not, Unequal, Variable, printed_name
from r2n.logic.language import Domain, Predicate

_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|\w+(\()?')


def printed_predicate(predicate: Predicate) -> str:
    """A predicate's declaration as a theory file writes it, without the keyword."""
    domains = ", ".join(printed_name(domain.name) for domain in predicate.domains)
    closed = " closed" if predicate.closed else ""
    for part in predicate.closed_parts:
        closed += f" closed({', '.join(printed_name(domain.name) for domain in part)})"
    return f"{printed_name(predicate.name)}({domains}){closed}{' functional' * predicate.functional}"


ANY_PREDICATE = "*"
MOST_WEIGHT = 1e6  # a rule that outweighs even this holds strictly


@dataclass(frozen=True, slots=True)
class Literal:
    """A body atom, by its position in the rule, and whether it is not negated."""

    position: int
    positive: bool


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule r_j: a formula, or (implicit) only the atoms that are related; `types` are the annotated variables."""

    name: str
    formula: Formula | None
    atoms: tuple[Atom, ...]
    guards: tuple[Unequal, ...] = ()
    types: tuple[tuple[str, str], ...] = ()
    weight: float | None = None

    @classmethod
    def explicit(
        cls,
        name: str,
        formula: Formula,
        guards: tuple[Unequal, ...] = (),
        types: tuple[tuple[str, str], ...] = (),
        weight: float | None = None,
    ) -> "Rule":
        """The rule of a formula: its positions are the formula's atoms."""
        return cls(name, formula, formula.atoms(), guards, types, weight)

    def __post_init__(self) -> None:
        """Refuse a rule without atoms, and variables that no atom binds."""
        if not self.atoms:
            raise TheoryError(f"rule '{self.name}' is empty: it has no atom")
        if self.weight is not None and not (isfinite(self.weight) and abs(self.weight) <= MOST_WEIGHT):
            raise TheoryError(
                f"rule '{self.name}' has the weight {self.weight}",
                hint=f"a weight is a number from {-MOST_WEIGHT:,.0f} to {MOST_WEIGHT:,.0f}; a rule without one holds"
                " strictly",
            )
        for guard in self.guards:
            names = [term.name for term in (guard.left, guard.right) if isinstance(term, Variable)]
            if not names:
                raise TheoryError(f"rule '{self.name}': the guard {guard} compares two constants")
            for name in names:
                if name not in self.variables:
                    what = f"rule '{self.name}' is unsafe: {name} stands in a guard but in no atom"
                    raise TheoryError(what, hint=f"use {name} in an atom of the rule, or drop the guard")

    @property
    def is_implicit(self) -> bool:
        """Whether only the correlation of the atoms is known, not its meaning."""
        return self.formula is None

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables, in order of first occurrence."""
        terms = (term for atom in self.atoms for term in atom.terms)
        return tuple(dict.fromkeys(term.name for term in terms if isinstance(term, Variable)))

    @property
    def body(self) -> tuple[Literal, ...]:
        """The conjuncts of the antecedent; none unless the formula implies from a conjunction of literals."""
        if not isinstance(self.formula, Implies):
            return ()
        literals: list[Literal] = []
        for part in _conjuncts(self.formula.body):
            atom = part.part if isinstance(part, Not) else part
            if not isinstance(atom, Atom):
                return ()
            literals.append(Literal(self.atoms.index(atom), atom is part))
        return tuple(dict.fromkeys(literals))

    @property
    def concludes_one_atom(self) -> bool:
        """Whether it concludes one atom from a conjunction of literals."""
        return bool(self.body) and isinstance(self.formula, Implies) and isinstance(self.formula.head, Atom)

    @property
    def body_predicates(self) -> tuple[str, ...]:
        """The predicates of the body, each once."""
        return tuple(dict.fromkeys(self.atoms[literal.position].predicate for literal in self.body))

    @property
    def head_positions(self) -> tuple[int, ...]:
        """Positions of the consequent's atoms; all positions where there is no body."""
        if self.body and isinstance(self.formula, Implies):
            return tuple(self.atoms.index(atom) for atom in self.formula.head.atoms())
        return tuple(range(len(self.atoms)))

    def __str__(self) -> str:
        if self.formula is not None:
            text = str(self.formula)
        elif len(self.atoms) == 1 and self.atoms[0].predicate == ANY_PREDICATE:
            text = str(self.atoms[0])
        else:
            text = f"[{', '.join(map(str, self.atoms))}]"
        kind = "implicit" if self.is_implicit else "rule"
        weight = "" if self.weight is None else f" [{self.weight!r}]"
        waiting = dict(self.types)

        def annotate(match: re.Match[str]) -> str:  # the first occurrence of each annotated variable
            word = match.group()
            if word.startswith('"') or match.group(1) or word not in waiting:
                return word
            return f"{word}: {printed_name(waiting.pop(word))}"

        parts = [_WORD.sub(annotate, text), *map(str, self.guards)]
        return f"{kind} {printed_name(self.name)}{weight}: {', '.join(parts)}"


def _conjuncts(formula: Formula) -> tuple[Formula, ...]:
    """The parts of a conjunction, and of the conjunctions in it; else the formula itself."""
    if not isinstance(formula, And):
        return (formula,)
    return tuple(conjunct for part in formula.parts for conjunct in _conjuncts(part))


@dataclass(frozen=True)
class Theory:
    """A theory: the domains and predicates it declares, and its rules.

    Without any declared predicate, the predicates come from the data and the rules are checked then.
    """

    domains: tuple[Domain, ...] = ()
    predicates: tuple[Predicate, ...] = ()
    rules: tuple[Rule, ...] = ()
    source: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Check names and, where predicates are declared, every atom and variable."""
        for kind, named in (("domain", self.domains), ("predicate", self.predicates), ("rule", self.rules)):
            names = Counter(thing.name for thing in named)
            for name in (name for name, number in names.items() if number > 1):
                raise TheoryError(f"{kind} '{name}' is declared twice", where=self._somewhere(None))
        for rule in self.rules if self.predicates else ():
            for atom in rule.atoms:
                predicate = self._predicate_of.get(atom.predicate)
                if atom.predicate == ANY_PREDICATE:
                    continue
                if predicate is None:
                    raise TheoryError(
                        f"rule '{rule.name}': unknown predicate '{atom.predicate}'",
                        where=self._somewhere(atom.where),
                        hint=nearest(atom.predicate, self._predicate_of)
                        or f"declare it: predicate {printed_name(atom.predicate)}(DOMAIN, ...)",
                    )
                if len(atom.terms) != predicate.arity:
                    terms = counted(len(atom.terms), "term")
                    what = f"rule '{rule.name}': {atom} has {terms}, but {atom.predicate} takes {predicate.arity}"
                    hint = f"it is declared as {printed_predicate(predicate)}"
                    raise TheoryError(what, where=self._somewhere(atom.where), hint=hint)
            if not any(atom.predicate == ANY_PREDICATE for atom in rule.atoms):
                self.variable_domains(rule)

    @cached_property
    def _predicate_of(self) -> dict[str, Predicate]:
        return {predicate.name: predicate for predicate in self.predicates}

    @cached_property
    def predicate_names(self) -> frozenset[str]:
        """The names of the predicates that it declares, and of those in its rules."""
        in_rules = {atom.predicate for rule in self.rules for atom in rule.atoms} - {ANY_PREDICATE}
        return frozenset(in_rules | self._predicate_of.keys())

    @cached_property
    def _domain_of(self) -> dict[str, Domain]:
        return {domain.name: domain for domain in self.domains}

    def _somewhere(self, where: Location | None) -> Location | None:
        return where or (Location(self.source) if self.source else None)

    def variable_domains(self, rule: Rule) -> tuple[Domain, ...]:
        """The domain of each of the rule's variables: annotated, or the narrowest of its positions' domains."""
        annotations, found = dict(rule.types), list[Domain]()
        uses: dict[str, list[tuple[Domain, Atom]]] = {}
        for atom in rule.atoms:
            for term, domain in zip(atom.terms, self._predicate_of[atom.predicate].domains, strict=True):
                if isinstance(term, Variable):
                    uses.setdefault(term.name, []).append((domain, atom))
        for name, used in uses.items():
            domains, annotation = list(dict.fromkeys(domain for domain, _ in used)), annotations.get(name)
            candidates = domains if annotation is None else [self._annotation(rule, name, annotation, used[0][1])]
            for domain in candidates:
                if all(domain.is_within(other) for other in domains):
                    found.append(domain)
                    break
            else:
                stands = " and ".join(domain.name for domain in domains)
                what = f"the domain of {name} cannot be inferred: it stands in {stands} positions"
                if annotation is not None:
                    what = f"{name}: {annotation} does not fit: {name} stands in {stands} positions"
                hint = f"write {name}: DOMAIN with a domain that is a part of all of them"
                raise TheoryError(f"rule '{rule.name}': {what}", where=self._somewhere(used[-1][1].where), hint=hint)
        return tuple(found)

    def is_closed(self, rule: Rule, position: int) -> bool:
        """Whether every ground atom at this position of the rule is under the closed-world assumption."""
        atom = rule.atoms[position]
        predicate = self._predicate_of[atom.predicate]
        if predicate.closed or not predicate.closed_parts:
            return predicate.closed
        of_variable = dict(zip(rule.variables, self.variable_domains(rule), strict=True))
        pairs = zip(atom.terms, predicate.domains, strict=True)
        domains = [of_variable[term.name] if isinstance(term, Variable) else domain for term, domain in pairs]
        return any(all(map(Domain.is_within, domains, part)) for part in predicate.closed_parts)

    def _annotation(self, rule: Rule, name: str, annotation: str, atom: Atom) -> Domain:
        if annotation not in self._domain_of:
            what = f"rule '{rule.name}': unknown domain '{annotation}' of variable {name}"
            hint = nearest(annotation, self._domain_of) or f"declare it: domain {printed_name(annotation)}"
            raise TheoryError(what, where=self._somewhere(atom.where), hint=hint)
        return self._domain_of[annotation]

    def completed(self, domains: tuple[Domain, ...], predicates: tuple[Predicate, ...]) -> "Theory":
        """The theory with these domains and predicates, `*` replaced by every predicate that fits."""
        missing = {predicate.name for predicate in self.predicates} - {p.name for p in predicates}
        if missing:
            raise TheoryError(f"predicates declared but not in the language: {', '.join(sorted(missing))}")
        shell = Theory(domains, predicates, (), self.source)
        rules = []
        for rule in self.rules:
            if any(atom.predicate == ANY_PREDICATE for atom in rule.atoms):
                atoms = tuple(dict.fromkeys(atom for pattern in rule.atoms for atom in shell._fitting(rule, pattern)))
                if not atoms:
                    what, where = f"rule '{rule.name}': no predicate fits {rule.atoms[0]}", rule.atoms[0].where
                    raise TheoryError(what, where=self._somewhere(where))
                rule = replace(rule, atoms=atoms)
            rules.append(rule)
        return Theory(domains, predicates, tuple(rules), self.source)

    def _fitting(self, rule: Rule, pattern: Atom) -> Iterator[Atom]:
        """The atoms that an atom of a rule stands for: of `*`, those of all predicates that fit its annotations."""
        if pattern.predicate != ANY_PREDICATE:
            yield pattern
            return
        annotations = dict(rule.types)
        for predicate in self.predicates:
            if predicate.arity == len(pattern.terms) and all(
                self._annotation(rule, term.name, annotations[term.name], pattern).is_within(domain)
                for term, domain in zip(pattern.terms, predicate.domains, strict=True)
                if isinstance(term, Variable) and term.name in annotations
            ):
                yield replace(pattern, predicate=predicate.name)

    def __str__(self) -> str:
        """As a theory file writes it; `parse_theory(str(theory)) == theory`."""
        lines = []
        for domain in self.domains:
            line = f"domain {printed_name(domain.name)}"
            if domain.parts:
                line += f" = {' | '.join(printed_name(part.name) for part in domain.parts)}"
            elif domain.listed is not None:
                line += f" = {{{', '.join(map(printed_name, domain.listed))}}}"
            lines.append(line)
        lines += [f"predicate {printed_predicate(predicate)}" for predicate in self.predicates]
        lines += map(str, self.rules)
        return "".join(f"{line}\n" for line in lines)
