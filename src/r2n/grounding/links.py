"""Rules -> ground rules: from numbered things to others, many at once, for whoever walks from atoms to ground rules."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64


@dataclass(frozen=True, eq=False)
class Links:
    """From numbered things to others: those of thing i are `targets[starts[i] : starts[i + 1]]`."""

    starts: Int64[np.ndarray, " _"]
    targets: Int64[np.ndarray, " _"]

    @classmethod
    def build(cls, sources: Int64[np.ndarray, " _"], targets: Int64[np.ndarray, " _"], count: int) -> "Links":
        """The links from each source, below `count`, to the target beside it."""
        order = np.argsort(sources, kind="stable")
        return cls(np.searchsorted(sources[order], np.arange(count + 1)), targets[order])

    def follow(self, sources: Int64[np.ndarray, " _"]) -> tuple[Int64[np.ndarray, " _"], Int64[np.ndarray, " _"]]:
        """For every target of the sources, the place of its source, and the target itself."""
        first, counts = self.starts[sources], self.starts[sources + 1] - self.starts[sources]
        return np.repeat(np.arange(len(sources)), counts), self.targets[ranges(first, counts)]


def ranges(first: Int64[np.ndarray, " _"], counts: Int64[np.ndarray, " _"]) -> Int64[np.ndarray, " _"]:
    """first[0], first[0] + 1, ... so many numbers as counts[0] says, then those of the next, in one array."""
    before = np.cumsum(counts) - counts
    return np.arange(counts.sum()) + np.repeat(first - before, counts)
