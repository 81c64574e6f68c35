"""Symbols: the text of a theory file -> Theory, or an error with line, column, a caret, and what to do."""

import re
from collections.abc import Iterator
from pathlib import Path

from lark import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken
from lark.exceptions import VisitError

from r2n.errors import Location, TheoryError, nearest
from r2n.logic.horn import parse_horn_rules
from r2n.logic.theory import Theory
from r2n.logic.theory_builder import location_in, theory_builder
from r2n.whole_files import read_file

LONGEST_LINE = 1_000_000
THEORY_SUFFIX = ".r2n"
_SCANNED = re.compile(
    r'"(?:[^"\\\n]|\\.)*+(?P<closed>"?)|#[^\n]*|[()\[\]{}]|^[ \t]*(?:domain|predicate|rule|implicit)\b', re.M
)
_BEHIND_QUOTE = re.compile(r"#[^\n]*|[()\[\]{}]")
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_WORDS = {
    "_LPAR": "'('", "_RPAR": "')'", "LPAR": "'('", "RPAR": "')'", "LSQB": "'['", "RSQB": "']'", "LBRACE": "'{'",
    "RBRACE": "'}'", "COMMA": "','", "COLON": "':'", "EQUAL": "'='", "VBAR": "'|'", "BANG": "'!'", "STAR": "'*'",
    "NAME": "a name", "STRING": "a quoted name", "NUMBER": "a number", "$END": "the end of the theory",
    "_DOMAIN": "'domain'", "_PREDICATE": "'predicate'", "_RULE": "'rule'", "_IMPLICIT": "'implicit'",
    "_OPEN": "'open'", "_CLOSED": "'closed'", "_XOR": "'xor'",
}  # fmt: skip
_OF_OTHERS = (
    (re.compile(r"[vV](?=[\s!(])"), "or is written |"),
    (re.compile(r"\^|/\\"), "and is written &"),
    (re.compile(r"=>"), "implies is written ->"),
    (re.compile(r"~|not\b"), "not is written !"),
    (re.compile(r"[-+.\d]"), "a rule is written: rule NAME [WEIGHT]: FORMULA"),
)
_OTHER_FILES = "clauses of Markov logic are read from a file with another ending than .r2n: rules.mln"
_OPERATORS = {"__ANON_0": "'<->'", "__ANON_1": "'->'", "__ANON_2": "'!='", "AMPERSAND": "'&'"}


def read_theory(path: Path) -> Theory:
    """The theory in a file: `*.r2n` in the language of r2n, anything else as Horn rules of other systems."""
    try:
        text = read_file(path).decode("utf-8-sig")
    except FileNotFoundError as error:
        beside = [other.name for other in path.parent.glob("*")] if path.parent.is_dir() else []
        raise TheoryError(f"there is no theory file {path}", hint=nearest(path.name, beside)) from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        where = Location(str(path), line)
        raise TheoryError("the file is not UTF-8 text", where=where, hint="save it as UTF-8") from error
    except OSError as error:
        raise TheoryError(f"the theory file {path} cannot be read: {error.strerror}") from error
    if path.suffix == THEORY_SUFFIX:
        return parse_theory(text, str(path))
    return parse_horn_rules(text, str(path))


def parse_theory(text: str, source: str | None = None) -> Theory:
    """The theory that a text states; errors show line, column, a caret, and what to do."""
    _check_lines(text, source)
    _check_brackets(text, source)
    try:
        return theory_builder().build(text, source)
    except UnexpectedInput as error:
        raise _syntax_error(error, text, source) from error
    except VisitError as error:
        raise error.orig_exc from error


def _check_lines(text: str, source: str | None) -> None:
    for number, line in enumerate(text.split("\n"), start=1):
        if len(line) > LONGEST_LINE:
            raise TheoryError(
                f"the line has {len(line):,} characters, more than {LONGEST_LINE:,}",
                where=Location(source, number),
                hint="break it: a statement may run over many lines",
            )


def _check_brackets(text: str, source: str | None) -> None:
    """Name the bracket that is never closed: the parser alone would point at the statement after it."""
    open_brackets: list[re.Match[str]] = []
    for match in _signs(text):
        sign = match.group()
        if sign in _CLOSING:
            open_brackets.append(match)
        elif sign in _CLOSING.values():
            if not open_brackets or _CLOSING[open_brackets[-1].group()] != sign:
                raise _bracket_error(f"'{sign}' closes nothing", match, text, source)
            open_brackets.pop()
        elif sign[0] not in '"#' and open_brackets:
            break
    if open_brackets:
        match = open_brackets[-1]
        raise _bracket_error(f"'{match.group()}' is never closed", match, text, source)


def _signs(text: str) -> Iterator[re.Match[str]]:
    """Brackets, keywords, and what hides these; behind a quote that is not closed, the brackets of its line."""
    for match in _SCANNED.finditer(text):
        if match["closed"] == "":
            yield from _BEHIND_QUOTE.finditer(text, match.start() + 1, match.end())
        else:
            yield match


def _bracket_error(what: str, match: re.Match[str], text: str, source: str | None) -> TheoryError:
    line = text.count("\n", 0, match.start()) + 1
    column = match.start() - text.rfind("\n", 0, match.start())
    return TheoryError(
        what, where=location_in(text.split("\n"), source, line, column), hint="balance the brackets of the statement"
    )


def _syntax_error(error: UnexpectedInput, text: str, source: str | None) -> TheoryError:
    if isinstance(error, UnexpectedCharacters):
        what = f"unexpected character {text[error.pos_in_stream]!r}"
        expected = error.allowed
    elif isinstance(error, UnexpectedToken) and error.token.type != "$END":
        what, expected = f"unexpected '{_shortened(error.token)}'", error.accepts or error.expected
    else:
        what, expected = "the theory ends in the middle of a statement", getattr(error, "expected", ())
    line, column = error.line, error.column
    if isinstance(error, UnexpectedEOF) or line is None or line < 1:
        stripped = text.rstrip()
        line, column = stripped.count("\n") + 1, len(stripped) - (stripped.rfind("\n") + 1) + 1
    words = {**_WORDS, **_OPERATORS}
    names = sorted({words.get(name, name.lower().strip("_")) for name in expected or ()})
    hint = f"expected {' or '.join(names)}" if names else None
    where = location_in(text.split("\n"), source, line, column)
    return TheoryError(what, where=where, hint=_said_otherwise(where) or hint)


def _said_otherwise(where: Location) -> str | None:
    """How the language writes what stands here, where another one would write it so."""
    rest = (where.excerpt or "")[(where.column or 1) - 1 :]
    found = [instead for sign, instead in _OF_OTHERS if sign.match(rest)]
    return f"{found[0]}; {_OTHER_FILES}" if found else None


def _shortened(text: str) -> str:
    return text if len(text) <= 40 else text[:40] + "..."
