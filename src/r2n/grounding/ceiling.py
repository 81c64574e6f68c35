"""Rules -> ground rules: how many bytes the work may hold at a time, and the refusal of what would need more."""

from collections.abc import Sequence
from dataclasses import dataclass

from r2n.errors import MemoryLimitError


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most bytes that work may hold at a time; None: nobody has set any."""

    most: int | None = None

    def fitting(self, each: int, at_most: int) -> int:
        """How many pieces of `each` bytes fit, one at least and `at_most` at most."""
        return at_most if self.most is None else min(at_most, max(1, self.most // each))

    def check(self, needed: int, *, what: str, ways_out: Sequence[str]) -> None:
        """Refuse what needs more bytes; `what` is the subject of a sentence."""
        if self.most is not None and needed > self.most:
            raise MemoryLimitError(
                f"{what} needs about {shown_size(needed)}, more than the {shown_size(self.most)} that it may take",
                hint="; or ".join([*ways_out, "allow more with --memory SIZE"]),
            )


UNLIMITED = Ceiling()


def shown_size(size: int) -> str:
    """`95 GB`, `18.4 GB`, `512 MB`."""
    number, unit = (size / 1e9, "GB") if size >= 1e9 else (size / 1e6, "MB")
    return f"{number:,.0f} {unit}" if number >= 100 else f"{number:.3g} {unit}"
