"""How far a piece of work is, told in one form by all who work to whoever called."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Told as (phase, steps done, steps in all); in all 0 where that is not known.

The phases of a command: "read", "mine", "ground", "count", "lay out", "train", "evaluate", "report". A phase is
announced by its first call.
"""


def no_progress(phase: str, done: int, total: int) -> None:
    """Tell nobody."""
