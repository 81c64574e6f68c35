"""Two networks on the same queries, by plain loops: every way to swap their results, each as likely as the other."""

from collections.abc import Callable, Sequence
from itertools import product

Pairs = Sequence[tuple[float, float]]


def share_at_least(pairs: Pairs, statistic: Callable[[Pairs], float]) -> float:
    """Twice the smaller share of all swaps with a statistic up to, or from, that of the pairs; 1 at most."""
    own, below, above, total = statistic(pairs), 0, 0, 0
    for swaps in product((False, True), repeat=len(pairs)):
        found = statistic([(b, a) if swapped else (a, b) for (a, b), swapped in zip(pairs, swaps, strict=True)])
        below += found <= own + 1e-12
        above += found >= own - 1e-12
        total += 1
    return min(1.0, 2 * min(below, above) / total)


def mean_difference(pairs: Pairs) -> float:
    """Of the second minus the first."""
    return sum(b - a for a, b in pairs) / len(pairs)
