"""The first row of a TSV or CSV table: the names of its columns, a fact, or ambiguous."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from r2n.errors import Location
from r2n.knowledge.reading.layout import FALSE, HEAD, LABEL, RELATION, TAIL, TRUE
from r2n.knowledge.reading.records import shortened
from r2n.logic.theory import Theory

WORDS = frozenset({"id", "name", "key", "entity", "node", "start", "end", "argument", "probability", "constant"})
"""Names that columns have besides those of triples and labels."""

_NUMBERED = r"[\s_-]*(\d+|id|name)$"  # person1, office_id, City Name
_NUMBER = r"^[\d\s.,:/+%-]*\d[\d\s.,:/+%-]*$"  # dates and times too
_FEW = 3  # rows below the first that show what a column holds
_RARE = 0.05  # share of rows whose constants occur nowhere else, for such a first row to be unusual


@dataclass(frozen=True, slots=True)
class FirstRow:
    """The first row of a table whose options do not say whether it is a header, and how it is read."""

    cells: tuple[str, ...]
    row: int
    source: str
    is_header: bool

    @property
    def note(self) -> str:
        """What it was taken for, and how to overrule that in a problem file."""
        if self.is_header:
            return self.taken("if it is a fact, write header = false in this table of the problem file")
        shown, where = shortened(", ".join(self.cells)), Location(self.source, self.row + 1)
        return (
            f"{where}: '{shown}' was read as a fact, but its constants occur in no other row, which is"
            " usual for a header;"
            " write header = true in this table of the problem file if these are the names of the columns,"
            " header = false if they are constants"
        )

    def taken(self, overruled: str) -> str:
        """That it was taken for a header, and how that is `overruled`."""
        shown, where = shortened(", ".join(self.cells)), Location(self.source, self.row + 1)
        return f"{where}: '{shown}' was read as the names of the columns; {overruled}"


def is_header(columns: Sequence[pa.Array], predicate: str | None, theory: Theory, called: Collection[str] = ()) -> bool:
    """Whether the first row of some columns of text holds their names.

    Without `predicate` the rows are triples. It does where its cells are the usual names (head relation tail), or
    all of them names of the theory or `called` so, or words above numbers, and none of them occurs in another row.
    """
    first = tuple(column[0].as_py().strip() for column in columns)
    if any(not re.search(r"[^\W\d_]", cell) or cell.lower() in (*TRUE, *FALSE) for cell in first):
        return False
    rows, cells = [_below(column) for column in columns], normal(pa.array(first))
    is_alone = not any(pc.any(pc.is_in(column[1:], value_set=cells)).as_py() for column in rows)
    if _are_roles(first, is_triple=predicate is None):
        return is_alone or all(len(cell) > 1 for cell in first)
    if not is_alone or (predicate is None and first[1:2] and first[1] in _predicates(theory)):
        return False
    if any(_is_above_numbers(column) for column in columns):
        return True
    names = vocabulary(theory, (predicate or "", *called))
    if len(rows[0]) == 1:  # person1 may be a constant: there is no other row to compare it with
        rows = [pc.utf8_lower(pc.utf8_trim_whitespace(column)) for column in columns]
    are_names = [_is_in(column, names) for column in rows]
    is_named = np.logical_and.reduce(are_names)
    return bool(is_named[0]) and not is_named[1:].any()


def _below(column: pa.Array) -> pa.Array:
    """The cells as they are compared with the first: its number, if it has one, may be all that differs."""
    if re.search(r"\d", column[0].as_py()):  # person1 above person2: both are constants, or neither
        return normal(column)
    return pa.concat_arrays([normal(column[:1]), pc.utf8_lower(pc.utf8_trim_whitespace(column[1:]))])


def normal(column: pa.Array) -> pa.Array:
    """Names without case, numbers at their end, `id` and `name`: `City_ID` is `city`."""
    lower = pc.utf8_lower(pc.utf8_trim_whitespace(column))
    short = pc.replace_substring_regex(lower, _NUMBERED, "")
    return pc.if_else(pc.equal(short, ""), lower, short)


def vocabulary(theory: Theory, called: Collection[str] = ()) -> frozenset[str]:
    """Names that a column may have: usual ones, those of the theory, and `called`, all of more than one letter."""
    variables = {name for rule in theory.rules for name in rule.variables}
    own = {*variables, *(domain.name for domain in theory.domains), *_predicates(theory), *called}
    known = {name.casefold() for name in own} | {_singular(name.casefold()) for name in called}
    return frozenset(name for name in known | HEAD | RELATION | TAIL | LABEL | WORDS if len(name) > 1)


def _predicates(theory: Theory) -> set[str]:
    in_rules = {atom.predicate for rule in theory.rules for atom in rule.atoms}
    return in_rules | {predicate.name for predicate in theory.predicates}


def _singular(name: str) -> str:
    return name.removesuffix("ies") + "y" if name.endswith("ies") else name.removesuffix("s")


def _is_in(column: pa.Array, names: Collection[str]) -> np.ndarray:
    return pc.is_in(column, value_set=pa.array(sorted(names), pa.string())).to_numpy(zero_copy_only=False)


def _are_roles(cells: Sequence[str], *, is_triple: bool) -> bool:
    """Whether cells are the usual names in full; of one letter, only `h r t` or `s p o`: `s r t` may be a fact."""
    names = [name for name in (cell.lower() for cell in cells) if name not in LABEL]
    roles = (HEAD, RELATION, TAIL) if is_triple else (HEAD, TAIL)
    has_roles = len(names) == len(roles) and all(len(role.intersection(names)) == 1 for role in roles)
    is_spelled_out = all(len(name) > 1 for name in names)
    return has_roles and (is_spelled_out or any(set(names) <= set(family) for family in ("hrt", "spo")))


def _is_above_numbers(column: pa.Array, pattern: str = _NUMBER) -> bool:
    """Whether every other cell of a column is a number (or has the pattern), and the first has no digit."""
    rest = column[1:]
    is_like = len(rest) >= _FEW and pc.all(pc.match_substring_regex(rest, pattern)).as_py()
    return bool(is_like) and re.search(r"\d", column[0].as_py()) is None


class Occurrences:
    """How often constants occur in tables, by row: all that first rows are compared with, counted once.

    `groups` are columns of constants. `known` are those of the given `first` that occur, `alone` and `rows` for each
    group the number of rows whose constants all occur once, and of all rows.
    """

    def __init__(self, groups: Sequence[Sequence[pa.Array]], first: Collection[str]) -> None:
        """Count."""
        columns = pa.chunked_array([column for group in groups for column in group], pa.string())
        counts = pc.value_counts(columns)
        values, once = counts.field("values"), pc.equal(counts.field("counts"), 1)
        self.known = frozenset(values.filter(pc.is_in(values, pa.array(sorted(first), pa.string()))).to_pylist())
        flags = pc.is_in(columns, value_set=values.filter(once)).to_numpy()
        ends = np.cumsum([len(column) for group in groups for column in group])
        flags = iter(np.split(flags, ends[:-1]))
        alone = [[next(flags) for _ in group] for group in groups]
        self.alone = [int(np.logical_and.reduce(group).sum()) if group else 0 for group in alone]
        self.rows = [len(group[0]) if group else 0 for group in groups]


def is_unusual(
    first: Sequence[str], columns: Sequence[pa.Array], own: Sequence[int], others: Occurrences, names: frozenset[str]
) -> bool:
    """Whether a first row that was read as a fact looks like a header: its constants occur in no other row.

    `columns` are the cells of the table's other rows, which are the groups `own` of the `others`: all rows of the
    problem but first ones. That a constant occurs once is no sign of a header where it is usual; one of the `names`, or
    a word above numbers and codes, is.
    """
    if others.known.intersection(first):
        return False
    below = [pa.concat_arrays([pa.array([cell]), column]) for cell, column in zip(first, columns, strict=True)]
    if _is_in(normal(pa.array(list(first))), names).any() or any(_is_above_numbers(column, r"\d") for column in below):
        return any(others.rows)
    if any(re.search(r"[\d/:#@]", cell) for cell in first):  # as codes and addresses have, and few names of columns
        return False
    compared = own if any(others.rows[i] for i in own) else range(len(others.rows))
    single, rows = (sum(counts[i] for i in compared) for counts in (others.alone, others.rows))
    return rows > 0 and single <= _RARE * rows
