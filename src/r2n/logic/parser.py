"""Parsing: of theory files with lark, where each error names line and column, and of rules of other systems.

Those are Horn clauses as AMIE, AnyBURL and rule lists write them, and clauses of Markov logic.
"""

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken
from lark.exceptions import VisitError

from r2n.errors import Location, R2NError, TheoryError, nearest
from r2n.files import read_file
from r2n.logic.formula import (
    And,
    Atom,
    Constant,
    Formula,
    Iff,
    Implies,
    Not,
    Or,
    Term,
    Unequal,
    Variable,
    Xor,
    unescaped,
)
from r2n.logic.language import Domain, Predicate
from r2n.logic.theory import ANY_PREDICATE, Rule, Theory

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


MOST_NESTED = 100


def location_in(lines: list[str], source: str | None, line: int, column: int | None) -> Location:
    """A location in a text, given by its lines, with its own line as the excerpt."""
    excerpt = lines[line - 1].rstrip("\r") if 0 < line <= len(lines) else ""
    return Location(source, line, column, excerpt)


def _depth(formula: Formula) -> int:
    return 1 + max(map(_depth, formula.operands()), default=0)


def _connective(build: Callable[..., Formula]) -> Callable[["TheoryBuilder", list[Formula]], Formula]:
    """The method of a builder that connects formulas."""

    def connect(_: "TheoryBuilder", children: list[Formula]) -> Formula:
        formula = build(*children)
        if _depth(formula) > MOST_NESTED:
            what = f"the formula is nested more than {MOST_NESTED} deep"
            where = next((atom.where for atom in formula.atoms()), None)
            raise TheoryError(what, where=where, hint="split it into several rules")
        return formula

    return connect


class TheoryBuilder(Transformer[Token, Theory]):
    """Builds the theory while the text is parsed, bottom up: no tree, hence no recursion on deep input."""

    def __init__(self) -> None:
        """Compile the grammar: that takes longer than most theories, so a builder is reused."""
        super().__init__()
        grammar = files("r2n.logic").joinpath("theory.lark").read_text("utf-8")
        self._parser = Lark(grammar, parser="lalr", transformer=self)

    def build(self, text: str, source: str | None) -> Theory:
        """The theory of a text."""
        self.lines, self.source = text.split("\n"), source
        self.domains: dict[str, Domain] = {}
        self.predicates: list[Predicate] = []
        self.rules: dict[str, Rule] = {}  # by name: theories may have tens of thousands
        self.types: dict[str, str] = {}
        self._parser.parse(text)
        return Theory(tuple(self.domains.values()), tuple(self.predicates), tuple(self.rules.values()), self.source)

    def _at(self, token: Token) -> Location:
        return location_in(self.lines, self.source, token.line or 1, token.column)

    def name(self, children: list[Token]) -> Token:
        token = children[0]
        value = unescaped(token[1:-1]) if token.type == "STRING" else str(token)
        return Token.new_borrow_pos("NAME", value, token)

    # declarations

    def _declare(self, token: Token, domain: Domain) -> None:
        if domain.name in self.domains:
            raise TheoryError(f"domain '{domain.name}' is declared twice", where=self._at(token))
        self.domains[domain.name] = domain

    def open_domains(self, names: list[Token]) -> None:
        for token in names:
            self._declare(token, Domain(str(token)))

    def listed_domain(self, names: list[Token]) -> None:
        listed: dict[str, None] = {}
        for token in names[1:]:
            if str(token) in listed:
                raise TheoryError(f"constant '{token}' is listed twice", where=self._at(token))
            listed[str(token)] = None
        self._declare(names[0], Domain(str(names[0]), listed=tuple(listed)))

    def union_domain(self, names: list[Token]) -> None:
        parts = tuple(self._domain(token) for token in names[1:])
        self._declare(names[0], Domain(str(names[0]), parts=parts))

    def _domain(self, token: Token) -> Domain:
        if str(token) not in self.domains:
            hint = nearest(token, self.domains) or f"declare it above this line: domain {token}"
            raise TheoryError(f"unknown domain '{token}'", where=self._at(token), hint=hint)
        return self.domains[str(token)]

    def signature(self, children: list[Any]) -> list[Any]:
        return children

    closed_part = closed_parts = signature

    def open_world(self, _: list[None]) -> None:
        return None

    def closed_world(self, _: list[None]) -> bool:
        return True

    def functional(self, found: list[Token]) -> Token | None:
        return found[0] if found else None

    def predicate(self, children: list[Any]) -> None:
        (name, *tokens), closing, functional = children
        if any(predicate.name == name for predicate in self.predicates):
            raise TheoryError(f"predicate '{name}' is declared twice", where=self._at(name))
        if str(name) == ANY_PREDICATE:
            raise TheoryError("a predicate cannot be called '*'", where=self._at(name))
        domains = tuple(map(self._domain, tokens))
        parts = []
        for tokens in closing if isinstance(closing, list) else ():
            parts.append(tuple(map(self._domain, tokens)))
            if len(tokens) != len(domains) or not all(map(Domain.is_within, parts[-1], domains)):
                what = f"predicate '{name}': closed({', '.join(tokens)}) is no part of its domains"
                hint = f"name one domain for each position, each a part of {', '.join(d.name for d in domains)}"
                raise TheoryError(what, where=self._at(tokens[0]), hint=hint)
        if functional and len(domains) < 2:
            what = f"predicate '{name}' has one position, and a functional one has a value in its last position"
            hint = f"write: predicate {name}({', '.join(d.name for d in domains)}, VALUE) functional"
            raise TheoryError(what, where=self._at(functional), hint=hint)
        is_closed, is_functional = closing is True, functional is not None
        self.predicates.append(Predicate(str(name), domains, is_closed, tuple(parts), functional=is_functional))

    # terms and formulas

    def variable(self, children: list[Token]) -> Variable:
        return Variable(str(children[0]))

    def constant(self, children: list[Token]) -> Constant:
        return Constant(unescaped(children[0][1:-1]))

    def typed_variable(self, children: list[Token]) -> Variable:
        name, domain = str(children[0]), str(children[1])
        if self.types.setdefault(name, domain) != domain:
            what = f"variable {name} is annotated twice, as {self.types[name]} and as {domain}"
            raise TheoryError(what, where=self._at(children[0]))
        return Variable(name)

    def atom(self, children: list[Any]) -> Atom:
        return Atom(str(children[0]), tuple(children[1:]), self._at(children[0]))

    star = atom

    def guard(self, children: list[Variable | Constant]) -> Unequal:
        return Unequal(children[0], children[1])

    iff, xor, implies, deny = map(_connective, (Iff, Xor, Implies, Not))
    any_of, all_of = _connective(lambda *parts: Or(parts)), _connective(lambda *parts: And(parts))

    # rules

    def weight(self, children: list[Token]) -> float | None:
        return float(children[0]) if children else None

    def guards(self, children: list[Unequal]) -> tuple[Unequal, ...]:
        return tuple(children)

    def pattern(self, children: list[Atom]) -> tuple[Atom, ...]:
        return tuple(dict.fromkeys(children))

    def rule(self, children: list[Any]) -> None:
        name, weight, formula, guards = children
        if isinstance(formula, Implies):  # guards among the conjuncts of its body go to the others
            body = formula.body.parts if isinstance(formula.body, And) else (formula.body,)
            inner = tuple(part for part in body if isinstance(part, Unequal))
            if inner:
                guards, rest = (*inner, *guards), tuple(part for part in body if not isinstance(part, Unequal))
                body = rest[0] if len(rest) == 1 else And(rest)
                formula = Implies(body, formula.head) if rest else formula.head
        if _holds_guard(formula):
            what = f"rule '{name}': a guard must be a conjunct of the body, or stand behind the formula"
            raise TheoryError(what, where=self._at(name), hint=f"write: rule {name}: FORMULA, x != y")
        self._add(name, formula, formula.atoms(), guards, weight)

    def implicit(self, children: list[Any]) -> None:
        name, weight, atoms, guards = children
        self._add(name, None, atoms, guards, weight)

    def _add(self, name: Token, formula: Formula | None, atoms: Any, guards: Any, weight: float | None) -> None:
        if name in self.rules:
            raise TheoryError(f"rule '{name}' is declared twice", where=self._at(name))
        try:
            rule = Rule(str(name), formula, atoms, tuple(dict.fromkeys(guards)), tuple(self.types.items()), weight)
        except TheoryError as error:
            raise TheoryError(error.what, where=error.where or self._at(name), hint=error.hint) from None
        self.types.clear()
        self.rules[rule.name] = rule

    def start(self, _: list[None]) -> None:
        """Everything is collected while parsing."""


def _holds_guard(formula: Formula) -> bool:
    return isinstance(formula, Unequal) or any(_holds_guard(part) for part in formula.operands())


_OF_THREAD = threading.local()
LONGEST_LINE = 1_000_000
THEORY_SUFFIX = ".r2n"
_BRACKETS = re.compile(r'"(?:[^"\\\n]|\\.)*+"?|#[^\n]*|[()\[\]{}]')
_STATEMENT = re.compile(r"^[ \t]*(?:domain|predicate|rule|implicit)\b", re.M)
_WORDS = {
    "_LPAR": "'('", "_RPAR": "')'", "LPAR": "'('", "RPAR": "')'", "LSQB": "'['", "RSQB": "']'", "LBRACE": "'{'",
    "RBRACE": "'}'", "COMMA": "','", "COLON": "':'", "EQUAL": "'='", "VBAR": "'|'", "BANG": "'!'", "STAR": "'*'",
    "NAME": "a name", "STRING": "a quoted name", "NUMBER": "a number", "$END": "the end of the theory",
    "_DOMAIN": "'domain'", "_PREDICATE": "'predicate'", "_RULE": "'rule'", "_IMPLICIT": "'implicit'",
    "_OPEN": "'open'", "_CLOSED": "'closed'", "_XOR": "'xor'", "FUNCTIONAL": "'functional'",
    "__ANON_0": "'<->'", "__ANON_1": "'->'", "__ANON_2": "'!='", "AMPERSAND": "'&'",
}  # fmt: skip
_OF_OTHERS = (
    (re.compile(r"[vV](?=[\s!(])"), "or is written |"),
    (re.compile(r"\^|/\\"), "and is written &"),
    (re.compile(r"=>"), "implies is written ->"),
    (re.compile(r"~|not\b"), "not is written !"),
    (re.compile(r"[-+.\d]"), "a rule is written: rule NAME [WEIGHT]: FORMULA"),
)
_OTHER_FILES = "clauses of Markov logic are read from a file with another ending than .r2n: rules.mln"


def read_utf8(path: Path, called: str, kind: type[R2NError], hint: str) -> str:
    """The text of a file, or an error of this kind, with the hint if there is no file."""
    try:
        return read_file(path).decode("utf-8-sig")
    except FileNotFoundError as error:
        raise kind(f"there is no {called} file {path}", hint=hint) from error
    except UnicodeDecodeError as error:
        where = Location(str(path), error.object[: error.start].count(b"\n") + 1)
        raise kind("the file is not UTF-8 text", where=where, hint="save it as UTF-8") from error
    except OSError as error:
        raise kind(f"the {called} file {path} cannot be read: {error.strerror}") from error


def read_theory(path: Path) -> Theory:
    """The theory in a file: `*.r2n` in the language of r2n, anything else as Horn rules of other systems."""
    names = [other.name for other in path.parent.glob("*")] if not path.exists() and path.parent.is_dir() else []
    text = read_utf8(path, "theory", TheoryError, nearest(path.name, names))
    if path.suffix == THEORY_SUFFIX:
        return parse_theory(text, str(path))
    return parse_horn_rules(text, str(path))


def parse_theory(text: str, source: str | None = None) -> Theory:
    """The theory that a text states; errors show line, column, a caret, and what to do."""
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        if len(line) > LONGEST_LINE:
            what = f"the line has {len(line):,} characters, more than {LONGEST_LINE:,}"
            hint = "break it: a statement may run over many lines"
            raise TheoryError(what, where=Location(source, number), hint=hint)
    if not hasattr(_OF_THREAD, "builder"):
        _OF_THREAD.builder = TheoryBuilder()
    try:
        return _OF_THREAD.builder.build(text, source)
    except UnexpectedInput as error:
        raise _syntax_error(error, text, lines, source) from error
    except VisitError as error:
        raise error.orig_exc from error


def _never_closed(text: str) -> int | None:
    """Where a bracket opens that is still open at the end of a text, in a later statement; None: nowhere."""
    opened: list[int] = []
    for match in _BRACKETS.finditer(text):
        if match.group() in ("(", "[", "{"):
            opened.append(match.start())
        elif opened and match.group() in (")", "]", "}"):
            opened.pop()
    return opened[-1] if opened and _STATEMENT.search(text, opened[-1]) else None


def _syntax_error(error: UnexpectedInput, text: str, lines: list[str], source: str | None) -> TheoryError:
    if isinstance(error, UnexpectedCharacters):
        what = f"unexpected character {text[error.pos_in_stream]!r}"
        expected = error.allowed
    elif isinstance(error, UnexpectedToken) and error.token.type != "$END":
        what = f"unexpected '{error.token[:40]}{'...' * (len(error.token) > 40)}'"
        expected = error.accepts or error.expected
    else:
        what, expected = "the theory ends in the middle of a statement", getattr(error, "expected", ())
    line, column = error.line, error.column
    if isinstance(error, UnexpectedEOF) or line is None or line < 1:
        stripped = text.rstrip()
        line, column = stripped.count("\n") + 1, len(stripped) - (stripped.rfind("\n") + 1) + 1
    is_end = isinstance(error, UnexpectedEOF) or (isinstance(error, UnexpectedToken) and error.token.type == "$END")
    before = f"{text}\nrule" if is_end else text[: (error.pos_in_stream or 0) + len(getattr(error, "token", ""))]
    if (opening := _never_closed(before)) is not None:  # the parser itself points at the statement after it
        line, column = text.count("\n", 0, opening) + 1, opening - text.rfind("\n", 0, opening)
        what, where = f"'{text[opening]}' is never closed", location_in(lines, source, line, column)
        return TheoryError(what, where=where, hint="balance the brackets of the statement")
    names = sorted({_WORDS.get(name, name.lower().strip("_")) for name in expected or ()})
    hint = f"expected {' or '.join(names)}" if names else None
    where = location_in(lines, source, line, column)
    rest = (where.excerpt or "")[(column or 1) - 1 :]
    here = next((instead for sign, instead in _OF_OTHERS if sign.match(rest)), None)  # as other languages write it
    return TheoryError(what, where=where, hint=f"{here}; {_OTHER_FILES}" if here else hint)
