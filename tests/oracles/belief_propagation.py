"""The paper's max-product recursion, and exact answers, by loops over assignments."""

from itertools import product
from math import exp, log

Row = tuple[int, ...]
Assignment = tuple[bool, ...]
Beliefs = list[tuple[float, float]]  # log b(false), log b(true)


def paper_iteration(
    beliefs: Beliefs, factors: list[tuple[list[Assignment], list[Row]]], impossible: float
) -> list[list[float]]:
    """Eq. 9: for each atom and value, over its ground rules, the best satisfying assignment of the other positions.

    A factor is a rule's satisfying assignments with its ground rules; an atom in several positions hears from each.
    """
    updated = [[0.0, 0.0] for _ in beliefs]
    for satisfying, rows in factors:
        for row in rows:
            for i, atom in enumerate(row):
                for value in (False, True):
                    sums = [
                        sum(beliefs[row[j]][x] for j, x in enumerate(assignment) if j != i)
                        for assignment in satisfying
                        if assignment[i] == value
                    ]
                    updated[atom][value] += max(sums) if sums else impossible
    return updated


def joint(beliefs: Beliefs, factors: list[tuple[list[Assignment], list[Row], float]]) -> dict[Assignment, float]:
    """The unnormalised probability of every assignment; a ground rule of weight w that holds gives exp(w)."""
    table = {}
    for assignment in product((False, True), repeat=len(beliefs)):
        total = sum(belief[value] for belief, value in zip(beliefs, assignment, strict=True))
        for satisfying, rows, weight in factors:
            total += weight * sum(tuple(assignment[atom] for atom in row) in satisfying for row in rows)
        table[assignment] = exp(total)
    return table


def marginals(table: dict[Assignment, float]) -> list[float]:
    full = sum(table.values())
    atoms = len(next(iter(table)))
    return [sum(value for assignment, value in table.items() if assignment[i]) / full for i in range(atoms)]


def max_marginals(table: dict[Assignment, float]) -> list[float]:
    """For each atom, the log of the best assignment with it true over the best with it false."""
    atoms = len(next(iter(table)))
    best = [[max(v for a, v in table.items() if a[i] == value) for value in (False, True)] for i in range(atoms)]
    return [log(true) - log(false) for false, true in best]
