"""Facts -> mined rules: what every search is given (thresholds, time) and what it hands over."""

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from r2n.mining.mined_rules import Found


@dataclass(frozen=True)
class Thresholds:
    """What a rule needs to be kept, and how many are, of each predicate as head."""

    min_support: int
    min_confidence: float
    max_rules: int


@dataclass(frozen=True)
class Clock:
    """Who is told of each part of a search that begins, as (parts done, parts in all); and when it must end."""

    tell: Callable[[int, int], None]
    deadline: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether there is no time left."""
        return self.deadline is not None and monotonic() > self.deadline


@dataclass(frozen=True)
class Search:
    """The best rules of one kind (in one part, or none), and how many parts of the search there was time for."""

    found: tuple[Found, ...]
    parts: int
    parts_done: int


def best_of(found: list[Found], thresholds: Thresholds) -> tuple[Found, ...]:
    """The best rules of each head among some, in one part; none of none."""
    return (Found.joined(found).best(thresholds.max_rules),) if found else ()
