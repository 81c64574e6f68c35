"""What is known: one position of one predicate, whose constant is asked for while the others are given.

The atoms that differ at this position alone are a row; its candidates are the constants of the position's domain.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np
from jaxtyping import Int64

from r2n.knowledge.herbrand import Codes, HerbrandBase


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """The candidates' codes lie `stride` apart; a row is named by the code of its first candidate."""

    base: HerbrandBase
    predicate: int
    position: int
    stride: int
    candidates: int

    @classmethod
    def of(cls, base: HerbrandBase, predicate: int, position: int) -> "Side":
        """A position of a predicate, given by its index."""
        shape = base.shapes[predicate]
        return cls(base, predicate, position, prod(shape[position + 1 :]), shape[position])

    @property
    def bounds(self) -> tuple[int, int]:
        """Where the predicate's atoms begin and end."""
        first, end = self.base.offsets[self.predicate : self.predicate + 2].tolist()
        return first, end

    def located(self, codes: Codes) -> tuple[Codes, Int64[np.ndarray, " _"]]:
        """The row of each of the predicate's atoms, and its place there."""
        place = (codes - self.bounds[0]) // self.stride % max(1, self.candidates)
        return codes - place * self.stride, place

    def rows(self, given: Int64[np.ndarray, "rows positions"]) -> Codes:
        """The rows of constants (by id); what stands at this position is not read."""
        predicate = self.base.language.predicates[self.predicate]
        any_one = self.base.language.members(predicate.domains[self.position])[:1]
        columns = [any_one if i == self.position else given[:, i] for i in range(predicate.arity)]
        return np.broadcast_to(self.base.encode_columns(predicate, columns), len(given))

    def given(self, rows: Codes) -> Int64[np.ndarray, "rows positions"]:
        """The constants (ids) of rows; at this position stands the first candidate."""
        arity = len(self.base.shapes[self.predicate])
        return np.ascontiguousarray(self.base.decode(rows)[1][:, :arity])

    def written_out(self, rows: Codes, at_once: int) -> Iterator[tuple[int, Codes]]:
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
    def of(cls, rows: Codes) -> "RowIndex":
        """The index of things whose rows ascend."""
        is_first = np.ones(len(rows), bool)
        is_first[1:] = rows[1:] != rows[:-1]
        first = np.flatnonzero(is_first)
        return cls(rows[first], np.append(first, len(rows)).astype(np.int64))

    def entries(self, rows: Codes) -> tuple[Int64[np.ndarray, " _"], Int64[np.ndarray, " _"]]:
        """What stands in rows, one row after the other: the number of the row asked for, and of the thing."""
        return ranges(*self.spans(rows))

    def spans(self, rows: Codes) -> tuple[Int64[np.ndarray, " rows"], Int64[np.ndarray, " rows"]]:
        """The number of the first thing in each row, and how many stand there."""
        if not len(self.rows):
            return np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
        place = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        return self.starts[place], np.where(self.rows[place] == rows, self.starts[place + 1] - self.starts[place], 0)


def ranges(first: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers first[i], ..., first[i] + sizes[i] - 1 of all i one after the other, with their i."""
    owner = np.repeat(np.arange(len(sizes)), sizes)
    before = np.cumsum(sizes) - sizes
    return owner, np.arange(len(owner)) + (first - before)[owner]
