"""How far a piece of work is, told in one form by all who work to whoever called."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Told as (phase, steps done, steps in all); in all 0 where that is not known.

The phases of a command: "read", "mine", "ground", "count", "lay out", "train", "evaluate", "report". A phase is
announced by its first call.
"""


def no_progress(phase: str, done: int, total: int) -> None:
    """Tell nobody."""


def shown_duration(seconds: float) -> str:
    """`12 s`, `3 min 5 s`, `2 h 5 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"
