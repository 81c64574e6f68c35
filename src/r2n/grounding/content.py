"""Rules -> ground rules: what a grounding depends on, as a digest that one process and many find alike.

A table is told by the number of its rows and the exclusive or of their hashes: nobody has to see them in order.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from r2n.grounding.ground_rules import Grounder
from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.logic.theory import Theory

Tally = tuple[int, int]
"""The number of rows, and the exclusive or of their hashes."""

_SEED = 42  # Spark's, of xxhash64
_PRIMES = tuple(
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)


@dataclass(frozen=True)
class Content:
    """The tallies of constants (by name), domains (by id) and known atoms (by ids, for each predicate and truth)."""

    constants: Tally
    domains: Sequence[Tally]
    known: Mapping[tuple[int, bool], Tally]

    def digest(self, theory: Theory, grounder: Grounder) -> str:
        """One digest of these, a theory and a strategy."""
        known = [[p, truth, *tally] for (p, truth), tally in sorted(self.known.items()) if tally[0]]
        told = [repr(grounder), str(theory), self.constants, list(self.domains), known]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def content_of(knowledge: KnowledgeBase) -> Content:
    """Of a knowledge base in this process."""
    language = knowledge.language
    names = 0
    for name in language.constants:
        names ^= int(hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[:15], 16)
    known = {}
    for p, predicate in enumerate(language.predicates):
        known[p, True] = _tally(knowledge.facts(predicate))
        known[p, False] = _tally(knowledge.false_facts(predicate))
    domains = [_tally(language.members(domain)[:, None]) for domain in language.domains]
    return Content((len(language.constants), names), domains, known)


def _tally(rows: np.ndarray) -> Tally:
    hashes = xxhash64(list(rows.T))
    return len(rows), int(np.bitwise_xor.reduce(hashes.view(np.int64), initial=0))


def xxhash64(columns: Sequence[np.ndarray]) -> np.ndarray:
    """The hash of each row of 64-bit integers, as Spark's function of this name gives it; uint64."""
    hashes = np.full(len(columns[0]), _SEED, np.uint64)
    for column in columns:
        hashes = _hashed(np.ascontiguousarray(column, np.int64).view(np.uint64), hashes)
    return hashes


def _hashed(values: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    one, two, three, four, five = _PRIMES
    found = seeds + five + np.uint64(8)
    found = found ^ (_rotated(values * two, 31) * one)
    found = _rotated(found, 27) * one + four
    found = (found ^ (found >> np.uint64(33))) * two
    found = (found ^ (found >> np.uint64(29))) * three
    return found ^ (found >> np.uint64(32))


def _rotated(values: np.ndarray, by: int) -> np.ndarray:
    return (values << np.uint64(by)) | (values >> np.uint64(64 - by))
