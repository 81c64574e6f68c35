"""Paths, counted by trying every constant in every place."""

from collections.abc import Sequence
from itertools import product

import numpy as np


def path_counts(steps: Sequence[np.ndarray], distinct: bool) -> np.ndarray:
    """Number of paths from each x to each y, with one matrix of truths (or multiplicities) a step."""
    constants = len(steps[0])
    counts = np.zeros((constants, constants), int)
    for places in product(range(constants), repeat=len(steps) + 1):
        if distinct and len(set(places)) < len(places):
            continue
        ways = 1
        for step, start, end in zip(steps, places, places[1:], strict=False):
            ways *= int(step[start, end])
        counts[places[0], places[-1]] += ways
    return counts
