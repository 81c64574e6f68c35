"""Rules -> ground rules: tables of atoms as arrays, decoded once, for joins in memory and for an engine alike."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np
from jaxtyping import Bool, Int64

from r2n.knowledge.conjunctive import AtomTable
from r2n.knowledge.herbrand import Codes
from r2n.logic.language import Domain


class Kind(Enum):
    """What the atoms of a relation are: known true, known false, asked, or such that ground rules may hold."""

    FACT = "fact"
    DENIED = "denied"
    ASKED = "asked"
    CANDIDATE = "candidate"


@dataclass(frozen=True, eq=False)
class Relation:
    """Distinct atoms: their codes, and their arguments (ids below `constants`), a column a position.

    `domains` are those of the positions; `encode` turns columns of arguments into codes. The constants of a domain are
    a relation too, of one position, where a code is the constant's id. `cut_from` is a relation with more atoms, and
    which of them are kept.
    """

    name: str
    domains: tuple[Domain, ...]
    codes: Codes
    rows: Int64[np.ndarray, "atoms positions"]
    constants: int
    encode: Callable[[list[np.ndarray]], np.ndarray]
    cut_from: "tuple[Relation, Bool[np.ndarray, ' _']] | None" = None
    _indexes: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    def __len__(self) -> int:
        """The number of atoms."""
        return len(self.rows)

    @property
    def table(self) -> AtomTable:
        """The relation as a table of an engine."""
        return AtomTable(self.name, tuple(f"a{i}" for i in range(len(self.domains))))

    def index(self, position: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows in the order of the constants at a position, and where each constant's rows start in it."""
        if position not in self._indexes and self.cut_from is not None:
            whole, kept = self.cut_from
            self._indexes[position] = _cut(*whole.index(position), kept)
        elif position not in self._indexes:
            column = self.rows[:, position]
            starts = np.zeros(self.constants + 1, np.int64)
            np.cumsum(np.bincount(column, minlength=self.constants), out=starts[1:])
            is_sorted = position == 0 and bool((column[1:] >= column[:-1]).all())
            order = np.arange(len(column)) if is_sorted else np.argsort(column, kind="stable")
            self._indexes[position] = order, starts
        return self._indexes[position]

    def distinct(self, position: int) -> int:
        """The number of distinct constants at a position."""
        return int(np.count_nonzero(np.diff(self.index(position)[1])))

    def holds(self, columns: list[np.ndarray]) -> Bool[np.ndarray, " atoms"]:
        """Whether each atom, given by its arguments position by position, is one of these."""
        return np.isin(self.encode(columns), self.codes)

    def without(self, codes: Codes) -> "Relation":
        """The relation without these atoms; itself where it holds none of them."""
        kept = ~np.isin(self.codes, codes)
        if kept.all():
            return self
        return replace(self, codes=self.codes[kept], rows=self.rows[kept], cut_from=(self, kept), _indexes={})


def _cut(order: np.ndarray, starts: np.ndarray, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An index where only some rows are kept, and numbered anew: nothing is sorted again."""
    stays = kept[order]
    before = np.concatenate([[0], np.cumsum(stays)])
    return (np.cumsum(kept) - 1)[order[stays]], before[starts]
