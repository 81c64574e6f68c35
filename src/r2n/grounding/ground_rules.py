"""Rules -> ground rules: what a grounding is, who makes one, and the budget it keeps."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Int64

from r2n.errors import GroundingError
from r2n.knowledge.herbrand import Codes, HerbrandBase
from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.logic.formula import Constant
from r2n.logic.theory import Rule

MAX_GROUNDINGS = 20_000_000

Progress = Callable[[int, int], None]
"""Told as (steps done, steps in all)."""


def no_progress(done: int, total: int) -> None:
    """Tell nobody."""


@dataclass(frozen=True, eq=False)
class GroundRules:
    """R_j: the ground rules of one rule.

    `atoms[g, i]` is the code of ne(g, i). Rows are distinct and ascend with the substitution, variable by
    variable. `shape` gives the sizes of the variables' domains where every substitution is there, else None.
    """

    rule: Rule
    atoms: Int64[np.ndarray, "ground_rules positions"]
    estimate: int
    seconds: float
    shape: tuple[int, ...] | None = None

    def __len__(self) -> int:
        """The number of ground rules."""
        return len(self.atoms)


@dataclass(frozen=True, eq=False)
class Grounding:
    """R: the ground rules of a theory, one entry per rule in the theory's order."""

    ground_rules: tuple[GroundRules, ...]

    @cached_property
    def atoms(self) -> Codes:
        """Codes of all atoms in ground rules, sorted and distinct."""
        return distinct_codes([part.atoms for part in self.ground_rules])

    def __len__(self) -> int:
        """The number of ground rules of all rules."""
        return sum(map(len, self.ground_rules))


@runtime_checkable
class Grounder(Protocol):
    """A strategy: knowledge, and the queries to ground around, -> the grounding."""

    def ground(
        self, knowledge: KnowledgeBase, queries: Codes | None = None, progress: Progress = no_progress
    ) -> Grounding:
        """The grounding of the knowledge's theory."""
        ...


def distinct_codes(parts: list[np.ndarray]) -> Codes:
    """The codes in all parts, sorted and distinct; by marking instead of sorting where the codes lie close."""
    parts = [part for part in parts if part.size]
    if not parts:
        return np.zeros(0, np.int64)
    low, high = min(int(part.min()) for part in parts), max(int(part.max()) for part in parts)
    if high - low < 4 * sum(part.size for part in parts) + 1_000_000:
        seen = np.zeros(high - low + 1, bool)
        for part in parts:
            seen[part.ravel(order="K") - low] = True
        return np.flatnonzero(seen) + low
    return np.unique(np.concatenate([part.ravel(order="K") for part in parts]))


Substitutions = Int64[np.ndarray, "_ variables"]


def encode_substitutions(
    base: HerbrandBase, rule: Rule, substitutions: Substitutions
) -> Int64[np.ndarray, "ground_rules positions"]:
    """The codes of the rule's atoms under substitutions: constant ids, a column for each of the rule's variables."""
    columns = dict(zip(rule.variables, substitutions.T, strict=True))
    atoms = np.empty((len(rule.atoms), len(substitutions)), np.int64)
    for i, atom in enumerate(rule.atoms):
        arguments = [
            np.asarray(base.language.constant_id(term.name)) if isinstance(term, Constant) else columns[term.name]
            for term in atom.terms
        ]
        atoms[i] = base.encode_columns(base.language.predicate(atom.predicate), arguments)
    return atoms.T


def are_candidates(
    knowledge: KnowledgeBase, rule: Rule, atoms: Int64[np.ndarray, "ground_rules positions"]
) -> Bool[np.ndarray, " ground_rules"]:
    """Whether all atoms of a ground rule are candidates, as far as their predicates have any."""
    kept = np.ones(len(atoms), bool)
    for i, atom in enumerate(rule.atoms):
        if atom.predicate in knowledge.candidates:
            kept &= np.isin(atoms[:, i], knowledge.candidates[atom.predicate])
    return kept


def sorted_substitutions(substitutions: Substitutions, constants: int, *, distinct: bool = False) -> Substitutions:
    """Substitutions over ids below `constants` in ascending order, variable by variable; `distinct`: each once."""
    count, variables = substitutions.shape
    if constants**variables < 2**63:  # one number a substitution sorts faster than several columns
        key = np.zeros(count, np.int64)
        for column in substitutions.T:
            key = key * constants + column
        if bool((key[1:] > key[:-1]).all()):
            return substitutions
        order = np.unique(key, return_index=True)[1] if distinct else np.argsort(key)
        return substitutions.T[:, order].T
    order = np.lexsort(substitutions.T[::-1])
    ordered = substitutions.T[:, order].T
    if distinct and count:
        ordered = ordered[np.concatenate([[True], (np.diff(ordered, axis=0) != 0).any(axis=1)])]
    return ordered


def check_budget(rule: Rule, estimate: int, limit: int, *, exact: bool) -> None:
    """Refuse a rule whose ground rules would be more than `limit`, before any are made."""
    if estimate > limit:
        about = "" if exact else "about "
        raise GroundingError(
            f"rule '{rule.name}' has {about}{estimate:,} groundings, more than max_groundings = {limit:,}",
            hint="narrow the domains of its variables (x: DOMAIN), close a predicate of its body, or take another"
            " strategy (known-body, backward); or raise max_groundings",
        )
