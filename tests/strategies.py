"""Hypothesis: tiny languages, theories, knowledge bases, queries and graphs, with every oddity the language allows.

Constants in several domains, empty domains, unions of unions; typed variables, constants and repeated variables in
rules, guards, closed predicates, negative body literals, disjunctive heads, any formula, implicit rules; arities 1
to 3; no rule, no fact, no query; facts labelled false; one atom in two positions.
"""

from dataclasses import replace
from itertools import product

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from r2n.knowledge.herbrand import HerbrandBase
from r2n.knowledge.knowledge_base import Evidence, KnowledgeBase
from r2n.logic.formula import And, Atom, Constant, Formula, Iff, Implies, Not, Or, Term, Unequal, Variable, Xor
from r2n.logic.language import Domain, Language, Predicate
from r2n.logic.theory import Rule, Theory
from tests.oracles.formula import atoms as atoms_of_formula
from tests.oracles.grounding import GroundAtom, World, domain_of, leaves, members_of, variables_of

CONSTANTS = ("a", "b", "c", "light blue", "Zoë")
VARIABLES = ("x", "y", "z", "u")


@st.composite
def domains(draw: DrawFn) -> tuple[tuple[Domain, ...], dict[str, tuple[str, ...]]]:
    """Leaf domains (listed or not), perhaps a union and a union of that; and the constants of every domain."""
    members = st.lists(st.sampled_from(CONSTANTS), max_size=3, unique=True)
    made: list[Domain] = []
    given: dict[str, tuple[str, ...]] = {}
    for i in range(draw(st.integers(1, 3))):
        names = tuple(draw(members))
        is_listed = bool(names) and draw(st.booleans())
        made.append(Domain(f"d{i}", listed=names if is_listed else None))
        if not is_listed:
            given[f"d{i}"] = names
    for name in ("u", "v"):
        if len(made) > 1 and draw(st.booleans()):
            parts = draw(st.lists(st.sampled_from(made), min_size=2, max_size=2, unique=True))
            made.append(Domain(name, parts=tuple(parts)))
    return tuple(made), members_of(made, given)


@st.composite
def predicates(draw: DrawFn, over: tuple[Domain, ...]) -> tuple[Predicate, ...]:
    """One to four predicates of one to three positions, a quarter of them closed."""
    made = []
    for i in range(draw(st.integers(1, 4))):
        arity = draw(st.sampled_from((1, 2, 2, 2, 3)))
        signature = tuple(draw(st.sampled_from(over)) for _ in range(arity))
        made.append(Predicate(f"p{i}", signature, closed=draw(st.integers(0, 3)) == 3))
    return tuple(made)


@st.composite
def languages(draw: DrawFn) -> Language:
    """A language whose domains have their constants."""
    over, members = draw(domains())
    return Language.build(over, draw(predicates(over)), given_members(over, members))


def given_members(over: tuple[Domain, ...], members: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The constants that the data must bring: of domains that are neither listed nor unions."""
    return {d.name: members[d.name] for d in over if d.listed is None and not d.parts}


class Scope:
    """The variables of a rule while its atoms are drawn, each with the domain it was made for."""

    def __init__(self, draw: DrawFn, known: tuple[Predicate, ...], members: dict[str, tuple[str, ...]]) -> None:
        self.draw, self.predicates, self.members = draw, known, members
        self.domains: dict[str, Domain] = {}

    def term(self, domain: Domain) -> Term:
        """A variable that fits, old or new, or now and then a constant."""
        fitting = [name for name, own in self.domains.items() if leaves(own) <= leaves(domain)]
        constants = self.members[domain.name]
        if constants and self.draw(st.integers(0, 7)) == 7:
            return Constant(self.draw(st.sampled_from(constants)))
        if fitting and (len(self.domains) == len(VARIABLES) or self.draw(st.integers(0, 2)) > 0):
            return Variable(self.draw(st.sampled_from(fitting)))
        if len(self.domains) < len(VARIABLES) - (not fitting):
            name = VARIABLES[len(self.domains)]
            self.domains[name] = domain
            return Variable(name)
        if constants:
            return Constant(self.draw(st.sampled_from(constants)))
        name = next(iter(self.domains))  # does not fit: the rule will be refused and drawn as a smaller one
        return Variable(name)

    def atom(self) -> Atom:
        """An atom of any predicate."""
        predicate = self.draw(st.sampled_from(self.predicates))
        return Atom(predicate.name, tuple(self.term(domain) for domain in predicate.domains))

    def literal(self) -> Formula:
        """An atom, one time in six negated."""
        atom = self.atom()
        return Not(atom) if self.draw(st.integers(0, 5)) == 5 else atom

    def conjunction(self, literals: int) -> Formula:
        """Some literals, all of which must hold."""
        parts = tuple(self.literal() for _ in range(literals))
        return parts[0] if len(parts) == 1 else And(parts)


def any_formula(atom: SearchStrategy[Atom]) -> SearchStrategy[Formula]:
    """Every connective, nested."""

    def grow(inner: SearchStrategy[Formula]) -> SearchStrategy[Formula]:
        several = st.lists(inner, min_size=2, max_size=3).map(tuple)
        two = st.tuples(inner, inner)
        binary = [two.map(lambda pair, kind=kind: kind(*pair)) for kind in (Implies, Iff, Xor)]
        return st.one_of(inner.map(Not), several.map(And), several.map(Or), *binary)

    return st.recursive(atom, grow, max_leaves=5)


def horn(scope: Scope) -> Formula:
    """`p & q -> r`, with perhaps a negative body literal."""
    return Implies(scope.conjunction(scope.draw(st.integers(1, 3))), scope.atom())


def disjunctive(scope: Scope) -> Formula:
    """`p & q -> r | s`, or a consequent that denies or implies."""
    body = scope.conjunction(scope.draw(st.integers(1, 2)))
    first, second = scope.atom(), scope.atom()
    kind = scope.draw(st.sampled_from(("or", "or", "and", "not", "implies")))
    heads = {"or": Or((first, second)), "and": And((first, second)), "not": Not(first)}
    return Implies(body, heads.get(kind, Implies(first, second)))


def of_any_form(scope: Scope) -> Formula:
    """Any formula over a few atoms: iff, xor, disjunctive bodies, a lone atom."""
    pool = [scope.atom() for _ in range(scope.draw(st.integers(1, 3)))]
    return scope.draw(any_formula(st.sampled_from(pool)))


FORMS = (horn, horn, horn, horn, disjunctive, of_any_form)


@st.composite
def rules(
    draw: DrawFn, name: str, theory: Theory, members: dict[str, tuple[str, ...]], forms=(*FORMS, None)
) -> Rule | None:
    """One rule over the theory's predicates (None where the draw is ill-typed)."""
    scope = Scope(draw, theory.predicates, members)
    form = draw(st.sampled_from(forms))
    if form is None:
        atoms = dict.fromkeys(scope.atom() for _ in range(draw(st.integers(1, 3))))
        rule = Rule(name, None, tuple(atoms))
    else:
        formula = form(scope)
        rule = Rule(name, formula, tuple(atoms_of_formula(formula)))
    return well_typed(draw, theory, rule, scope.domains, members)


def well_typed(
    draw: DrawFn, theory: Theory, rule: Rule, made_for: dict[str, Domain], members: dict[str, tuple[str, ...]]
) -> Rule | None:
    """The rule with annotations where they are needed (and sometimes where they are not), and guards."""
    names = variables_of(rule)
    types = []
    for name in names:
        annotated = replace(rule, types=((name, made_for[name].name),))
        if not all(fits(theory, annotated, atom, name, made_for[name]) for atom in rule.atoms):
            return None
        if not is_inferred(theory, rule, name) or draw(st.integers(0, 3)) == 3:
            types.append((name, made_for[name].name))
    rule = replace(rule, types=tuple(types))
    guards = []
    if names and draw(st.integers(0, 3)) == 3:
        left = draw(st.sampled_from(names))
        own = members[domain_of(theory, rule, left).name]
        rights = [Variable(other) for other in names if other != left] + [Constant(c) for c in own]
        if rights:
            guards.append(Unequal(Variable(left), draw(st.sampled_from(rights))))
    return replace(rule, guards=tuple(guards))


def fits(theory: Theory, rule: Rule, atom: Atom, variable: str, domain: Domain) -> bool:
    """Whether each position of the atom where the variable stands takes all of the domain."""
    signature = next(p.domains for p in theory.predicates if p.name == atom.predicate)
    places = [d for term, d in zip(atom.terms, signature, strict=True) if term == Variable(variable)]
    return all(leaves(domain) <= leaves(place) for place in places)


def is_inferred(theory: Theory, rule: Rule, variable: str) -> bool:
    """Whether one of the variable's domains is within all the others."""
    try:
        domain_of(theory, rule, variable)
    except LookupError:
        return False
    return True


@st.composite
def theories_with_members(
    draw: DrawFn, forms=(*FORMS, None), max_rules: int = 3
) -> tuple[Theory, dict[str, tuple[str, ...]]]:
    """A theory and the constants of its domains."""
    over, members = draw(domains())
    theory = Theory(over, draw(predicates(over)))
    drawn = [draw(rules(f"r{j}", theory, members, forms)) for j in range(draw(st.integers(0, max_rules)))]
    return replace(theory, rules=tuple(rule for rule in drawn if rule is not None)), members


def theories() -> SearchStrategy[Theory]:
    """A theory alone."""
    return theories_with_members().map(lambda pair: pair[0])


def ground_atoms(theory: Theory, members: dict[str, tuple[str, ...]]) -> list[GroundAtom]:
    """The Herbrand base, by enumeration."""
    return [
        (predicate.name, *constants)
        for predicate in theory.predicates
        for constants in product(*(members[domain.name] for domain in predicate.domains))
    ]


@st.composite
def worlds(draw: DrawFn, forms=(*FORMS, None), max_rules: int = 3, with_false: bool = True) -> World:
    """A theory, its constants and some evidence, in names."""
    theory, members = draw(theories_with_members(forms, max_rules))
    base = ground_atoms(theory, members)
    if not base:
        return World(theory, members, frozenset())
    known = draw(st.lists(st.sampled_from(base), max_size=20, unique=True))
    is_false = [with_false and draw(st.integers(0, 4)) == 4 for _ in known]
    facts = frozenset(atom for atom, no in zip(known, is_false, strict=True) if not no)
    return World(theory, members, facts, frozenset(known) - facts)


def horn_worlds() -> SearchStrategy[World]:
    """Positive Horn rules and true facts alone: what has a least model."""

    def positive(scope: Scope) -> Formula:
        parts = tuple(scope.atom() for _ in range(scope.draw(st.integers(1, 3))))
        return Implies(parts[0] if len(parts) == 1 else And(parts), scope.atom())

    return worlds(forms=(positive,), with_false=False)


def queries(world: World) -> SearchStrategy[list[GroundAtom]]:
    """Some ground atoms to ask, known or not; often none is left out of a small base."""
    base = ground_atoms(world.theory, world.members)
    if not base:
        return st.just([])
    return st.lists(st.sampled_from(base), max_size=6, unique=True)


def codes_of(base: HerbrandBase, language: Language, atoms: list[GroundAtom]) -> np.ndarray:
    """The codes of named atoms, one call each."""
    codes = []
    for predicate, *constants in atoms:
        ids = np.array([[language.constant_id(c) for c in constants]], dtype=np.int64)
        codes.append(int(base.encode(language.predicate(predicate), ids)[0]))
    return np.array(codes, dtype=np.int64)


def knowledge_of(world: World) -> KnowledgeBase:
    """The library's knowledge base of a world of names."""
    theory = world.theory
    language = Language.build(theory.domains, theory.predicates, given_members(theory.domains, world.members))
    known = sorted(world.facts | world.false_facts)
    codes = codes_of(HerbrandBase(language), language, known)
    truth = np.array([atom in world.facts for atom in known], dtype=bool)
    order = np.argsort(codes)
    return KnowledgeBase(theory, language, Evidence(codes[order], truth[order]))


def knowledge_bases() -> SearchStrategy[KnowledgeBase]:
    """A knowledge base of the library."""
    return worlds().map(knowledge_of)


def named_atoms(knowledge: KnowledgeBase, codes: np.ndarray) -> list[GroundAtom]:
    """The names of codes, one by one."""
    which, arguments = knowledge.base.decode(np.asarray(codes, dtype=np.int64))
    named = []
    for p, ids in zip(which.tolist(), arguments.tolist(), strict=True):
        predicate = knowledge.language.predicates[p]
        named.append((predicate.name, *(knowledge.language.constants[i] for i in ids[: predicate.arity])))
    return named


@st.composite
def graphs(draw: DrawFn) -> tuple[list[int], list[list[tuple[int, ...]]]]:
    """Extra codes, and per rule the codes of its ground rules: any shape, also none at all; near or far apart."""
    scale = draw(st.sampled_from((1, 7, 10**15)))
    code = st.integers(0, 12).map(lambda n: n * scale)
    extra = draw(st.lists(code, max_size=5))
    per_rule = []
    for _ in range(draw(st.integers(0, 3))):
        positions = draw(st.integers(1, 3))
        per_rule.append(sorted(set(draw(st.lists(st.tuples(*[code] * positions), max_size=6)))))
    return extra, per_rule
