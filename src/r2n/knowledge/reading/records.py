"""Any source of facts -> columns of text: what each reader hands over, and the rows it had to refuse."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Int64

from r2n.errors import DataError, Location

EXCERPT = 80
_APART = "make a column of each of its parts, or pick other columns with `columns`"
NO_CONSTANTS = {
    "list": "write a row for each item (frame.explode of pandas and polars does), or pick others with `columns`",
    **dict.fromkeys(("struct", "map", "object"), _APART),
    "number": "keep whole numbers as integers (astype('Int64') of pandas) or as text; where there is no value, leave"
    ' the cell empty, and set empty = "skip"',
}
"""What cells hold that are no constants, and what to do about them."""
OnError = Literal["raise", "skip"]


@dataclass(frozen=True, eq=False, slots=True)
class Fault:
    """Rows of a source that are refused for one reason; the error of each is made only when asked for.

    Rows that were allowed to state nothing are no error: they are only counted.
    """

    rows: Int64[np.ndarray, " rows"]
    error: Callable[[int], DataError]
    is_allowed: bool = False


@runtime_checkable
class Locate(Protocol):
    """Names the place of a row (from 0) of a source, and of one of its columns (from 0)."""

    def __call__(self, row: int, column: int | None = None, /) -> Location:
        """The place."""
        ...


@dataclass(frozen=True, eq=False, slots=True)
class Records:
    """The readable rows of a source, by column.

    `names` are the columns' names, () where the source has none. `rows` says where each row stands in the
    source, from 0: its line in a text file, its record elsewhere. `locate` names that place. `kinds` says for each
    column (none: for no column) which cells are no constants, and what they are: null, or a key of NO_CONSTANTS.
    """

    source: str
    names: tuple[str, ...]
    columns: tuple[pa.Array, ...]
    rows: Int64[np.ndarray, " rows"]
    locate: Locate
    faults: tuple[Fault, ...] = ()
    kinds: tuple[pa.Array, ...] = ()

    def without(
        self, bad: Bool[np.ndarray, " rows"], error: Callable[[int], DataError], *, is_allowed: bool = False
    ) -> "Records":
        """These records minus the bad ones, which `error` explains by their row."""
        if not bad.any():
            return self
        good = np.flatnonzero(~bad)
        columns, kinds = (tuple(part.take(pa.array(good)) for part in parts) for parts in (self.columns, self.kinds))
        faults = (*self.faults, Fault(self.rows[bad], error, is_allowed))
        return Records(self.source, self.names, columns, self.rows[good], self.locate, faults, kinds)

    def called(self, column: int) -> str:
        """How errors call a column."""
        return f"column {column + 1}" + (f" ({self.names[column]})" if self.names else "")

    def with_constants(self, column: int) -> "Records":
        """The records whose cell in that column is one value that can be a constant."""
        if not self.kinds:
            return self
        cells, kinds = self.columns[column], self.kinds[column]

        def error(row: int) -> DataError:
            at = int(np.searchsorted(self.rows, row))
            kind, cell = kinds[at].as_py(), shortened(str(cells[at].as_py()), 40)
            held = f"{cell}, no constant" if "n" in cell else f"{cell}, which has lost its last digits"
            held = held if kind == "number" else f"a{'n' * (kind == 'object')} {kind}, no constant: {cell}"
            what = f"{self.called(column)} holds {held}"
            return DataError(what, where=self.locate(row, column), hint=NO_CONSTANTS[kind])

        return self.without(kinds.is_valid().to_numpy(zero_copy_only=False), error)


@dataclass(frozen=True, eq=False, slots=True)
class Statements:
    """Facts of one arity, each with its predicate and its truth, in the order of the source.

    `names` are those of the columns that hold the arguments, () where the source has none.
    """

    predicates: pa.Array
    arguments: tuple[pa.Array, ...]
    truth: Bool[np.ndarray, " rows"]
    rows: Int64[np.ndarray, " rows"]
    names: tuple[str, ...] = ()


def settle(faults: Sequence[Fault], on_error: OnError) -> tuple[DataError, ...]:
    """Raise the error of the first bad row, or ("skip") give the errors of all, in the source's order."""
    faults = [fault for fault in faults if not fault.is_allowed]
    if not faults:
        return ()
    if on_error == "raise":
        first = min(faults, key=lambda fault: fault.rows[0])
        raise first.error(int(first.rows[0]))
    found = [(int(row), fault.error) for fault in faults for row in fault.rows]
    return tuple(error(row) for row, error in sorted(found, key=lambda pair: pair[0]))


def shortened(text: str, keep: int = EXCERPT) -> str:
    """The text, cut after `keep` characters."""
    return text if len(text) <= keep else text[: keep - 1] + "…"
