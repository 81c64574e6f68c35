"""What is known: sets of codes as arrays in order, found by sorting; numpy's own ways hash, many times slower."""

import numpy as np
from jaxtyping import Bool

from r2n.knowledge.herbrand import Codes


def distinct(codes: Codes) -> Codes:
    """The codes in order, each once."""
    ordered = np.sort(codes)
    return ordered[_is_first(ordered)]


def union(*parts: Codes) -> Codes:
    """The codes of all parts in order, each once."""
    return distinct(np.concatenate([np.zeros(0, np.int64), *parts]))


def are_among(codes: Codes, ordered: Codes) -> Bool[np.ndarray, " codes"]:
    """Whether each code is one of those that are given in order."""
    if not len(ordered):
        return np.zeros(len(codes), bool)
    places = np.searchsorted(ordered, codes)
    return ordered[np.minimum(places, len(ordered) - 1)] == codes


def _is_first(ordered: Codes) -> Bool[np.ndarray, " codes"]:
    first = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return first
