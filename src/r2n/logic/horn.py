"""Rules of other systems: Horn clauses as AMIE, AnyBURL and rule lists write them, and clauses of Markov logic."""

import re
from dataclasses import dataclass

from r2n.errors import Location, TheoryError
from r2n.logic.formula import And, Atom, Constant, Formula, Implies, Not, Or, Term, Variable
from r2n.logic.theory import Rule, Theory

# What repeats is taken in full (++, *+), so that a long line is read once, whatever is wrong with it.
_WEIGHT = re.compile(r"\s*+([-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?)\s++(?=\S)")
_DECLARED = re.compile(r"\s*[^\s(),!~]+\s*\(\s*[a-z_]\w*!?\s*(?:,\s*[a-z_]\w*!?\s*)*\)\s*$")
_DOMAIN = re.compile(r"\s*\w+\s*=\s*\{.*\}\s*$")
_TITLE = re.compile(r"([^:,()]++):\s*+([-+0-9.eE]++|nan|inf)\s*+:(?=.*->)")
_BARE_TITLE = re.compile(r"([^:,()]++):(?=[^:].*->)")
_CLAUSE = re.compile(r"[!~]|[-+]?[.\d]|.*\)\s*(?:[vV|]\s|=>)|.*\)\s*\.?$|\w+\s*=\s*\{")
_CLAUSE_LITERAL = r"""\s*+([!~]?)\s*+([^\s(),!~|^&"'][^\s(),]*+|"[^"]*+"|'[^']*+')\s*+\(([^()]*+)\)\s*+"""
_CLAUSE_TERM = r"""\s*("[^"]*"|'[^']*'|[\w./:-]+)\s*$"""
_RULE_LITERAL = r"\s*+()([^\s(),]++(?:\s++[^\s(),]++)*+)\s*+\(([^()]*+)\)\s*+"
_FORMS = (
    "id:weight:body -> head, AnyBURL's `head <= body`, `head :- body.`, AMIE's `body => head`, or a clause"
    " `!body(x) v head(x)`"
)
COMMENTS = ("#", "%", "//")


@dataclass(frozen=True, slots=True)
class _Notation:
    """How literals are written: what is between two of them, and which terms are variables."""

    literal: str
    separator: str
    words: str
    variables: str  # begins a variable, besides _
    term: str = r"\s*\S"


_BODY = _Notation(_CLAUSE_LITERAL, r"[,&^]", "',' or '^'", "lower", _CLAUSE_TERM)
_HEAD = _Notation(_CLAUSE_LITERAL, r"[vV](?=[\s!~]|$)|\|", "'v'", "lower", _CLAUSE_TERM)
_PROLOG = _Notation(_RULE_LITERAL, r"[,&]", "a comma", "upper")
_LISTED = _Notation(_RULE_LITERAL, r"[,&]", "a comma", "any")

Literal = tuple[bool, Atom]
"""An atom, and whether it is not negated."""


def parse_horn_rules(text: str, source: str | None = None) -> Theory:
    """The theory of a file of Horn rules; unnamed rules are called r0, r1, ... by their order."""
    rules: dict[str, Rule] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        stripped = line.strip()
        if stripped and not stripped.startswith(COMMENTS):
            where = Location(source, number, 1, line.rstrip("\r"))
            try:
                rule = _parse_line(stripped, f"r{len(rules)}", where)
            except TheoryError as error:  # the rule itself does not know its location
                raise TheoryError(error.what, where=error.where or where, hint=error.hint) from None
            if rule.name in rules:
                raise TheoryError(f"rule '{rule.name}' is declared twice", where=where, hint="give it another id")
            rules[rule.name] = rule
    return Theory(rules=tuple(rules.values()), source=source)


def _parse_line(line: str, name: str, where: Location) -> Rule:
    if "=>" in line and "?" in line:
        body, head = line.split("=>", 1)
        return _rule(name, _amie_atoms(body, where), _amie_atoms(head.split("\t")[0], where), None, where)
    is_anyburl = "<=" in line and "<=>" not in line
    if is_anyburl or ":-" in line:
        weight, clause = _anyburl_confidence(line, where) if is_anyburl else (None, line.rstrip(" ."))
        head, body = clause.split("<=" if is_anyburl else ":-", 1)
        return _rule(name, _atoms(body, where, _PROLOG), _atoms(head, where, _PROLOG), weight, where)
    if "->" in line:
        return _titled(line, name, where)
    weight, clause = _weight_in_front(line.split(" //")[0])
    if not _CLAUSE.match(line):
        raise TheoryError("this is not a rule", where=where, hint=f"known forms: {_FORMS}")
    kind = "predicate" if _DECLARED.match(clause) else "domain" if _DOMAIN.match(clause) else None
    if weight is None and kind is not None:
        raise TheoryError(
            f"this looks like the declaration of a {kind}",
            where=where,
            hint="take it out: predicates and constants come from the data; or write a theory.r2n, which declares"
            " them. (A rule that is one atom has a weight in front, or a dot behind)",
        )
    return Rule.explicit(name, _clause_formula(clause, where), weight=weight)


def _weight_in_front(line: str) -> tuple[float | None, str]:
    """The weight that a line begins with, if it does, and the rest."""
    found = _WEIGHT.match(line)
    return (None, line) if found is None else (float(found.group(1)), line[found.end() :])


def _clause_formula(line: str, where: Location) -> Formula:
    """The formula of a clause, or of a conjunction that implies a clause (`=>`)."""
    text = line.rstrip().removesuffix(".")
    if "<=>" in text:
        raise TheoryError("'<=>' cannot be read here", where=where, hint="write two rules, one for each direction")
    given, implies, concluded = text.rpartition("=>")
    body = _literals(given, where, _BODY) if implies else []
    head = _literals(concluded, where, _HEAD)
    terms = [term for _, atom in (*body, *head) for term in atom.terms]
    capitals = [t.name for t in terms if isinstance(t, Constant) and len(t.name) == 1 and t.name.isupper()]
    if capitals and not any(isinstance(term, Variable) for term in terms):  # as constants, a rule about nothing
        hint = "write variables in lower case, as Markov logic does; or the rule as Prolog: h(X) :- p(X)."
        raise TheoryError(f"there is no variable in it: '{capitals[0]}' is a constant here", where=where, hint=hint)
    if not implies and len(head) > 1:  # a clause is an implication, if it has a negated atom to begin from
        body = [(True, atom) for positive, atom in head if not positive]
        head = [literal for literal in head if literal[0]]
        if not head:
            head = [(False, body.pop()[1])]
    return Implies(_connected(And, body), _connected(Or, head)) if body else _connected(Or, head)


def _connected(connective: type[And | Or], literals: list[Literal]) -> Formula:
    parts = tuple(atom if positive else Not(atom) for positive, atom in literals)
    return parts[0] if len(parts) == 1 else connective(parts)


def _literals(text: str, where: Location, notation: _Notation) -> list[Literal]:
    """Literals apart by a separator."""
    found: list[Literal] = []
    end, last = 0, len(text.rstrip())
    while True:
        match = re.compile(notation.literal).match(text, end)
        if match is None:
            near = f"at '{text[end : end + 30].strip()}'" if text[end:].strip() else "at the end"
            raise TheoryError(f"an atom was expected {near}", where=where, hint="atoms are written p(x, y)")
        terms = tuple(_term(term, where, notation) for term in match.group(3).split(","))
        name = match.group(2)
        found.append(
            (not match.group(1), Atom(name if notation.variables != "lower" else name.strip("\"'"), terms, where))
        )
        end = match.end()
        if end >= last:
            return found
        between = re.compile(notation.separator).match(text, end)
        if between is None:
            raise TheoryError(f"{notation.words} was expected before '{text[end : end + 30]}'", where=where)
        end = between.end()


def _atoms(text: str, where: Location, notation: _Notation) -> list[Atom]:
    return [atom for _, atom in _literals(text, where, notation)] if text.strip() else []


def _term(text: str, where: Location, notation: _Notation) -> Term:
    name = text.strip()
    if not re.match(notation.term, text):
        raise TheoryError(f"'{name}' is no term", where=where, hint="a term is a variable, or a constant: p(x, y)")
    if name[0] in "'\"" and name[-1] == name[0] and len(name) > 1:
        return Constant(name[1:-1])
    begins_one = {"any": True, "upper": name[0].isupper(), "lower": name[0].islower()}[notation.variables]
    return Variable(name) if begins_one or name[0] == "_" else Constant(name)


def _titled(line: str, name: str, where: Location) -> Rule:
    """`id:weight:body -> head`, in which id or both may be missing; the weight may also stand in front, alone."""
    weight, title = None, _TITLE.match(line)
    try:
        weight = float(title.group(2)) if title is not None else None
    except ValueError as error:
        what, hint = f"the weight '{title and title.group(2)[:30]}' is no number", "id:weight:body -> head"
        raise TheoryError(what, where=where, hint=f"a weight is written 0.8; {hint}") from error
    title = title or _BARE_TITLE.match(line)
    if title is None:
        weight, line = _weight_in_front(line)
    else:
        name, line = title.group(1).strip(), line[title.end() :]
    body, head = line.split("->", 1)
    return _rule(name, _atoms(body, where, _LISTED), _atoms(head, where, _LISTED), weight, where)


def _anyburl_confidence(line: str, where: Location) -> tuple[float | None, str]:
    columns = line.split("\t")
    if len(columns) == 1:
        return None, line
    hint = "AnyBURL writes: predictions<TAB>support<TAB>confidence<TAB>head <= body"
    if not any("<=" in column for column in columns[3:4]):
        raise TheoryError("the rule does not stand in the fourth column", where=where, hint=hint)
    try:
        return float(columns[2]), columns[3]
    except ValueError as error:
        raise TheoryError("the confidence cannot be read", where=where, hint=hint) from error


def _amie_atoms(text: str, where: Location) -> list[Atom]:
    words = text.split()
    if not words or len(words) % 3:
        raise TheoryError("AMIE atoms are `subject predicate object`, three words each", where=where)
    terms = [Variable(word[1:]) if word.startswith("?") else Constant(word) for word in words]
    return [Atom(words[i + 1], (terms[i], terms[i + 2]), where) for i in range(0, len(words), 3)]


def _rule(name: str, body: list[Atom], head: list[Atom], weight: float | None, where: Location) -> Rule:
    if len(head) != 1:
        raise TheoryError(f"a Horn rule has one head atom, this one has {len(head)}", where=where)
    antecedent = _connected(And, [(True, atom) for atom in body]) if body else None
    return Rule.explicit(name, Implies(antecedent, head[0]) if antecedent else head[0], weight=weight)
