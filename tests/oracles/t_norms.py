"""Fuzzy logic by plain recursion on Python numbers: every connective as the textbook prints it, none from another."""

from math import exp

from r2n.logic.formula import And, Atom, Formula, Iff, Implies, Not, Or, Xor
from tests.oracles.formula import atoms


def conjunction(name: str, a: float, b: float) -> float:
    """How true `a and b` is."""
    return {"product": a * b, "goedel": min(a, b), "lukasiewicz": max(0.0, a + b - 1)}[name]


def disjunction(name: str, a: float, b: float) -> float:
    """How true `a or b` is."""
    return {"product": a + b - a * b, "goedel": max(a, b), "lukasiewicz": min(1.0, a + b)}[name]


def implication(name: str, a: float, b: float) -> float:
    return {"product": 1 - a + a * b, "goedel": max(1 - a, b), "lukasiewicz": min(1.0, 1 - a + b)}[name]


def fuzzy(name: str, formula: Formula, truth: dict[Atom, float]) -> float:
    """How true a formula is when its atoms are so true."""
    match formula:
        case Atom():
            return truth[formula]
        case Not(part):
            return 1 - fuzzy(name, part, truth)
        case And(parts) | Or(parts):
            join = conjunction if isinstance(formula, And) else disjunction
            found = fuzzy(name, parts[0], truth)
            for part in parts[1:]:
                found = join(name, found, fuzzy(name, part, truth))
            return found
        case Implies(body, head):
            return implication(name, fuzzy(name, body, truth), fuzzy(name, head, truth))
        case Iff(left, right) | Xor(left, right):
            a, b = fuzzy(name, left, truth), fuzzy(name, right, truth)
            both_ways = conjunction(name, implication(name, a, b), implication(name, b, a))
            return both_ways if isinstance(formula, Iff) else 1 - both_ways
    raise TypeError(f"no formula: {formula!r}")


def cost(
    name: str, rules: list[tuple[Formula | None, list[list[int]]]], logits: list[float], given: list[bool | None]
) -> float:
    """The mean of 1 - truth over all ground rules of rules with a formula; `given`: truths that are not predicted."""
    truths = [
        1 / (1 + exp(-logit)) if known is None else float(known) for logit, known in zip(logits, given, strict=True)
    ]
    costs = []
    for formula, ground_rules in rules:
        if formula is not None:
            for row in ground_rules:
                truth = {atom: truths[a] for atom, a in zip(atoms(formula), row, strict=True)}
                costs.append(1 - fuzzy(name, formula, truth))
    return sum(costs) / len(costs) if costs else 0.0
