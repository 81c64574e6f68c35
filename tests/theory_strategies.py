"""Hypothesis: tiny languages and theories, with every oddity the language allows."""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from r2n.logic.formula import And, Atom, Constant, Formula, Iff, Implies, Not, Or, Term, Unequal, Variable, Xor
from r2n.logic.language import Domain, Language, Predicate
from r2n.logic.theory import Rule, Theory
from tests.oracles.formula import atoms as atoms_of_formula
from tests.oracles.grounding import domain_of, domains_of, leaves, members_of, variables_of

CONSTANTS = ("a", "b", "c", "light blue", "Zoë")
VARIABLES = ("x", "y", "z", "u")
Members = dict[str, tuple[str, ...]]
Thing = TypeVar("Thing")


def dice() -> SearchStrategy[Random]:
    """Fair dice, and now and then Hypothesis's own."""
    fair = st.randoms(use_true_random=True, note_method_calls=False)
    return st.one_of(st.randoms(use_true_random=False), *[fair] * 7)


def one_in(sides: int, dice: Random) -> bool:
    """True one time in so many."""
    return dice.randrange(sides) == sides - 1


def share_of(things: list[Thing], dice: Random, shares: tuple[float, ...]) -> list[Thing]:
    """About one of these shares of the things, in order (more where they are few), or one time in ten none."""
    share = max(dice.choice(shares), min(3 / max(1, len(things)), 0.5)) if not one_in(10, dice) else 0.0
    return [thing for thing in things if dice.random() < share]


def make_domains(dice: Random) -> tuple[tuple[Domain, ...], Members]:
    """Leaf domains (listed or not), perhaps a union and a union of that; and the constants of every domain."""
    made: list[Domain] = []
    given: Members = {}
    for i in range(dice.choice((1, 2, 2, 3))):
        names = tuple(dice.sample(CONSTANTS, dice.choice((2, 3, 3, 2, 3, 3, 2, 3, 2, 1, 0))))
        is_listed = one_in(2, dice)
        made.append(Domain(f"d{i}", listed=names if is_listed else None))
        if not is_listed:
            given[f"d{i}"] = names
    for name in ("u", "v"):
        union = Domain(name, parts=tuple(dice.sample(made, min(2, len(made)))))
        if one_in(2, dice) and all(leaves(union) - leaves(other) for other in made):  # a part of none by accident
            made.append(union)
    return tuple(made), members_of(made, given)


def is_part(domain: Domain, full: Domain) -> bool:
    """Whether a domain is another, or stands in its declaration, or in that of a part."""
    return domain == full or any(is_part(domain, part) for part in full.parts)


def make_predicates(dice: Random, over: tuple[Domain, ...]) -> tuple[Predicate, ...]:
    """One to four predicates of one to three positions, some functional, closed, or closed over a part."""
    made = []
    for i in range(dice.choice((2, 1, 3, 2, 4))):
        domains = tuple(dice.choice(over) for _ in range(dice.choice((2, 1, 2, 2, 3))))
        part = tuple(dice.choice([other for other in over if is_part(other, domain)]) for domain in domains)
        closed = one_in(5, dice)
        parts = (part,) if not closed and one_in(5, dice) else ()
        made.append(Predicate(f"p{i}", domains, closed, parts, functional=i == 1 and len(domains) > 1))
    return tuple(made)


def given_members(over: tuple[Domain, ...], members: Members) -> Members:
    """The constants that the data must bring: of domains that are neither listed nor unions."""
    return {d.name: members[d.name] for d in over if d.listed is None and not d.parts}


def make_language(dice: Random) -> Language:
    over, members = make_domains(dice)
    return Language.build(over, make_predicates(dice, over), given_members(over, members))


def languages() -> SearchStrategy[Language]:
    return dice().map(make_language)


class Scope:
    """The variables of a rule while its atoms are made, each with the domain it was made for."""

    def __init__(self, dice: Random, predicates: tuple[Predicate, ...], members: Members) -> None:
        self.dice, self.predicates, self.members = dice, predicates, members
        self.domains: dict[str, Domain] = {}

    def term(self, domain: Domain) -> Term:
        """A variable that fits, old or new, or now and then a constant."""
        fitting = [name for name, own in self.domains.items() if is_part(own, domain)]
        constants = self.members[domain.name]
        if constants and one_in(9, self.dice):
            return Constant(self.dice.choice(constants))
        if fitting and (len(self.domains) == len(VARIABLES) or not one_in(3, self.dice)):
            return Variable(self.dice.choice(fitting))
        if len(self.domains) < len(VARIABLES):
            name = VARIABLES[len(self.domains)]
            self.domains[name] = self.dice.choice((domain, domain, *domain.parts))
            return Variable(name)
        return Constant(self.dice.choice(constants)) if constants else Variable(VARIABLES[0])  # may not fit

    def atom(self) -> Atom:
        predicate = self.dice.choice(self.predicates)
        return Atom(predicate.name, tuple(self.term(domain) for domain in predicate.domains))

    def literal(self) -> Formula:
        """An atom, one time in six negated."""
        atom = self.atom()
        return Not(atom) if one_in(6, self.dice) else atom

    def conjunction(self, make: Callable[[], Formula], most: int) -> Formula:
        """Some literals, all of which must hold; sometimes one of them stands there twice, or denied too."""
        parts = [make() for _ in range(self.dice.randint(1, most))]
        if one_in(12, self.dice):
            parts.append(self.dice.choice((parts[0], Not(parts[0]))))
        return parts[0] if len(parts) == 1 else And(tuple(parts))


def make_formula(dice: Random, atoms: list[Atom], depth: int = 3) -> Formula:
    """Any formula over these atoms: every connective, nested."""
    if depth == 0 or one_in(3, dice):
        return dice.choice(atoms)
    parts = [make_formula(dice, atoms, depth - 1) for _ in range(dice.choice((2, 2, 3)))]
    first, second, *_ = parts
    forms = (
        Not(first),
        And(tuple(parts)),
        Or(tuple(parts)),
        Implies(first, second),
        Iff(first, second),
        Xor(first, second),
    )
    return dice.choice(forms)


def horn(scope: Scope) -> Formula:
    """`p & q -> r`, all atoms."""
    return Implies(scope.conjunction(scope.atom, 3), scope.atom())


def with_denials(scope: Scope) -> Formula:
    return Implies(scope.conjunction(scope.literal, 3), scope.atom())


def disjunctive(scope: Scope) -> Formula:
    """`p & q -> r | s`, or a consequent that joins, denies or implies."""
    body = scope.conjunction(scope.literal, 2)
    first, second = scope.atom(), scope.atom()
    return Implies(
        body, scope.dice.choice((Or((first, second)), And((first, second)), Not(first), Implies(first, second)))
    )


def of_any_form(scope: Scope) -> Formula:
    """Any formula over a few atoms: iff, xor, disjunctive bodies, a lone atom."""
    return make_formula(scope.dice, [scope.atom() for _ in range(scope.dice.randint(1, 3))])


Form = Callable[[Scope], Formula]
FORMS: tuple[Form | None, ...] = (horn, horn, with_denials, with_denials, disjunctive, of_any_form, None)


def make_rule(dice: Random, name: str, theory: Theory, members: Members, forms: tuple[Form | None, ...]) -> Rule | None:
    """One rule over the theory's predicates; the form None is an implicit rule; None where it came out ill-typed."""
    scope = Scope(dice, theory.predicates, members)
    form = dice.choice(forms)
    if form is None:
        rule = Rule(name, None, tuple(dict.fromkeys(scope.atom() for _ in range(dice.randint(1, 3)))))
    else:
        formula = form(scope)
        rule = Rule(name, formula, tuple(atoms_of_formula(formula)))
    return well_typed(dice, theory, rule, scope.domains, members)


def well_typed(dice: Random, theory: Theory, rule: Rule, made_for: dict[str, Domain], members: Members) -> Rule | None:
    """The rule with annotations where they are needed (and sometimes where they are not), and guards."""
    names = variables_of(rule)
    types = []
    for name in names:
        places = domains_of(theory, rule, name)
        if not all(is_part(made_for[name], place) for place in places):
            return None
        is_inferred = any(all(is_part(place, other) for other in places) for place in places)
        if not is_inferred or one_in(4, dice):
            types.append((name, made_for[name].name))
    rule = replace(rule, types=tuple(types))
    if not names or not one_in(4, dice):
        return rule
    left = dice.choice(names)
    constants = members[domain_of(theory, rule, left).name]
    rights = [Variable(other) for other in names if other != left] + [Constant(name) for name in constants]
    return replace(rule, guards=(Unequal(Variable(left), dice.choice(rights)),)) if rights else rule


def is_typed(theory: Theory, rule: Rule) -> bool:
    annotated = dict(rule.types)
    open_variables = [name for name in variables_of(rule) if name not in annotated]
    places = [domains_of(theory, rule, name) for name in open_variables]
    return all(any(all(is_part(one, other) for other in found) for one in found) for found in places)


def make_theory(dice: Random, forms: tuple[Form | None, ...] = FORMS, least: int = 0) -> tuple[Theory, Members]:
    over, members = make_domains(dice)
    theory = Theory(over, make_predicates(dice, over))
    number = least + dice.choice((2, 1, 3, 2, 3, 2, 3, 1, 3, 0))
    made = [make_rule(dice, f"r{j}", theory, members, forms) for j in range(number)]
    rules = [rule for rule in made if rule is not None]
    rules += [replace(rule, name=f"{rule.name}_again", types=(), guards=()) for rule in rules if one_in(6, dice)]
    return replace(theory, rules=tuple(rule for rule in rules if is_typed(theory, rule))), members


def theories() -> SearchStrategy[Theory]:
    return dice().map(lambda dice: make_theory(dice)[0])
