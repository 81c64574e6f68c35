"""A trained network, explained: clauses over the atoms of an implicit rule, as rules of their own."""

from collections.abc import Sequence
from itertools import permutations

from r2n.logic.formula import And, Atom, Formula, Implies, Not, Term, Variable
from r2n.logic.language import Domain
from r2n.logic.theory import Rule, Theory

MOST_RENAMED = 4  # variables: with more, clauses are compared by the names they have

Sign = bool
Signed = tuple[int, Sign]
"""A literal: the position of its atom in the implicit rule, and whether it stands undenied."""


def clause_rule(rule: Rule, body: Sequence[Signed], head: Signed, theory: Theory, name: str | None = None) -> Rule:
    """`a & !b -> c` over the atoms of an implicit rule, its variables over the domains that they have there.

    Of the guards those stay whose variables are all in the clause.
    """
    literals = [_literal(rule.atoms[position], sign) for position, sign in body]
    premise = literals[0] if len(literals) == 1 else And(tuple(literals))
    formula = Implies(premise, _literal(rule.atoms[head[0]], head[1]))
    made = Rule.explicit(name or rule.name, formula)
    there = set(made.variables)
    guards = tuple(
        guard
        for guard in rule.guards
        if all(term.name in there for term in (guard.left, guard.right) if isinstance(term, Variable))
    )
    domains = dict(zip(rule.variables, theory.variable_domains(rule), strict=True))
    types = [(v, domains[v].name) for v in made.variables if _inferred(made, v, theory) != domains[v]]
    return Rule.explicit(made.name, formula, guards, tuple(types))


def _literal(atom: Atom, sign: Sign) -> Formula:
    return atom if sign else Not(atom)


def _inferred(rule: Rule, variable: str, theory: Theory) -> Domain | None:
    """The domain of a variable as the rule's positions alone tell it; None where they do not."""
    domains = {predicate.name: predicate.domains for predicate in theory.predicates}
    places = [
        domain
        for atom in rule.atoms
        for term, domain in zip(atom.terms, domains[atom.predicate], strict=True)
        if term == Variable(variable)
    ]
    return next((domain for domain in places if all(map(domain.is_within, places))), None)


def canonical(rule: Rule, literals: Sequence[Signed], theory: Theory) -> object:
    """The same for clauses that differ in the names of their variables alone, or in the order of their literals."""
    domains = dict(zip(rule.variables, theory.variable_domains(rule), strict=True))
    atoms = [(rule.atoms[position], sign) for position, sign in literals]
    names = list(dict.fromkeys(t.name for atom, _ in atoms for t in atom.terms if isinstance(t, Variable)))
    if rule.guards or len(names) > MOST_RENAMED:
        return frozenset(atoms)
    forms = []
    for order in permutations(range(len(names))):
        number = dict(zip(names, order, strict=True))
        kinds = sorted((number[name], domains[name].name) for name in names)
        forms.append((tuple(sorted((a.predicate, _terms(a.terms, number), s) for a, s in atoms)), tuple(kinds)))
    return min(forms)


def _terms(terms: Sequence[Term], number: dict[str, int]) -> tuple[str, ...]:
    return tuple(f"?{number[term.name]}" if isinstance(term, Variable) else f"={term.name}" for term in terms)
