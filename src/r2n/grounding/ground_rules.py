"""Ground rules as arrays, the interface of strategies, and CSR adjacency."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int64

from r2n.data.herbrand import Codes, ranges, union
from r2n.errors import counted, first_names
from r2n.grounding.store import CHEAPER_SETTINGS, Store
from r2n.logic.theory import Rule
from r2n.progress import Progress, no_progress

MOST_NAMED = 5  # rules that a printed grounding names
BYTES_TIMES_HELD = 2  # codes in the grounding, and rows in the graph that is made of it


@dataclass(frozen=True, eq=False)
class GroundRules:
    """R_j: the ground rules of one rule; rows are distinct and ascend with the substitution, variable by variable."""

    rule: Rule
    atoms: Int64[np.ndarray, "ground_rules positions"]  # atoms[g, i] is the code of ne(g, i)
    seconds: float
    shape: tuple[int, ...] | None = None  # the sizes of the variables' domains if every substitution is there

    def __len__(self) -> int:
        return len(self.atoms)

    def __repr__(self) -> str:
        positions = counted(self.atoms.shape[1], "atom")
        return f"GroundRules('{self.rule.name}': {counted(len(self), 'ground rule')} of {positions})"


@dataclass(frozen=True, eq=False)
class Grounding:
    """R: the ground rules of a theory, one entry per rule in the theory's order."""

    ground_rules: tuple[GroundRules, ...]

    @cached_property
    def atoms(self) -> Codes:
        """Codes of all atoms in ground rules, sorted and distinct."""
        return distinct_codes([part.atoms for part in self.ground_rules])

    def __len__(self) -> int:
        return sum(map(len, self.ground_rules))

    def __repr__(self) -> str:
        of_rules = first_names((f"{part.rule.name} {len(part):,}" for part in self.ground_rules), MOST_NAMED)
        counts = f"{counted(len(self), 'ground rule')} over {counted(len(self.atoms), 'atom')}"
        return f"Grounding({counts}: {of_rules or 'no rule'})"


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    """The ground rules around each of many queries, each ground rule once."""

    grounding: Grounding
    members: tuple[Int64[np.ndarray, "_ 2"], ...]  # for each rule, queries with rows of its ground rules, sorted


@runtime_checkable
class Grounder(Protocol):
    """A strategy: a frozen dataclass of its grounding options, with its `name` and abilities as class attributes."""

    @property
    def reads_evidence(self) -> bool:
        """Whether a ground rule may be there because an atom of an open predicate is known."""
        ...

    def ground(self, store: Store, queries: Codes | None = None, progress: Progress = no_progress) -> Grounding:
        """The grounding of the theory."""
        ...


def ground_each(
    store: Store, ground_rule: Callable[[Store, Rule], GroundRules], progress: Progress = no_progress
) -> Grounding:
    """The ground rules of all rules, one rule after the other, as long as they fit under the memory limit."""
    rules, found = store.knowledge.theory.rules, list[GroundRules]()
    for done, rule in enumerate(rules):
        progress("ground", done, len(rules))
        nothing = GroundRules(rule, np.zeros((0, len(rule.atoms)), np.int64), 0.0)
        found.append(nothing if store.is_left_out(rule) else ground_rule(store, rule))
        needed = BYTES_TIMES_HELD * sum(part.atoms.nbytes for part in found)
        what = f"{counted(sum(map(len, found)), 'ground rule')} of {counted(len(found), 'rule')}"
        store.ceiling.check(needed, what=what, hints=CHEAPER_SETTINGS)
    return Grounding(tuple(found))


def distinct_codes(parts: Sequence[np.ndarray]) -> Codes:
    """The codes in all parts, sorted and distinct; by marking instead of sorting if the codes lie close together."""
    parts = [part for part in parts if part.size]
    if not parts:
        return np.zeros(0, np.int64)
    low, high = min(int(part.min()) for part in parts), max(int(part.max()) for part in parts)
    if high - low < 4 * sum(part.size for part in parts) + 1_000_000:
        seen = np.zeros(high - low + 1, bool)
        for part in parts:
            seen[part.ravel(order="K") - low] = True
        return np.flatnonzero(seen) + low
    return union(*(part.ravel(order="K") for part in parts))


def codes_without(codes: Codes, others: Codes) -> Codes:
    """The codes that are not among the others; both distinct, the order stays."""
    return codes[~np.isin(codes, others, assume_unique=True)]


@dataclass(frozen=True, eq=False)
class Adjacency:
    """CSR adjacency: the targets of source i are `targets[starts[i] : starts[i + 1]]`."""

    starts: Int64[np.ndarray, " _"]
    targets: Int64[np.ndarray, " _"]

    @classmethod
    def build(cls, sources: Int64[np.ndarray, " _"], targets: Int64[np.ndarray, " _"], count: int) -> "Adjacency":
        """The links from each source, below `count`, to the target with the same index."""
        order = np.argsort(sources, kind="stable")
        return cls(np.searchsorted(sources[order], np.arange(count + 1)), targets[order])

    def follow(self, sources: Int64[np.ndarray, " _"]) -> tuple[Int64[np.ndarray, " _"], Int64[np.ndarray, " _"]]:
        """For every target of the sources, the index of its source, and the target itself."""
        owner, found = ranges(self.starts[sources], self.starts[sources + 1] - self.starts[sources])
        return owner, self.targets[found]
