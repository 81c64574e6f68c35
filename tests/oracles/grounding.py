"""Grounding by plain loops over names: the second, obvious implementation of grounding/."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import product

from r2n.logic.formula import Atom, Constant, Implies, Term, Variable
from r2n.logic.language import Domain
from r2n.logic.theory import Rule, Theory
from tests.oracles.formula import atoms as atoms_of_formula
from tests.oracles.formula import ground, literals, variables

GroundAtom = tuple[str, ...]
Substitution = tuple[str, ...]  # constants, in the order of the rule's variables


@dataclass(frozen=True)
class World:
    """A theory, who is in each domain, and what is known, all in names."""

    theory: Theory
    members: dict[str, tuple[str, ...]]  # of every domain, unions too
    facts: frozenset[GroundAtom]
    false_facts: frozenset[GroundAtom] = frozenset()
    candidates: Mapping[str, frozenset[GroundAtom]] = field(default_factory=dict)  # of predicates that have any

    def may_hold(self, atom: GroundAtom) -> bool:
        """Whether a ground rule may hold the atom."""
        return atom[0] not in self.candidates or atom in self.candidates[atom[0]]

    def is_known(self, atom: GroundAtom, positive: bool, closed: bool) -> bool:
        """Whether the evidence makes this literal true."""
        if positive:
            return atom in self.facts
        return atom in self.false_facts or (closed and atom not in self.facts)


def members_of(domains: Iterable[Domain], given: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:

    def members(domain: Domain) -> set[str]:
        if domain.parts:
            return {name for part in domain.parts for name in members(part)}
        return set(given.get(domain.name, ()) if domain.listed is None else domain.listed)

    return {domain.name: tuple(sorted(members(domain))) for domain in domains}


def variables_of(rule: Rule) -> list[str]:
    """The names of a rule's variables, in order of first occurrence in its atoms."""
    names = [term.name for atom in rule.atoms for term in atom.terms if isinstance(term, Variable)]
    return list(dict.fromkeys(names))


def leaves(domain: Domain) -> set[str]:
    """The names of the domains that a union is made of."""
    return {name for part in domain.parts for name in leaves(part)} if domain.parts else {domain.name}


def domains_of(theory: Theory, rule: Rule, variable: str) -> list[Domain]:
    """The domain of every position where the variable stands."""
    signatures = {predicate.name: predicate.domains for predicate in theory.predicates}
    return [
        domain
        for atom in rule.atoms
        for term, domain in zip(atom.terms, signatures[atom.predicate], strict=True)
        if term == Variable(variable)
    ]


def domain_of(theory: Theory, rule: Rule, variable: str) -> Domain:
    """The annotated domain, or the narrowest of the domains of the positions where the variable stands."""
    by_name = {domain.name: domain for domain in theory.domains}
    for name, domain in rule.types:
        if name == variable:
            return by_name[domain]
    found = domains_of(theory, rule, variable)
    narrowest = [d for d in found if all(is_within(d, other) for other in found)]
    if not narrowest:
        raise LookupError(f"{variable} of {rule.name}: none of {[d.name for d in found]} is within all the others")
    return narrowest[0]


def is_within(domain: Domain, other: Domain) -> bool:
    """Whether the parts of one domain are all parts of the other."""
    return leaves(domain) <= leaves(other)


def is_closed(theory: Theory, rule: Rule, atom: Atom) -> bool:
    """Whether the predicate is closed, or closed over a part that holds the domains of the atom's variables."""
    predicate = next(p for p in theory.predicates if p.name == atom.predicate)
    stands = [
        domain_of(theory, rule, term.name) if isinstance(term, Variable) else domain
        for term, domain in zip(atom.terms, predicate.domains, strict=True)
    ]
    return predicate.closed or any(all(map(is_within, stands, part)) for part in predicate.closed_parts)


@cache
def body_of(theory: Theory, rule: Rule) -> list[tuple[Atom, bool, bool]]:
    """The body literals: atom, whether it stands undenied, whether it is closed."""
    return [(atom, sign, is_closed(theory, rule, atom)) for atom, sign in literals(rule.formula)]


def heads_of(rule: Rule) -> list[Atom]:
    """The atoms that a query may match: those of the consequent, or all where there is no body."""
    if isinstance(rule.formula, Implies) and literals(rule.formula):
        return atoms_of_formula(rule.formula.head)
    return list(rule.atoms)


def obeys_guards(rule: Rule, theta: dict[str, str]) -> bool:
    """Whether no guard `x != y` is violated."""

    def value(term: Term) -> str:
        return term.name if isinstance(term, Constant) else theta[term.name]

    return all(value(guard.left) != value(guard.right) for guard in rule.guards)


def substitutions(world: World, rule: Rule, bound: dict[str, str] | None = None) -> Iterator[dict[str, str]]:
    """Every substitution over the variables' domains, in order of names, that guards and closed predicates allow."""
    names = variables_of(rule)
    choices = [world.members[domain_of(world.theory, rule, name).name] for name in names]
    for name, constant in (bound or {}).items():
        choices[names.index(name)] = (constant,) if constant in choices[names.index(name)] else ()
    body = body_of(world.theory, rule)
    for constants in product(*choices):
        theta = dict(zip(names, constants, strict=True))
        is_contradicted = [closed and (ground(atom, theta) in world.facts) != sign for atom, sign, closed in body]
        are_candidates = all(world.may_hold(ground(atom, theta)) for atom in rule.atoms)
        if obeys_guards(rule, theta) and not any(is_contradicted) and are_candidates:
            yield theta


def full(world: World) -> list[list[Substitution]]:
    return [[tuple(theta.values()) for theta in substitutions(world, rule)] for rule in world.theory.rules]


def known_body(world: World) -> list[list[Substitution]]:
    return [
        [tuple(theta.values()) for theta in substitutions(world, rule) if not unknown(world, rule, theta)]
        for rule in world.theory.rules
    ]


def matches(atom: Atom, query: GroundAtom) -> dict[str, str] | None:
    """The substitution of the atom's variables that makes it the query."""
    if atom.predicate != query[0]:
        return None
    bound: dict[str, str] = {}
    for term, constant in zip(atom.terms, query[1:], strict=True):
        expected = term.name if isinstance(term, Constant) else bound.setdefault(term.name, constant)
        if expected != constant:
            return None
    return bound


def unknown(world: World, rule: Rule, theta: dict[str, str]) -> list[tuple[GroundAtom, bool]]:
    """The body literals of a ground rule that the evidence does not make true, one per position."""
    body = [(ground(atom, theta), sign, closed) for atom, sign, closed in body_of(world.theory, rule)]
    return [(atom, sign) for atom, sign, closed in body if not world.is_known(atom, sign, closed)]


def has_anchor(world: World, rule: Rule, theta: dict[str, str], bound: set[str], query: GroundAtom) -> bool:
    """Whether some positive body atom is bound or a fact, while no other positive body atom is the query."""
    positive = [atom for atom, sign in literals(rule.formula) if sign]
    if not positive:
        return True
    for anchor in positive:
        if variables(anchor) <= bound or ground(anchor, theta) in world.facts:
            others = [atom for atom in positive if atom != anchor]
            if all(ground(atom, theta) != query for atom in others):
                return True
    return False


def ask(world: World, rule: Rule, query: GroundAtom, width: int) -> list[dict[str, str]]:
    """The ground rules of one rule around one query."""
    answers = []
    for head in heads_of(rule):
        bound = matches(head, query)
        if bound is None:
            continue
        answers += [
            theta
            for theta in substitutions(world, rule, bound)
            if len(unknown(world, rule, theta)) <= width and has_anchor(world, rule, theta, set(bound), query)
        ]
    return answers


def backward(world: World, queries: Iterable[GroundAtom], width: int, depth: int) -> list[list[Substitution]]:
    """BC_{w,d}: per rule, the substitutions found around the queries in d steps (sorted by name)."""
    rules = world.theory.rules
    found: list[set[Substitution]] = [set() for _ in rules]
    asked: list[set[GroundAtom]] = [set() for _ in rules]
    current = set(queries)
    for step in range(depth):
        allowed = 0 if step == depth - 1 else width
        following: set[GroundAtom] = set()
        for j, rule in enumerate(rules):
            for query in current - asked[j]:
                asked[j].add(query)
                for theta in ask(world, rule, query, allowed):
                    found[j].add(tuple(theta.values()))
                    following |= {atom for atom, sign in unknown(world, rule, theta) if sign}
        current = following
    return [sorted(each) for each in proved(world, found, depth)]


def proved(world: World, found: list[set[Substitution]], depth: int) -> list[set[Substitution]]:
    """The ground rules whose body atoms are all known, or proved within d rounds."""
    thetas = [
        [(rule, j, dict(zip(variables_of(rule), constants, strict=True))) for constants in found[j]]
        for j, rule in enumerate(world.theory.rules)
    ]
    ground_rules = [each for per_rule in thetas for each in per_rule]
    done: set[GroundAtom] = set()

    def is_proved(rule: Rule, theta: dict[str, str]) -> bool:
        return all(sign and atom in done for atom, sign in unknown(world, rule, theta))

    for _ in range(depth):
        ready = [(rule, theta) for rule, _, theta in ground_rules if is_proved(rule, theta)]
        done |= {ground(head, theta) for rule, theta in ready for head in heads_of(rule)}
    kept: list[set[Substitution]] = [set() for _ in found]
    for rule, j, theta in ground_rules:
        if is_proved(rule, theta):
            kept[j].add(tuple(theta.values()))
    return kept


def without_closed_rules(world: World, substitutions_by_rule: list[list[Substitution]]) -> list[list[Substitution]]:
    """What is left of the ground rules without those of rules whose atoms are all closed."""
    return [
        [] if all(is_closed(world.theory, rule, atom) for atom in rule.atoms) else per_rule
        for rule, per_rule in zip(world.theory.rules, substitutions_by_rule, strict=True)
    ]


def rows(world: World, substitutions_by_rule: list[list[Substitution]]) -> list[list[tuple[GroundAtom, ...]]]:
    """Per rule and substitution, the ground atoms in the order of the rule's positions."""
    return [
        [
            tuple(ground(atom, dict(zip(variables_of(rule), constants, strict=True))) for atom in rule.atoms)
            for constants in per_rule
        ]
        for rule, per_rule in zip(world.theory.rules, substitutions_by_rule, strict=True)
    ]
