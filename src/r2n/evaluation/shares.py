"""Predictions -> numbers: work that is cut into numbered parts, done by one process or by several.

The parts are the same for any number of processes, so the numbers are too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

Part = TypeVar("Part")


@runtime_checkable
class Share(Protocol):
    """What one process does of the work of `count`."""

    @property
    def count(self) -> int:
        """How many processes there are."""
        ...

    def takes(self, number: int) -> bool:
        """Whether a part is done here."""
        ...

    def together(self, own: Sequence[tuple[int, Part]]) -> list[Part]:
        """The parts done here, and, in the process that asked for the work, those of all, by their numbers."""
        ...


@dataclass(frozen=True, slots=True)
class Alone:
    """All of the work."""

    count: int = 1

    def takes(self, number: int) -> bool:
        """Every part."""
        return True

    def together(self, own: Sequence[tuple[int, Part]]) -> list[Part]:
        """The parts done here are all."""
        return in_order(own)


def in_order(parts: Sequence[tuple[int, Part]]) -> list[Part]:
    """Parts by their numbers."""
    return [part for _, part in sorted(parts, key=lambda pair: pair[0])]


ALONE = Alone()
