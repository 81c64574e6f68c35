"""Tensors -> predictions: whether any world satisfies the rules that hold strictly, and if none, which clash.

What is forced is followed first, in all ground rules at once; that decides Horn rules. What is left is asked of scipy's
solver as a 0/1 program, within bounds of size and time. Rules are then left out as long as the rest still clashes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from r2n.graph.factor_graph import FactorGraph
from r2n.logic.theory import Rule
from r2n.model.belief_propagation import satisfying

MOST_CLAUSES = 100_000
MOST_CELLS = 2**24
MOST_TRIES = 200
SECONDS = 5.0

Truths = Int64[np.ndarray, " atoms"]
"""1 true, 0 false, -1 not known, for each atom of a graph."""


@dataclass(frozen=True, eq=False)
class Clash:
    """Rules that no world satisfies together, given what is known: none of them can be left out (`is_minimal`)."""

    rules: tuple[Rule, ...]
    is_minimal: bool


@dataclass(frozen=True, eq=False)
class _Part:
    """The ground rules of a strict rule: their rows, and the assignments that satisfy or break it."""

    rule: Rule
    rows: np.ndarray
    holds: np.ndarray
    breaks: np.ndarray

    @classmethod
    def of(cls, rule: Rule, rows: np.ndarray) -> "_Part":
        positions = len(rule.atoms)
        holds = np.array(satisfying(rule), bool).reshape(-1, positions)  # refuses too many atoms
        every = (np.arange(2**positions)[:, None] >> np.arange(positions)[::-1]) & 1 == 1
        numbers = holds @ (1 << np.arange(positions)[::-1])
        return cls(rule, rows, holds, np.delete(every, numbers, axis=0))


def find_clash(graph: FactorGraph, truths: Truths) -> Clash | None:
    """The strict rules of a graph that no world satisfies; None where a world does, or where it cannot be told."""
    parts = [
        _Part.of(rule, rows.cpu().numpy())
        for rule, rows in zip(graph.rules, graph.neighbours, strict=True)
        if rule.weight is None and rule.formula is not None and len(rows)
    ]
    if _is_satisfiable(parts, truths) is not False:
        return None
    left_out, tries = True, 0
    size = max(1, len(parts) // 2)
    while left_out or size > 1:
        size = size if left_out else size // 2
        left_out = False
        for start in range(0, len(parts), size):
            rest = [*parts[:start], *parts[start + size :]]
            tries += 1
            if tries > MOST_TRIES:
                return Clash(tuple(part.rule for part in parts), is_minimal=False)
            if rest and _is_satisfiable(rest, truths) is False:
                parts, left_out = rest, True
                break
    return Clash(tuple(part.rule for part in parts), is_minimal=True)


def _is_satisfiable(parts: Sequence[_Part], truths: Truths) -> bool | None:
    """Whether some world satisfies all ground rules; None where that cannot be told within the bounds."""
    forced = _forced(parts, truths)
    return False if forced is None else _is_solvable(parts, forced)


def _forced(parts: Sequence[_Part], truths: Truths) -> Truths | None:
    """What is known, and what follows from one ground rule after another; None where a ground rule cannot hold."""
    truths, before = truths.copy(), -1
    while (known := int((truths >= 0).sum())) > before:
        before = known
        for part in parts:
            step = max(1, MOST_CELLS // max(1, part.holds.size))
            for rows in (part.rows[start : start + step] for start in range(0, len(part.rows), step)):
                fits = _fitting(part.holds, rows, truths)
                if not fits.any(axis=1).all():
                    return None
                for position, is_true in enumerate(part.holds.T):
                    for value in (0, 1):
                        never = ~fits[:, is_true != bool(value)].any(axis=1)
                        truths[rows[never, position]] = value
    return truths


def _fitting(assignments: np.ndarray, rows: np.ndarray, truths: Truths) -> np.ndarray:
    """Which assignments to the atoms of each ground rule agree with what is known, and give an atom one truth."""
    fits = np.ones((len(rows), len(assignments)), bool)
    for position, values in enumerate(assignments.T):
        at = truths[rows[:, position]][:, None]
        fits &= (at < 0) | (at == values)
        for earlier in range(position):
            same = (rows[:, earlier] == rows[:, position])[:, None]
            fits &= ~same | (values == assignments[:, earlier])
    return fits


def _is_solvable(parts: Sequence[_Part], truths: Truths) -> bool | None:
    """Whether what is not known yet can be chosen: each assignment that breaks a ground rule is one to be avoided."""
    places, signs, least = [], [], []
    for part in parts:
        if len(part.rows) * len(part.breaks) > MOST_CLAUSES:
            return None
        clause, ground_rule = np.nonzero(_fitting(part.breaks, part.rows, truths).T)
        rows, broken = part.rows[ground_rule], part.breaks[clause]
        is_free = truths[rows] < 0
        places += [np.where(is_free, rows, -1)]
        signs += [np.where(broken, -1.0, 1.0)]
        least += [1.0 - (broken & is_free).sum(axis=1)]
    if not sum(map(len, least)):
        return True
    if sum(map(len, least)) > MOST_CLAUSES:
        return None
    return _solved(places, signs, np.concatenate(least), len(truths))


def _solved(places: Sequence[np.ndarray], signs: Sequence[np.ndarray], least: np.ndarray, atoms: int) -> bool | None:
    """Ask the solver; an atom that fills two positions of a ground rule counts once."""
    offset, clauses, columns, values = 0, [], [], []
    for where, sign in zip(places, signs, strict=True):
        for position in range(where.shape[1]):
            own = where[:, position]
            again = (where[:, :position] == own[:, None]).any(axis=1)
            kept = np.flatnonzero((own >= 0) & ~again)
            clauses.append(kept + offset)
            columns.append(own[kept])
            values.append(sign[kept, position])
            doubled = np.flatnonzero((own >= 0) & again & (sign[:, position] < 0))
            least[doubled + offset] += 1.0
        offset += len(where)
    indices = np.concatenate(clauses), np.concatenate(columns)
    matrix = csr_array((np.concatenate(values), indices), shape=(len(least), atoms))
    used = np.unique(indices[1])
    found = milp(
        np.zeros(len(used)),
        constraints=LinearConstraint(matrix[:, used], lb=least),  # pyright: ignore[reportArgumentType]
        integrality=np.ones(len(used)),
        bounds=Bounds(0, 1),
        options={"time_limit": SECONDS},
    )
    return {0: True, 2: False}.get(int(found.status))
