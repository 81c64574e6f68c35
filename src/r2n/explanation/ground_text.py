"""A trained network, explained: ground rules as text."""

from collections.abc import Mapping, Sequence

from r2n.logic.formula import And, Atom, Formula, Or, Variable
from r2n.logic.theory import Rule


def ground_text(rule: Rule, names: Sequence[str]) -> str:
    """`neighborOf(italy, france) & locatedIn(italy, europe) -> locatedIn(france, europe)`, by its atoms' names."""
    if rule.formula is None:
        return f"[{', '.join(dict.fromkeys(names))}]"  # a reciprocal has the name of what it says
    return str(_named(rule.formula, dict(zip(rule.atoms, names, strict=True))))


def _named(formula: Formula, names: Mapping[Atom, str]) -> Formula:
    """The formula with a name in the place of each atom."""
    if isinstance(formula, Atom):
        return _Named(names[formula], (Variable("x"),))
    if isinstance(formula, And | Or):
        return type(formula)(tuple(_named(part, names) for part in formula.parts))
    return type(formula)(*(_named(part, names) for part in formula.operands()))


class _Named(Atom):
    """An atom that is printed by its name."""

    def __str__(self) -> str:
        return self.predicate
