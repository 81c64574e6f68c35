"""A trained network, asked: how a question that is being typed may go on."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from r2n.knowledge.atom_text import ANYTHING, unescaped, written_name
from r2n.logic.language import Language, Predicate

MOST = 100
_QUOTED = r'"(?:[^"\\]|\\.)*"' + r"|'[^']*'"
# Runs of space are taken whole (++, *+), so that a long one is read once, whatever comes behind it.
_PREDICATE = re.compile(rf"""\s*+(!?)\s*+(?:({_QUOTED}|[^\s("']++)\s*+\()""", re.S)
_TERM = re.compile(rf"""\s*+(?:{_QUOTED}|[^,"'\s]++(?:\s++[^,"'\s]++)*+)\s*+,""", re.S)
_BEGUN = re.compile(r"""(?:"((?:[^"\\]|\\.)*)|'([^']*)|([^"']*))\Z""", re.S)  # a name that is not closed yet
_SPACE = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class Completions:
    """Texts that may each stand in the place of `text[start:cursor]`."""

    start: int
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Begun:
    """A name that is being typed: where it starts, and what of it is there without quotes.

    `predicate` and `position` say what it is a term of; None: it is the name of a predicate.
    """

    start: int
    typed: str
    predicate: str | None = None
    position: int = 0


def complete(
    language: Language, text: str, cursor: int | None = None, *, is_fact: bool = False, most: int = MOST
) -> Completions:
    """How the question in `text` may go on at `cursor` (its end): predicates, then constants of the right domain.

    Names that begin as what is typed come first, and then those that have it inside, whatever its case. A name is
    quoted where it has to be, and followed by what comes next. `is_fact`: it is to be a fact, which has no `?` and may
    have a `!` before it.
    """
    cursor = len(text) if cursor is None else cursor
    begun = _begun(text[:cursor], is_fact=is_fact)
    if begun is None:
        return Completions(cursor)
    follows = not text[cursor:].strip()
    if begun.predicate is None:
        names = sorted(predicate.name for predicate in language.predicates)
        found = islice(_matching(names, begun.typed), most)
        return Completions(begun.start, tuple(written_name(name) + "(" * follows for name in found))
    predicate = next((each for each in language.predicates if each.name == begun.predicate), None)
    if predicate is None or begun.position >= predicate.arity:
        return Completions(cursor)
    return Completions(begun.start, tuple(islice(_terms(language, predicate, begun, follows, is_fact), most)))


def _begun(text: str, *, is_fact: bool) -> _Begun | None:
    """The name that a text ends in, where it can be told."""
    head = _PREDICATE.match(text)
    if head is None:
        start = _space(text, 0)
        start = _space(text, start + 1) if is_fact and text[start : start + 1] == "!" else start
        name = _name(text[start:])
        return None if name is None else _Begun(start, name)
    if head.group(1) and not is_fact:
        return None
    place, position = head.end(), 0
    while (term := _TERM.match(text, place)) is not None:
        place, position = term.end(), position + 1
    start = _space(text, place)
    name = _name(text[start:])
    return None if name is None else _Begun(start, name, _bare(head.group(2)), position)


def _space(text: str, place: int) -> int:
    """The place behind any space."""
    found = _SPACE.match(text, place)
    return place if found is None else found.end()


def _name(text: str) -> str | None:
    """What is there of a name that is not closed yet, without its quote."""
    found = _BEGUN.match(text)
    if found is None:
        return None
    double, single, bare = found.groups()
    return bare if bare is not None else unescaped(single if double is None else double)


def _bare(name: str) -> str:
    return unescaped(name[1:-1]) if name[0] in "\"'" else name


def _terms(language: Language, predicate: Predicate, begun: _Begun, follows: bool, is_fact: bool) -> Iterator[str]:
    """The terms that may stand at a position, each with what comes behind it."""
    behind = "" if not follows else ")" if begun.position == predicate.arity - 1 else ", "
    if not begun.typed and not is_fact:
        yield ANYTHING + behind
    names = [language.constants[i] for i in language.members(predicate.domains[begun.position]).tolist()]
    for name in _matching(names, begun.typed):
        yield written_name(name) + behind


def _matching(names: Sequence[str], typed: str) -> Iterator[str]:
    """Of sorted names, those that begin with a text; then those that have it inside, whatever its case."""
    first = bisect_left(names, typed)
    last = first
    while last < len(names) and names[last].startswith(typed):
        yield names[last]
        last += 1
    lower = typed.casefold()
    yield from (name for i, name in enumerate(names) if not first <= i < last and lower in name.casefold())
