"""Symbols: clauses and weighted formulas, as Markov logic programs write them -> the formula of a rule.

    1.5 !smokes(x) v !friends(x, y) v smokes(y)
    1.5 smokes(x) ^ friends(x, y) => smokes(y)

The weight, in front, and the dot of a hard rule may be missing. Lower case is a variable, as in these programs; what is
in upper case, quoted or a number is a constant. A clause becomes an implication, for grounding begins from bodies:
its denied atoms are the body and the others the head, or, where all are denied, the last of them is.
"""

import re

from r2n.errors import Location, TheoryError
from r2n.logic.formula import And, Atom, Constant, Formula, Implies, Not, Or, Term, Variable

# What repeats is taken whole (++, *+), so that a long line is read once, whatever is wrong with it.
_WEIGHT = re.compile(r"\s*+([-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?)\s++(?=\S)")
_LITERAL = re.compile(r"""\s*+([!~]?)\s*+([^\s(),!~|^&"'][^\s(),]*+|"[^"]*+"|'[^']*+')\s*+\(([^()]*+)\)\s*+""")
_OR, _AND = re.compile(r"(?:[vV](?=[\s!~]|$)|\|)"), re.compile(r"[,&^]")
_DECLARED = re.compile(r"\s*[^\s(),!~]+\s*\(\s*[a-z_]\w*!?\s*(?:,\s*[a-z_]\w*!?\s*)*\)\s*$")
_DOMAIN = re.compile(r"\s*\w+\s*=\s*\{.*\}\s*$")
_TERM = re.compile(r"""\s*("[^"]*"|'[^']*'|[\w./:-]+)\s*$""")

Literal = tuple[bool, Atom]
"""An atom, and whether it stands undenied."""


def weight_in_front(line: str) -> tuple[float | None, str]:
    """The weight that a line begins with, if it does, and the rest."""
    found = _WEIGHT.match(line)
    return (None, line) if found is None else (float(found.group(1)), line[found.end() :])


def clause_formula(line: str, where: Location) -> Formula:
    """The formula of a clause, or of a conjunction that implies a clause (`=>`)."""
    text = line.rstrip().removesuffix(".")
    if "<=>" in text:
        raise TheoryError("'<=>' cannot be read here", where=where, hint="write two rules, one for each direction")
    body, implies, head = text.rpartition("=>")
    body_literals = _literals(body, where, _AND, "',' or '^'") if implies else []
    literals = [*((not positive, atom) for positive, atom in body_literals), *_literals(head, where, _OR, "'v'")]
    _refuse_capitals(literals, where)
    return (
        _denied_first(literals) if not implies else Implies(_all(body_literals), _any(literals[len(body_literals) :]))
    )


def _denied_first(literals: list[Literal]) -> Formula:
    """A clause as an implication, where it has a denied atom to begin from."""
    if len(literals) == 1:
        return _signed(*literals[0])
    denied = [(True, atom) for positive, atom in literals if not positive]
    others = [(True, atom) for positive, atom in literals if positive]
    if not denied:
        return _any(others)
    if not others:
        denied, others = denied[:-1], [(False, denied[-1][1])]
    return Implies(_all(denied), _any(others))


def _signed(positive: bool, atom: Atom) -> Formula:
    return atom if positive else Not(atom)


def _all(literals: list[Literal]) -> Formula:
    parts = tuple(_signed(*literal) for literal in literals)
    return parts[0] if len(parts) == 1 else And(parts)


def _any(literals: list[Literal]) -> Formula:
    parts = tuple(_signed(*literal) for literal in literals)
    return parts[0] if len(parts) == 1 else Or(parts)


def _literals(text: str, where: Location, separator: re.Pattern[str], words: str) -> list[Literal]:
    """Literals apart by a separator."""
    found: list[Literal] = []
    end = 0
    while True:
        match = _LITERAL.match(text, end)
        if match is None:
            near = f"at '{text[end : end + 30].strip()}'" if text[end:].strip() else "at the end"
            raise TheoryError(
                f"an atom was expected {near}", where=where, hint="atoms are written p(x, y), or !p(x, y)"
            )
        terms = tuple(_term(term, where) for term in match.group(3).split(","))
        found.append((not match.group(1), Atom(match.group(2).strip("\"'"), terms, where)))
        end = match.end()
        if end >= len(text):
            return found
        between = separator.match(text, end)
        if between is None:
            raise TheoryError(f"{words} was expected before '{text[end : end + 30]}'", where=where)
        end = between.end()


def _term(text: str, where: Location) -> Term:
    found = _TERM.match(text)
    if found is None:
        raise TheoryError(f"'{text.strip()}' is no term", where=where, hint="a term is a variable, or a constant")
    name = found.group(1)
    if name[0] in "\"'":
        return Constant(name[1:-1])
    return Variable(name) if name[0].islower() or name[0] == "_" else Constant(name)


def refuse_declaration(line: str, where: Location) -> None:
    """A line without a weight that only names a predicate and its domains, or a domain and its constants."""
    kind = "predicate" if _DECLARED.match(line) else "domain" if _DOMAIN.match(line) else None
    if kind is not None:
        raise TheoryError(
            f"this looks like the declaration of a {kind}",
            where=where,
            hint="take it out: predicates and constants come from the data; or write a theory.r2n, which declares them."
            " (A rule that is one atom has a weight in front, or a dot behind)",
        )


def _refuse_capitals(literals: list[Literal], where: Location) -> None:
    """Prolog's variables in a clause: as constants they would make a rule of nobody."""
    terms = [term for _, atom in literals for term in atom.terms]
    names = [term.name for term in terms if isinstance(term, Constant)]
    capitals = [name for name in names if len(name) == 1 and name.isupper()]
    if capitals and not any(isinstance(term, Variable) for term in terms):
        raise TheoryError(
            f"there is no variable in it: '{capitals[0]}' is a constant here",
            where=where,
            hint="write variables in lower case, as Markov logic does; or the rule as Prolog: h(X) :- p(X).",
        )
