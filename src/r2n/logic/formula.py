"""Symbols: terms, atoms and formulas; their truth on boolean arrays, and the assignments that satisfy them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from r2n.errors import Location, TheoryError

KEYWORDS = frozenset({"domain", "predicate", "rule", "implicit", "closed", "open", "xor"})
PLAIN_NAME = re.compile(r"[^\W\d]\w*\Z")
MOST_ENUMERATED = 20


def quoted(name: str) -> str:
    """The name in double quotes, with backslash escapes."""
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r") + '"'


def printed_name(name: str) -> str:
    """A name as a theory file writes it: quoted only where it has to be."""
    return name if PLAIN_NAME.match(name) and name not in KEYWORDS else quoted(name)


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable x."""

    name: str

    def __str__(self) -> str:
        """As a theory file writes it."""
        return self.name


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant c, quoted in rules."""

    name: str

    def __str__(self) -> str:
        """As a theory file writes it."""
        return quoted(self.name)


Term = Variable | Constant


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula of function-free first-order logic; its atoms, in order of first occurrence, are its positions."""

    def atoms(self) -> tuple["Atom", ...]:
        """The distinct atoms in order of first occurrence."""
        return tuple(dict.fromkeys(atom for part in self.operands() for atom in part.atoms()))

    def operands(self) -> tuple["Formula", ...]:
        """The formulas that this one connects."""
        return ()

    def evaluate(self, truths: Any) -> Any:
        """Truth under `truths`, a boolean array (..., positions) of numpy or torch; the result is (...)."""
        if "bool" not in str(getattr(truths, "dtype", None)):
            raise TypeError("evaluate takes a boolean array (..., positions): ~True is -2 in Python")
        return self.interpreted([truths[..., i] for i in range(len(self.atoms()))])

    def interpreted(self, values: Sequence[Any]) -> Any:
        """Its value where its atoms, position by position, have these: of any kind that knows `&`, `|`, `^` and `~`."""
        return self._truth(dict(zip(self.atoms(), values, strict=True)))

    def satisfying_assignments(self) -> np.ndarray:
        """All assignments that make the formula true; bool (assignments, positions), in binary order."""
        positions = len(self.atoms())
        if positions > MOST_ENUMERATED:
            raise TheoryError(f"a formula of {positions} atoms has too many assignments to list")
        numbers = np.arange(2**positions)[:, None]
        assignments = (numbers >> np.arange(positions)[::-1]) & 1 == 1
        return assignments[self.evaluate(assignments)]

    def _truth(self, truth_of: dict["Atom", Any]) -> Any:
        raise TypeError(f"{type(self).__name__} has no truth")


@dataclass(frozen=True, slots=True)
class Atom(Formula):
    """P(t_1, ..., t_n); `where` remembers its place in the theory file."""

    predicate: str
    terms: tuple[Term, ...]
    where: Location | None = field(default=None, compare=False, repr=False)

    def atoms(self) -> tuple["Atom", ...]:
        """Itself."""
        return (self,)

    def _truth(self, truth_of: dict["Atom", Any]) -> Any:
        return truth_of[self]

    def __str__(self) -> str:
        """As a theory file writes it."""
        name = "*" if self.predicate == "*" else printed_name(self.predicate)
        return f"{name}({', '.join(map(str, self.terms))})"


@dataclass(frozen=True, slots=True)
class Unequal(Formula):
    """The guard s != t: a condition on substitutions, not an atom."""

    left: Term
    right: Term
    where: Location | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        """As a theory file writes it."""
        return f"{self.left} != {self.right}"


@dataclass(frozen=True, slots=True)
class Not(Formula):
    """!part."""

    part: Formula

    def operands(self) -> tuple[Formula, ...]:
        """The formula that is denied."""
        return (self.part,)

    def _truth(self, truth_of: dict[Atom, Any]) -> Any:
        return ~self.part._truth(truth_of)

    def __str__(self) -> str:
        """As a theory file writes it."""
        return f"!{_operand(self.part)}"


@dataclass(frozen=True, slots=True)
class And(Formula):
    """part & part & ..."""

    parts: tuple[Formula, ...]

    def operands(self) -> tuple[Formula, ...]:
        """The conjuncts."""
        return self.parts

    def _truth(self, truth_of: dict[Atom, Any]) -> Any:
        truth = self.parts[0]._truth(truth_of)
        for part in self.parts[1:]:
            truth = truth & part._truth(truth_of)
        return truth

    def __str__(self) -> str:
        """As a theory file writes it."""
        return " & ".join(map(_operand, self.parts))


@dataclass(frozen=True, slots=True)
class Or(Formula):
    """part | part | ..."""

    parts: tuple[Formula, ...]

    def operands(self) -> tuple[Formula, ...]:
        """The disjuncts."""
        return self.parts

    def _truth(self, truth_of: dict[Atom, Any]) -> Any:
        truth = self.parts[0]._truth(truth_of)
        for part in self.parts[1:]:
            truth = truth | part._truth(truth_of)
        return truth

    def __str__(self) -> str:
        """As a theory file writes it."""
        return " | ".join(map(_operand, self.parts))


@dataclass(frozen=True, slots=True)
class Implies(Formula):
    """body -> head."""

    body: Formula
    head: Formula

    def operands(self) -> tuple[Formula, ...]:
        """The antecedent and the consequent."""
        return (self.body, self.head)

    def _truth(self, truth_of: dict[Atom, Any]) -> Any:
        return ~self.body._truth(truth_of) | self.head._truth(truth_of)

    def __str__(self) -> str:
        """As a theory file writes it; a conjunction needs no parentheses as a body, nor a disjunction as a head."""
        body = str(self.body) if isinstance(self.body, And | Or) else _operand(self.body)
        head = str(self.head) if isinstance(self.head, And | Or) else _operand(self.head)
        return f"{body} -> {head}"


@dataclass(frozen=True, slots=True)
class Iff(Formula):
    """left <-> right."""

    left: Formula
    right: Formula

    def operands(self) -> tuple[Formula, ...]:
        """Both sides."""
        return (self.left, self.right)

    def _truth(self, truth_of: dict[Atom, Any]) -> Any:
        return ~(self.left._truth(truth_of) ^ self.right._truth(truth_of))

    def __str__(self) -> str:
        """As a theory file writes it."""
        return f"{_operand(self.left)} <-> {_operand(self.right)}"


@dataclass(frozen=True, slots=True)
class Xor(Formula):
    """left xor right."""

    left: Formula
    right: Formula

    def operands(self) -> tuple[Formula, ...]:
        """Both sides."""
        return (self.left, self.right)

    def _truth(self, truth_of: dict[Atom, Any]) -> Any:
        return self.left._truth(truth_of) ^ self.right._truth(truth_of)

    def __str__(self) -> str:
        """As a theory file writes it."""
        return f"{_operand(self.left)} xor {_operand(self.right)}"


def _operand(formula: Formula) -> str:
    """Printed so that it can stand beside any connective."""
    return str(formula) if isinstance(formula, Atom | Not | Unequal) else f"({formula})"
