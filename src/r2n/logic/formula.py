"""Terms, atoms and formulas; their truth on boolean arrays."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_, invert, or_, xor
from typing import Any, ClassVar

from r2n.errors import Location

KEYWORDS = frozenset({"domain", "predicate", "rule", "implicit", "closed", "open", "functional", "xor"})
PLAIN_NAME = re.compile(r"[^\W\d]\w*\Z")


def quoted(name: str) -> str:
    """The name in double quotes, with backslash escapes."""
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r") + '"'


def unescaped(text: str) -> str:
    """The name between two quotes, without its backslashes."""
    escapes = {"n": "\n", "t": "\t", "r": "\r"}
    return re.sub(r"\\(.)", lambda match: escapes.get(match.group(1), match.group(1)), text, flags=re.S)


def printed_name(name: str) -> str:
    """A name as a theory file writes it: quoted only where it has to be."""
    return name if PLAIN_NAME.match(name) and name not in KEYWORDS else quoted(name)


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable x."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant c, quoted in rules."""

    name: str

    def __str__(self) -> str:
        return quoted(self.name)


Term = Variable | Constant


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula of function-free first-order logic; its atoms, in order of first occurrence, are its positions.

    `combine` gives its value from those of its operands.
    """

    sign: ClassVar[str] = ""
    combine: ClassVar[Callable[..., Any]]

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
        """Its value if its atoms, position by position, have these: of any kind that has `&`, `|`, `^` and `~`."""
        value_of = dict(zip(self.atoms(), values, strict=True))

        def value(part: Formula) -> Any:
            if isinstance(part, Unequal):
                raise TypeError("Unequal has no truth")
            return value_of[part] if isinstance(part, Atom) else part.combine(*map(value, part.operands()))

        return value(self)

    def __str__(self) -> str:
        return f" {self.sign} ".join(map(_operand, self.operands()))


@dataclass(frozen=True, slots=True)
class Atom(Formula):
    """P(t_1, ..., t_n); `where` is its location in the theory file."""

    predicate: str
    terms: tuple[Term, ...]
    where: Location | None = field(default=None, compare=False, repr=False)

    def atoms(self) -> tuple["Atom", ...]:
        """Itself."""
        return (self,)

    def __str__(self) -> str:
        name = "*" if self.predicate == "*" else printed_name(self.predicate)
        return f"{name}({', '.join(map(str, self.terms))})"


@dataclass(frozen=True, slots=True)
class Unequal(Formula):
    """The guard s != t: a condition on substitutions, not an atom."""

    left: Term
    right: Term

    def __str__(self) -> str:
        return f"{self.left} != {self.right}"


@dataclass(frozen=True, slots=True)
class Not(Formula):
    """!part."""

    combine = staticmethod(invert)
    part: Formula

    def operands(self) -> tuple[Formula, ...]:
        """The negated formula."""
        return (self.part,)

    def __str__(self) -> str:
        return f"!{_operand(self.part)}"


@dataclass(frozen=True, slots=True)
class _OfMany(Formula):
    parts: tuple[Formula, ...]

    def operands(self) -> tuple[Formula, ...]:
        return self.parts


class And(_OfMany):
    """part & part & ..."""

    __slots__, sign = (), "&"
    combine = staticmethod(lambda *truths: reduce(and_, truths))


class Or(_OfMany):
    """part | part | ..."""

    __slots__, sign = (), "|"
    combine = staticmethod(lambda *truths: reduce(or_, truths))


@dataclass(frozen=True, slots=True)
class Implies(Formula):
    """body -> head."""

    combine = staticmethod(lambda body, head: ~body | head)
    body: Formula
    head: Formula

    def operands(self) -> tuple[Formula, ...]:
        """The antecedent and the consequent."""
        return (self.body, self.head)

    def __str__(self) -> str:
        """As a theory file writes it; a conjunction needs no parentheses as a body, nor a disjunction as a head."""
        return " -> ".join(str(part) if isinstance(part, _OfMany) else _operand(part) for part in self.operands())


@dataclass(frozen=True, slots=True)
class _OfTwo(Formula):
    left: Formula
    right: Formula

    def operands(self) -> tuple[Formula, ...]:
        return (self.left, self.right)


class Iff(_OfTwo):
    """left <-> right."""

    __slots__, sign = (), "<->"
    combine = staticmethod(lambda left, right: ~(left ^ right))


class Xor(_OfTwo):
    """left xor right."""

    __slots__, sign = (), "xor"
    combine = staticmethod(xor)


def _operand(formula: Formula) -> str:
    """Printed with the parentheses that an operand of a connective needs."""
    return str(formula) if isinstance(formula, Atom | Not | Unequal) else f"({formula})"
