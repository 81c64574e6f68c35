"""Formulas by plain recursion on Python truth values: the second, obvious implementation of logic/formula.py."""

from itertools import product

from r2n.logic.formula import And, Atom, Constant, Formula, Iff, Implies, Not, Or, Variable, Xor


def atoms(formula: Formula) -> list[Atom]:
    match formula:
        case Atom():
            return [formula]
        case Not(part):
            return atoms(part)
        case And(parts) | Or(parts):
            inside = [atoms(part) for part in parts]
        case Implies(left, right) | Iff(left, right) | Xor(left, right):
            inside = [atoms(left), atoms(right)]
        case _:
            raise TypeError(f"no formula: {formula!r}")
    found: list[Atom] = []
    for more in inside:
        for atom in more:
            if atom not in found:
                found.append(atom)
    return found


def holds(formula: Formula, truth: dict[Atom, bool]) -> bool:
    match formula:
        case Atom():
            return truth[formula]
        case Not(part):
            return not holds(part, truth)
        case And(parts):
            return all(holds(part, truth) for part in parts)
        case Or(parts):
            return any(holds(part, truth) for part in parts)
        case Implies(body, head):
            return not holds(body, truth) or holds(head, truth)
        case Iff(left, right):
            return holds(left, truth) == holds(right, truth)
        case Xor(left, right):
            return holds(left, truth) != holds(right, truth)
    raise TypeError(f"no formula: {formula!r}")


def truth_table(formula: Formula) -> list[tuple[tuple[bool, ...], bool]]:
    """Every assignment of the formula's atoms, with the truth of the formula."""
    positions = atoms(formula)
    rows = product([False, True], repeat=len(positions))
    return [(row, holds(formula, dict(zip(positions, row, strict=True)))) for row in rows]


def conjuncts(formula: Formula) -> list[Formula]:
    """The parts of a conjunction, however it is nested; a formula that is no conjunction is its only part."""
    if isinstance(formula, And):
        return [inner for part in formula.parts for inner in conjuncts(part)]
    return [formula]


def literals(formula: Formula | None) -> list[tuple[Atom, bool]]:
    """The body: literals whose conjunction is the antecedent, or none where the formula has no such antecedent."""
    if not isinstance(formula, Implies):
        return []
    body: list[tuple[Atom, bool]] = []
    for part in conjuncts(formula.body):
        if isinstance(part, Atom):
            literal = (part, True)
        elif isinstance(part, Not) and isinstance(part.part, Atom):
            literal = (part.part, False)
        else:
            return []
        if literal not in body:
            body.append(literal)
    return body


def variables(atom: Atom) -> set[str]:
    return {term.name for term in atom.terms if isinstance(term, Variable)}


def ground(atom: Atom, substitution: dict[str, str]) -> tuple[str, ...]:
    """The ground atom, as the predicate's name followed by the constants' names."""
    constants = [t.name if isinstance(t, Constant) else substitution[t.name] for t in atom.terms]
    return (atom.predicate, *constants)
