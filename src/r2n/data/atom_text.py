"""What is known: a ground atom as a person writes it, `locatedIn(italy, "light blue")` -> its predicate and terms."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from r2n.data.reading.tables import Facts, Table
from r2n.errors import DataError, Location
from r2n.logic.formula import quoted

# Runs of space are taken whole (++, *+), so that a long one is read once, whatever comes behind it.
_ATOM = re.compile(r"""\s*+(!?)\s*+("(?:[^"\\]|\\.)*"|'[^']*'|[^\s("']++)\s*+\((.*)\)\s*+\.?\s*+\Z""", re.S)
_TERM = re.compile(r"""\s*+("(?:[^"\\]|\\.)*"|'[^']*'|[^,"'\s]++(?:\s++[^,"'\s]++)*+)\s*+(,|\Z)""")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}  # as in theory files
_UNQUOTED = re.compile(r"[\w/@#][\w/@#.:+^-]*\Z")
ANYTHING = "?"


def written_name(name: str) -> str:
    """A name as an atom has it: quoted only where it could be read as something else."""
    return name if _UNQUOTED.match(name) else quoted(name)


def written_atom(predicate: str, constants: Sequence[str]) -> str:
    """An atom that `parse_atom` reads as it is, whatever its names."""
    return f"{written_name(predicate)}({', '.join(map(written_name, constants))})"


@dataclass(frozen=True, slots=True)
class AtomText:
    """An atom as it was written: names without their quotes; a term that is None stands for anything (`?`).

    `columns` is where the predicate begins, and then each term, from 1.
    """

    predicate: str
    terms: tuple[str | None, ...]
    truth: bool
    text: str
    columns: tuple[int, ...]

    @property
    def where(self) -> Location:
        """Where the terms begin."""
        return self.place(0)

    def place(self, term: int | None) -> Location:
        """Where a term stands, or (None) the predicate."""
        return Location(None, 1, self.columns[0 if term is None else term + 1], self.text)


def looks_like_atom(text: str) -> bool:
    """Whether the text has the form PREDICATE(...)."""
    return _ATOM.match(text) is not None


def parse_atom(text: str) -> AtomText | None:
    """The parts of an atom, denied where a `!` stands before it; None where the text is no atom."""
    match = _ATOM.match(text)
    if match is None:
        return None
    inside, terms, columns, place, goes_on = match.group(3), [], [match.start(2) + 1], 0, True
    while goes_on:
        term = _TERM.match(inside, place)
        if term is None:
            raise DataError("a constant or ? was expected", where=Location(None, 1, match.start(3) + place + 1, text))
        terms.append(None if term.group(1) == ANYTHING else _bare(term.group(1)))
        columns.append(match.start(3) + term.start(1) + 1)
        place, goes_on = term.end(), term.group(2) == ","
    return AtomText(_bare(match.group(2)), tuple(terms), not match.group(1), text, tuple(columns))


def _bare(text: str) -> str:
    if text[0] in "\"'" and text[-1] == text[0] and len(text) > 1:
        return unescaped(text[1:-1])
    return text


def unescaped(text: str) -> str:
    """What is between two quotes, without its backslashes; of one that is not closed, as far as it goes."""
    return re.sub(r"\\(.)", lambda match: _ESCAPED.get(match.group(1), match.group(1)), text, flags=re.S)


@dataclass(frozen=True, eq=False, slots=True)
class TypedFacts:
    """Facts that were typed one by one, as a source of tables: a fact's place is what was typed."""

    texts: tuple[str, ...]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The facts as a table of one column."""
        return pa.table({"fact": pa.array(self.texts, pa.string())}).__arrow_c_stream__(requested_schema)

    def locate(self, row: int) -> Location:
        """The fact itself."""
        return Location(f'"{self.texts[row]}"')


def facts_from_texts(texts: Sequence[str]) -> tuple[Facts, ...]:
    """Facts from atoms as text, those of one predicate and arity together; errors show the text."""
    groups: dict[tuple[str, int], list[tuple[int, AtomText]]] = {}
    for row, text in enumerate(texts):
        atom = parse_atom(text)
        if atom is None:
            raise DataError(f"'{text}' is no fact", hint="write PREDICATE(CONSTANT, ...), with ! before it if false")
        if None in atom.terms:
            raise DataError("a fact names all its constants, ? has no place in it", where=atom.where)
        groups.setdefault((atom.predicate, len(atom.terms)), []).append((row, atom))
    source = Table(TypedFacts(tuple(texts)))
    return tuple(
        Facts(
            predicate,
            tuple(pa.array([atom.terms[i] for _, atom in group], pa.string()) for i in range(arity)),
            np.array([atom.truth for _, atom in group], bool),
            np.array([row for row, _ in group], np.int64),
            source,
        )
        for (predicate, arity), group in groups.items()
    )
