"""Facts written in Python: ground atoms as text, `locatedIn(italy, "light blue")`, tuples and tables."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from r2n.data.records import PostgresTable, cell_text, shortened
from r2n.data.tables import FALSE, NO_THEORY, TRUE, Facts, Table
from r2n.errors import ConfigError, DataError, Location
from r2n.logic.formula import quoted, unescaped
from r2n.logic.theory import Theory

# Runs of space are taken in full (++, *+), so that a long one is read once, whatever comes behind it.
_ATOM = re.compile(r"""\s*+(!?)\s*+("(?:[^"\\]|\\.)*"|'[^']*'|[^\s("']++)\s*+\((.*)\)\s*+\.?\s*+\Z""", re.S)
_TERM = re.compile(r"""\s*+("(?:[^"\\]|\\.)*"|'[^']*'|[^,"'\s]++(?:\s++[^,"'\s]++)*+)\s*+(,|\Z)""")
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
    """An atom as it was written, without quotes; None is a `?`; `columns`: where predicate and terms begin, from 1."""

    predicate: str
    terms: tuple[str | None, ...]
    truth: bool
    text: str
    columns: tuple[int, ...]

    @property
    def where(self) -> Location:
        """Where the terms begin."""
        return self.location(0)

    def location(self, term: int | None) -> Location:
        """Where a term stands, or (None) the predicate."""
        return Location(None, 1, self.columns[0 if term is None else term + 1], self.text)


def looks_like_atom(text: str) -> bool:
    """Whether the text has the form PREDICATE(...)."""
    return _ATOM.match(text) is not None


def parse_atom(text: str) -> AtomText | None:
    """The parts of an atom, false with a `!` before it; None if the text is no atom."""
    match = _ATOM.match(text)
    if match is None:
        return None
    inside, terms, columns, end, goes_on = match.group(3), [], [match.start(2) + 1], 0, True
    while goes_on:
        term = _TERM.match(inside, end)
        if term is None:
            raise DataError("a constant or ? was expected", where=Location(None, 1, match.start(3) + end + 1, text))
        terms.append(None if term.group(1) == ANYTHING else _bare(term.group(1)))
        columns.append(match.start(3) + term.start(1) + 1)
        end, goes_on = term.end(), term.group(2) == ","
    return AtomText(_bare(match.group(2)), tuple(terms), not match.group(1), text, tuple(columns))


def _bare(text: str) -> str:
    if text[0] in "\"'" and text[-1] == text[0] and len(text) > 1:
        return unescaped(text[1:-1])
    return text


@dataclass(frozen=True, eq=False, slots=True)
class GivenRows:
    """Facts given in Python, row by row: atoms as text, or (predicate, constant, ...), perhaps with a truth behind.

    `argument` is the argument that they were given for, and `predicate` that of all rows, which then hold constants
    alone. The names in `theory` distinguish triples (head, relation, tail) from (predicate, constant, constant).
    """

    rows: tuple[Any, ...]
    argument: str | None = None
    predicate: str | None = None
    theory: Theory = NO_THEORY

    def locate(self, row: int, column: int | None = None) -> Location:
        """The argument and the row; of facts that were given alone, the fact itself."""
        if self.argument is None:
            return Location(f'"{self.rows[row]}"')
        return Location(f"{self.argument}, row {row + 1}", excerpt=shortened(str(self.rows[row])))

    def facts(self) -> tuple[Facts, ...]:
        """Those of one predicate and arity together."""
        groups: dict[tuple[str, int], list[tuple[int, list[str], bool]]] = {}
        rows, are_triples = [row for row in self.rows if not isinstance(row, str)], False
        if self.predicate is None and rows and all(len(row) in (3, 4) for row in rows):
            heads, relations, tails = ({row[i] for row in rows if row[i].__hash__} for i in range(3))
            known = self.theory.predicate_names
            if known:
                are_triples = not heads & known and bool(relations & known)
            else:  # triples, if first items are constants elsewhere
                are_triples = bool(heads & (relations | tails)) and not relations & (heads | tails)
        for row, given in enumerate(self.rows):
            name, constants, truth = self._parsed(row, given, are_triples)
            groups.setdefault((name, len(constants)), []).append((row, constants, truth))
        table = Table(self)
        return tuple(
            Facts(
                predicate,
                tuple(pa.array([constants[i] for _, constants, _ in group], pa.string()) for i in range(arity)),
                np.array([truth for *_, truth in group], bool),
                np.array([row for row, *_ in group], np.int64),
                table,
                locate=self.locate,
            )
            for (predicate, arity), group in groups.items()
        )

    def _parsed(self, row: int, given: Any, are_triples: bool) -> tuple[str, list[str], bool]:
        """The predicate, the constants and the truth of a row."""
        if isinstance(given, str) and self.predicate is None:
            return self._parsed_atom(row, given)
        items = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
        truth: Any = True
        if are_triples:
            truth = items.pop() if len(items) == 4 else True
            items = [items[1], items[0], items[2]]
        elif len(items) > 1 and isinstance(items[-1], bool | np.bool_):
            truth = items.pop()
        if str(truth).lower() not in (*TRUE, *FALSE):
            what = f"the label {truth!r} is neither 1 (true) nor 0 (false)"
            raise DataError(what, where=self.locate(row), hint="a triple has its label as its fourth item")
        names = [self._constant(row, i, item) for i, item in enumerate(items)]
        if self.predicate is None:
            if len(names) < 2:
                hint = 'write ("locatedIn", "italy", "europe"), or "locatedIn(italy, europe)"'
                raise DataError("a fact needs its predicate and its constants", where=self.locate(row), hint=hint)
            return names[0], names[1:], str(truth).lower() in TRUE
        return self.predicate, names, str(truth).lower() in TRUE

    def _parsed_atom(self, row: int, text: str) -> tuple[str, list[str], bool]:
        try:
            atom = parse_atom(text)
        except DataError as error:
            raise DataError(error.what, where=self._within(row, error.where), hint=error.hint) from None
        if atom is None:
            where = None if self.argument is None else self.locate(row)
            hint = "write PREDICATE(CONSTANT, ...), with ! before it if false"
            raise DataError(f"'{text}' is no fact", where=where, hint=hint)
        constants = [term for term in atom.terms if term is not None]
        if len(constants) < len(atom.terms):
            where = self._within(row, atom.where)
            raise DataError("a fact names all its constants, ? has no place in it", where=where)
        return atom.predicate, constants, atom.truth

    def _within(self, row: int, where: Location | None) -> Location | None:
        """A location in the text of a row."""
        if self.argument is None or where is None:
            return where
        return Location(self.locate(row).source, None, where.column, where.excerpt)

    def _constant(self, row: int, position: int, given: Any) -> str:
        """An item as the name of a constant or predicate: a text or a number."""
        item = given.item() if isinstance(given, np.generic) else given
        if isinstance(item, str | int | float) and not isinstance(item, bool) and item == item:
            text, kind = cell_text(item)
            if text and kind is None:
                return text
        held = "is empty" if item is None or item == "" or item != item else f"is {item!r}, which is no constant"
        hint = "every item is a text or a number; only the last may be True or False, the truth of the fact"
        raise DataError(f"item {position + 1} {held}", where=self.locate(row), hint=hint)


def facts_from_texts(texts: Sequence[str]) -> tuple[Facts, ...]:
    """Facts from atoms as text, those of one predicate and arity together; errors show the text."""
    return GivenRows(tuple(texts)).facts()


def as_tables(given: object, argument: str, theory: Theory = NO_THEORY, predicate: str | None = None) -> list[Table]:
    """The tables of facts that were given in Python for an argument, which errors name.

    Facts are a pandas, polars or pyarrow table, a path or the address of a database, a Table, a list of tuples or of
    atoms as text, {predicate: any of these, with its arguments alone}, or a list of such.
    """
    if isinstance(given, Mapping):
        named = [(str(name), f"{argument}[{name!r}]", part) for name, part in given.items()]
        return [table for name, within, part in named for table in as_tables(part, within, theory, name)]
    if isinstance(given, Table):
        return [given]
    if isinstance(given, str) and (looks_like_atom(given) or "\n" in given):
        given = [line for line in given.split("\n") if line.strip()]
    if isinstance(given, str | Path | PostgresTable):
        return [Table(given, predicate)]
    if hasattr(given, "__arrow_c_stream__"):
        return [Table(given, predicate, called=argument)]
    if not isinstance(given, Iterable):
        what = f"{argument}: facts are tables, tuples, atoms as text or paths, not a {type(given).__name__}"
        hint = 'write [("locatedIn", "italy", "europe")], {"locatedIn": frame}, a frame, or "facts.tsv"'
        raise ConfigError(what, hint=hint)
    items: list[Any] = list(given)
    are_rows = [  # a text that is no atom is a path
        predicate is not None or looks_like_atom(item)
        if isinstance(item, str)
        else not isinstance(item, Path | PostgresTable | Table | Mapping) and not hasattr(item, "__arrow_c_stream__")
        for item in items
    ]
    if all(are_rows):
        return [Table(GivenRows(tuple(items), argument, predicate, theory))] if items else []
    if any(are_rows):
        row = are_rows.index(not are_rows[0])
        what = f"{argument}: item {row + 1} is {'a row' if are_rows[row] else 'a table or a path'}, unlike item 1"
        raise ConfigError(what, hint="give a list of rows or a list of tables, not both in one list")
    return [t for i, item in enumerate(items) for t in as_tables(item, f"{argument}[{i}]", theory, predicate)]
