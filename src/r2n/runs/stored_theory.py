"""Predictions -> a run: a theory and its domains and predicates as records that JSON holds, and back, for a run folder.

Not as the text of a theory file: a listed domain of 100,000 constants would be a line longer than the parser takes, a
thousand rules would take it a second, and the variables of other systems (`x-1`) it does not read. A variable is its
name, a constant a list of its name; where an atom stood in the theory file is not kept.
"""

from collections.abc import Callable, Sequence
from typing import Any

from r2n.logic.formula import And, Atom, Constant, Formula, Iff, Implies, Not, Or, Term, Unequal, Variable, Xor
from r2n.logic.language import Domain, Predicate
from r2n.logic.theory import Rule, Theory

_NAMES: dict[type[Formula], str] = {Not: "not", And: "and", Or: "or", Implies: "implies", Iff: "iff", Xor: "xor"}
_CONNECTIVES: dict[str, Callable[..., Formula]] = {
    "not": Not,
    "and": lambda *parts: And(parts),
    "or": lambda *parts: Or(parts),
    "implies": Implies,
    "iff": Iff,
    "xor": Xor,
}
Signature = tuple[tuple[Domain, ...], tuple[Predicate, ...]]
"""Domains and predicates, as a theory and a language have them."""


def theory_record(theory: Theory) -> dict[str, Any]:
    """All of a theory but where it was read."""
    rules = [_rule_record(rule) for rule in theory.rules]
    return {"signature": signature_record(theory.domains, theory.predicates), "rules": rules}


def theory_of(record: dict[str, Any], source: str | None) -> Theory:
    """The theory of a record."""
    domains, predicates = signature_of(record["signature"])
    return Theory(domains, predicates, tuple(_rule_of(rule) for rule in record["rules"]), source)


def signature_record(domains: Sequence[Domain], predicates: Sequence[Predicate]) -> dict[str, Any]:
    """Domains and predicates; every domain is written once, parts before what they are parts of, and then numbered."""
    numbers: dict[Domain, int] = {}
    written: list[list[Any]] = []

    def number(domain: Domain) -> int:
        if domain not in numbers:
            written.append([domain.name, domain.listed, [number(part) for part in domain.parts]])
            numbers[domain] = len(numbers)
        return numbers[domain]

    declared = [number(domain) for domain in domains]
    records = [
        {
            "name": predicate.name,
            "domains": [number(domain) for domain in predicate.domains],
            "closed": predicate.closed,
            "closed_parts": [[number(domain) for domain in part] for part in predicate.closed_parts],
            "reciprocal_of": predicate.reciprocal_of,
        }
        for predicate in predicates
    ]
    return {"written": written, "domains": declared, "predicates": records}


def signature_of(record: dict[str, Any]) -> Signature:
    """The domains and predicates of a record."""
    made: list[Domain] = []
    for name, listed, parts in record["written"]:
        made.append(Domain(name, None if listed is None else tuple(listed), tuple(made[i] for i in parts)))
    predicates = tuple(
        Predicate(
            each["name"],
            tuple(made[i] for i in each["domains"]),
            each["closed"],
            tuple(tuple(made[i] for i in part) for part in each["closed_parts"]),
            each["reciprocal_of"],
        )
        for each in record["predicates"]
    )
    return tuple(made[i] for i in record["domains"]), predicates


def _rule_record(rule: Rule) -> dict[str, Any]:
    return {
        "name": rule.name,
        "formula": None if rule.formula is None else _formula_record(rule.formula),
        "atoms": [_formula_record(atom) for atom in rule.atoms],
        "guards": [_formula_record(guard) for guard in rule.guards],
        "types": rule.types,
        "weight": rule.weight,
    }


def _rule_of(record: dict[str, Any]) -> Rule:
    return Rule(
        record["name"],
        None if record["formula"] is None else _formula_of(record["formula"]),
        tuple(_atom_of(*atom[1:]) for atom in record["atoms"]),
        tuple(_guard_of(*guard[1:]) for guard in record["guards"]),
        tuple((variable, domain) for variable, domain in record["types"]),
        record["weight"],
    )


def _formula_record(formula: Formula) -> list[Any]:
    match formula:
        case Atom():
            return ["atom", formula.predicate, [_term_record(term) for term in formula.terms]]
        case Unequal():
            return ["unequal", _term_record(formula.left), _term_record(formula.right)]
        case _:
            return [_NAMES[type(formula)], *map(_formula_record, formula.operands())]


def _formula_of(record: list[Any]) -> Formula:
    kind, *rest = record
    if kind == "atom":
        return _atom_of(*rest)
    if kind == "unequal":
        return _guard_of(*rest)
    return _CONNECTIVES[kind](*map(_formula_of, rest))


def _atom_of(predicate: str, terms: list[Any]) -> Atom:
    return Atom(predicate, tuple(_term_of(term) for term in terms))


def _guard_of(left: Any, right: Any) -> Unequal:
    return Unequal(_term_of(left), _term_of(right))


def _term_record(term: Term) -> str | list[str]:
    return term.name if isinstance(term, Variable) else [term.name]


def _term_of(record: str | list[str]) -> Term:
    return Variable(record) if isinstance(record, str) else Constant(record[0])
