"""Symbols: rules as other systems write them -> Theory (predicates and domains then come with the data).

One rule a line; blank lines and lines that begin with `#`, `%` or `//` are passed over. Understood are

    r0:0.8:p(x,y), q(y,z) -> h(x,z)          id and weight may be missing
    12<TAB>10<TAB>0.83<TAB>h(X,Y) <= p(X,A), q(A,Y)      AnyBURL: upper case is a variable
    h(X,Y) :- p(X,Z), q(Z,Y).                 Prolog: upper case is a variable
    ?a p ?b  ?b q ?c  => ?a h ?c              AMIE: variables begin with ?
    1.5 !p(x) v h(x)                          Markov logic (clauses.py): lower case is a variable
    1.5 p(x) ^ q(x) => h(x)
"""

import re

from r2n.errors import Location, TheoryError
from r2n.logic.clauses import clause_formula, refuse_declaration, weight_in_front
from r2n.logic.formula import And, Atom, Constant, Formula, Implies, Term, Variable
from r2n.logic.theory import Rule, Theory

# What repeats is taken whole (++, *+), so that a long line is read once, whatever is wrong with it.
_ATOM = re.compile(r"\s*+([^\s(),]++(?:\s++[^\s(),]++)*+)\s*+\(([^()]*+)\)\s*+")
_TITLE = re.compile(r"([^:,()]++):\s*+([-+0-9.eE]++|nan|inf)\s*+:(?=.*->)")
_BARE_TITLE = re.compile(r"([^:,()]++):(?=[^:].*->)")
_CLAUSE = re.compile(r"[!~]|[-+]?[.\d]|.*\)\s*(?:[vV|]\s|=>)|.*\)\s*\.?$|\w+\s*=\s*\{")
_FORMS = (
    "id:weight:body -> head, AnyBURL's `head <= body`, `head :- body.`, AMIE's `body => head`, or a clause"
    " `!body(x) v head(x)`"
)


COMMENTS = ("#", "%", "//")


def parse_horn_rules(text: str, source: str | None = None) -> Theory:
    """The theory of a file of Horn rules; unnamed rules are called r0, r1, ... by their order."""
    rules: dict[str, Rule] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        stripped = line.strip()
        if stripped and not stripped.startswith(COMMENTS):
            where = Location(source, number, 1, line.rstrip("\r"))
            try:
                rule = _parse_line(stripped, f"r{len(rules)}", where)
            except TheoryError as error:  # the rule itself does not know where it stands
                raise TheoryError(error.what, where=error.where or where, hint=error.hint) from None
            if rule.name in rules:
                raise TheoryError(f"rule '{rule.name}' is declared twice", where=where, hint="give it another id")
            rules[rule.name] = rule
    return Theory(rules=tuple(rules.values()), source=source)


def _parse_line(line: str, name: str, where: Location) -> Rule:
    if "=>" in line and "?" in line:
        body, head = line.split("=>", 1)
        return _rule(name, _amie_atoms(body, where), _amie_atoms(head.split("\t")[0], where), None, where)
    if "<=" in line and "<=>" not in line:
        weight, clause = _anyburl_confidence(line, where)
        head, body = clause.split("<=", 1)
        return _rule(name, _atoms(body, where, upper=True), _atoms(head, where, upper=True), weight, where)
    if ":-" in line:
        head, body = line.rstrip(" .").split(":-", 1)
        return _rule(name, _atoms(body, where, upper=True), _atoms(head, where, upper=True), None, where)
    if "->" in line:
        return _titled(line, name, where)
    weight, clause = weight_in_front(line.split(" //")[0])
    if _CLAUSE.match(line):
        if weight is None:
            refuse_declaration(clause, where)
        return Rule.explicit(name, clause_formula(clause, where), weight=weight)
    raise TheoryError("this is not a rule", where=where, hint=f"known forms: {_FORMS}")


def _titled(line: str, name: str, where: Location) -> Rule:
    """`id:weight:body -> head`, where id or both may be missing; the weight may also stand in front, alone."""
    weight, title = None, _TITLE.match(line)
    if title is not None:
        name, weight = title.group(1).strip(), _weight(title.group(2), where)
    else:
        title = _BARE_TITLE.match(line)
        name = title.group(1).strip() if title is not None else name
    rest = line[title.end() if title else 0 :]
    if title is None:
        weight, rest = weight_in_front(rest)
    body, head = rest.split("->", 1)
    return _rule(name, _atoms(body, where, upper=False), _atoms(head, where, upper=False), weight, where)


def _weight(text: str, where: Location) -> float:
    try:
        return float(text)
    except ValueError as error:
        hint = "a weight is written 0.8; id:weight:body -> head"
        raise TheoryError(f"the weight '{text[:30]}' is no number", where=where, hint=hint) from error


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


def _atoms(text: str, where: Location, *, upper: bool) -> list[Atom]:
    """Atoms `p(t, ...)` apart by commas; `upper`: names in upper case are variables, else all are."""
    atoms: list[Atom] = []
    end, last = 0, len(text.rstrip())
    while end < last:
        match = _ATOM.match(text, end)
        if match is None:
            near = text[end : end + 30].strip()
            raise TheoryError(f"an atom was expected at '{near}'", where=where, hint="atoms are written p(x, y)")
        terms = tuple(_term(term.strip(), where, upper) for term in match.group(2).split(","))
        atoms.append(Atom(match.group(1), terms, where))
        end = match.end()
        if end < last:
            if text[end] not in ",&":
                raise TheoryError(f"a comma was expected before '{text[end : end + 30]}'", where=where)
            end += 1
            if end >= last:
                raise TheoryError("an atom was expected after the comma", where=where, hint="take the comma away")
    return atoms


def _term(text: str, where: Location, upper: bool) -> Term:
    if not text:
        raise TheoryError("an atom has an empty term", where=where, hint="atoms are written p(x, y)")
    if text[0] in "'\"" and text[-1] == text[0] and len(text) > 1:
        return Constant(text[1:-1])
    is_variable = text[0].isupper() or text[0] == "_" if upper else True
    return Variable(text) if is_variable else Constant(text)


def _amie_atoms(text: str, where: Location) -> list[Atom]:
    words = text.split()
    if not words or len(words) % 3:
        raise TheoryError("AMIE atoms are `subject predicate object`, three words each", where=where)
    terms = [Variable(word[1:]) if word.startswith("?") else Constant(word) for word in words]
    return [Atom(words[i + 1], (terms[i], terms[i + 2]), where) for i in range(0, len(words), 3)]


def _rule(name: str, body: list[Atom], head: list[Atom], weight: float | None, where: Location) -> Rule:
    if len(head) != 1:
        raise TheoryError(f"a Horn rule has one head atom, this one has {len(head)}", where=where)
    if not body:
        return Rule.explicit(name, head[0], weight=weight)
    antecedent: Formula = body[0] if len(body) == 1 else And(tuple(body))
    return Rule.explicit(name, Implies(antecedent, head[0]), weight=weight)
