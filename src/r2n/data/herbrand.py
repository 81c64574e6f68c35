"""The Herbrand base: an integer code for each ground atom; sets of codes, closed worlds, query patterns."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from jaxtyping import Bool, Int64

from r2n.errors import DataError, counted
from r2n.logic.formula import printed_name, quoted
from r2n.logic.language import Domain, Language, Predicate

LARGEST_CODE = 2**63 - 1
_AS_IT_IS = re.compile(r"[^'\\\n\r\t]*\Z")  # between single quotes
# a comma or a quote inside, space at the ends, `?`, or nothing
_MISREAD = re.compile(r"""[,"']|\A\s|\s\Z|\A\??\Z""")

Codes = Int64[np.ndarray, " _"]
"""Codes of any number of atoms: two of them in one signature need not be equally many."""


class HerbrandBase:
    """All ground atoms of a language, numbered by mixed radix: predicates in order, the last position fastest.

    The code of P(c_1, ..., c_n) is the number of atoms of the predicates before P, plus the index of
    (c_1, ..., c_n) among the tuples over P's domains. Constants are given by their ids in the language.
    """

    def __init__(self, language: Language) -> None:
        """Number the atoms of `language`; refuse a base that does not fit 64 bits."""
        self.language = language
        self.shapes = [tuple(len(language.members(d)) for d in p.domains) for p in language.predicates]
        self.offsets = first_codes(language.predicates, self.shapes)
        self.size = int(self.offsets[-1])

    @cached_property
    def _indices(self) -> dict[Domain, np.ndarray | None]:
        """For each domain, the index of every constant in it (-1 outside); None if index and id are the same."""
        indices: dict[Domain, np.ndarray | None] = {}
        for domain in self.language.domains:
            members = self.language.members(domain)
            if len(members) == len(self.language.constants):
                indices[domain] = None
            else:
                index = np.full(len(self.language.constants) + 1, -1, np.int64)  # the last: for id -1, no constant
                index[members] = np.arange(len(members))
                indices[domain] = index
        return indices

    def index_in(self, domain: Domain, constants: np.ndarray) -> np.ndarray:
        """The index of constants (by id) in a domain, -1 if they are outside; same shape."""
        index = self._indices[domain]
        return constants if index is None else np.asarray(index[constants])

    def encode(
        self, predicate: Predicate, arguments: Int64[np.ndarray, "atoms positions"]
    ) -> Int64[np.ndarray, " atoms"]:
        """Codes of the atoms with these arguments (constant ids, -1: none); -1 where one is outside its domain."""
        return self.encode_columns(predicate, [arguments[:, i] for i in range(predicate.arity)])

    def encode_columns(self, predicate: Predicate, columns: list[np.ndarray]) -> np.ndarray:
        """As `encode`, with the arguments position by position; the columns broadcast against each other."""
        index = self.language.predicate_index(predicate.name)
        code: np.ndarray = np.zeros((), np.int64)
        outside: np.ndarray = np.zeros((), bool)
        for domain, size, constants in zip(predicate.domains, self.shapes[index], columns, strict=True):
            within = self.index_in(domain, constants)
            outside = outside | (within < 0)
            code = code * size + within
        return np.where(outside, -1, code + self.offsets[index])

    def decode(self, codes: Codes) -> tuple[Int64[np.ndarray, " atoms"], Int64[np.ndarray, "atoms positions"]]:
        """The predicate (its index) and the arguments (constant ids, padded with -1) of each code."""
        codes = np.asarray(codes, np.int64)
        index = np.searchsorted(self.offsets, codes, side="right") - 1
        most = max((predicate.arity for predicate in self.language.predicates), default=0)
        arguments = np.full((len(codes), most), -1, np.int64)
        for i in np.unique(index):
            predicate, rest = self.language.predicates[i], codes[index == i] - self.offsets[i]
            for position in reversed(range(predicate.arity)):
                rest, inside = np.divmod(rest, self.shapes[i][position])
                arguments[index == i, position] = self.language.members(predicate.domains[position])[inside]
        return index, arguments

    def predicates(self, *parts: Codes) -> tuple[Predicate, ...]:
        """The predicates of some atoms, each once, in the order of the language."""
        distinct = np.unique([i for part in parts for i in np.unique(self.decode(part)[0])])
        return tuple(self.language.predicates[int(i)] for i in distinct)

    def parts(self, codes: Codes) -> list[tuple[str, tuple[str, ...]]]:
        """The predicate of each atom and its constants, by their names."""
        index, arguments = self.decode(codes)
        predicates, constants = self.language.predicates, self.language.constants
        return [
            (predicates[i].name, tuple(constants[c] for c in row[: predicates[i].arity]))
            for i, row in zip(index.tolist(), arguments.tolist(), strict=True)
        ]

    def names(self, codes: Codes) -> list[str]:
        """The atoms as text, `locatedIn(italy, europe)`; quoted where a name would be read as something else."""

        def readable(constant: str) -> str:
            if not _MISREAD.search(constant):
                return constant
            return f"'{constant}'" if '"' in constant and _AS_IT_IS.match(constant) else quoted(constant)

        return [f"{printed_name(name)}({', '.join(map(readable, each))})" for name, each in self.parts(codes)]

    def __repr__(self) -> str:
        return f"HerbrandBase({counted(self.size, 'atom')})"

    def __len__(self) -> int:
        return self.size


def first_codes(predicates: Sequence[Predicate], shapes: Sequence[tuple[int, ...]]) -> Int64[np.ndarray, " _"]:
    """The first code of each predicate, given the sizes of its positions' domains, and behind them that of none."""
    sizes = [prod(shape) for shape in shapes]
    if sum(sizes) > LARGEST_CODE:
        largest = predicates[max(range(len(sizes)), key=sizes.__getitem__)]
        raise DataError(
            f"the Herbrand base has {sum(sizes):,} atoms and does not fit 64 bits;"
            f" the largest predicate is {largest.name} with {largest.arity} positions",
            hint="give its positions narrower domains, or split it into predicates of fewer positions",
        )
    return np.concatenate([[0], np.cumsum(np.array(sizes, np.int64))]).astype(np.int64)


def union(*parts: Codes) -> Codes:
    """The codes of all parts in order, each once."""
    return np.unique(np.concatenate([np.zeros(0, np.int64), *parts]))


def index_among(codes: np.ndarray, ordered: Codes) -> np.ndarray:
    """The index of each code among those that are given in order, -1 if it is none of them."""
    if not len(ordered):
        return np.full(codes.shape, -1, np.int64)
    index = np.minimum(np.searchsorted(ordered, codes), len(ordered) - 1)
    return np.where(ordered[index] == codes, index, -1)


def are_among(codes: Codes, ordered: Codes) -> Bool[np.ndarray, " codes"]:
    """Whether each code is one of those that are given in order."""
    return index_among(codes, ordered) >= 0


def is_first(ordered: Codes) -> Bool[np.ndarray, " codes"]:
    """Whether each of some codes in order differs from the one before it."""
    first = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return first


def closed_atoms(base: HerbrandBase, codes: Codes) -> Bool[np.ndarray, " atoms"]:
    """Whether each atom is under the closed-world assumption: of a closed predicate, or of a closed part of one."""
    predicates = base.language.predicates
    index, arguments = base.decode(codes)
    closed = np.array([predicate.closed for predicate in predicates], bool)[index]
    for i, predicate in enumerate(predicates):
        for part in predicate.closed_parts:
            inside = index == i
            for position, domain in enumerate(part):
                inside[inside] = base.index_in(domain, arguments[inside, position]) >= 0
            closed |= inside
    return closed


@dataclass(frozen=True, slots=True, eq=False)
class QueryPattern:
    """The candidates' codes lie `stride` apart; a row is named by the code of its first candidate."""

    base: HerbrandBase
    predicate: int
    position: int
    stride: int
    candidates: int

    @classmethod
    def from_base(cls, base: HerbrandBase, predicate: int, position: int) -> "QueryPattern":
        """A position of a predicate, given by its index."""
        shape = base.shapes[predicate]
        return cls(base, predicate, position, prod(shape[position + 1 :]), shape[position])

    @property
    def bounds(self) -> tuple[int, int]:
        """Where the predicate's atoms begin and end."""
        first, end = self.base.offsets[self.predicate : self.predicate + 2].tolist()
        return first, end

    @property
    def rows_in_all(self) -> int:
        """The number of rows."""
        first, end = self.bounds
        return (end - first) // max(1, self.candidates)

    @property
    def all_rows(self) -> Codes:
        """All rows, ascending."""
        block, offset = np.divmod(np.arange(self.rows_in_all), self.stride)
        return self.bounds[0] + block * (self.stride * self.candidates) + offset

    def located(self, codes: Codes) -> tuple[Codes, Int64[np.ndarray, " _"]]:
        """The row of each of the predicate's atoms, and its index among the candidates."""
        index = (codes - self.bounds[0]) // self.stride % max(1, self.candidates)
        return codes - index * self.stride, index

    def rows(self, given: Int64[np.ndarray, "rows positions"]) -> Codes:
        """The rows of constants (by id); the constant at this position is not read."""
        predicate = self.base.language.predicates[self.predicate]
        any_one = self.base.language.members(predicate.domains[self.position])[:1]
        columns = [any_one if i == self.position else given[:, i] for i in range(predicate.arity)]
        return np.broadcast_to(self.base.encode_columns(predicate, columns), len(given))

    def given(self, rows: Codes) -> Int64[np.ndarray, "rows positions"]:
        """The constants (ids) of rows; at this position is the first candidate."""
        arity = len(self.base.shapes[self.predicate])
        return np.ascontiguousarray(self.base.decode(rows)[1][:, :arity])

    def all_codes(self, rows: Codes, at_once: int) -> Iterator[tuple[int, Codes]]:
        """The codes of all candidates, row after row, about so many at once, each time with the first row's number."""
        size = max(1, at_once // max(1, self.candidates))
        steps = self.stride * np.arange(self.candidates)
        for start in range(0, len(rows), size):
            yield start, (rows[start : start + size, None] + steps).ravel()


@dataclass(frozen=True, eq=False)
class RowIndex:
    """Things sorted by row: `starts[i]` to `starts[i + 1]` are those of the i-th distinct row."""

    rows: Codes
    starts: Int64[np.ndarray, " _"]

    @classmethod
    def from_rows(cls, rows: Codes) -> "RowIndex":
        """The index of things whose rows ascend."""
        first = np.flatnonzero(is_first(rows))
        return cls(rows[first], np.append(first, len(rows)).astype(np.int64))

    def entries(self, rows: Codes) -> tuple[Int64[np.ndarray, " _"], Int64[np.ndarray, " _"]]:
        """The things in rows, one row after the other: the number of the given row, and of the thing."""
        return ranges(*self.spans(rows))

    def spans(self, rows: Codes) -> tuple[Int64[np.ndarray, " rows"], Int64[np.ndarray, " rows"]]:
        """The number of the first thing in each row, and how many there are."""
        index = index_among(rows, self.rows)
        return self.starts[index], np.where(index < 0, 0, self.starts[index + 1] - self.starts[index])


def ranges(first: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers first[i], ..., first[i] + sizes[i] - 1 of all i one after the other, with their i."""
    owner = np.repeat(np.arange(len(sizes)), sizes)
    before = np.cumsum(sizes) - sizes
    return owner, np.arange(len(owner)) + (first - before)[owner]
