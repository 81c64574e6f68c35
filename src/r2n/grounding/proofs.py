"""Rules -> ground rules: which of them rest on evidence, by rounds of proof."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Int64

from r2n.grounding.store import Store
from r2n.logic.theory import Rule

Known = Bool[np.ndarray, "_ _"]
"""Whether each body literal of a rule's ground rules is known; (ground rules, literals)."""


def known_literals(store: Store, rule: Rule, atoms: Int64[np.ndarray, "ground_rules positions"]) -> Known:
    """Whether each body literal is known, in ground rules given by the codes of their atoms."""
    known = np.zeros((len(atoms), len(rule.body)), bool)
    for i, literal in enumerate(rule.body):
        (relation, _), is_in = store.known_by(rule, literal)
        known[:, i] = np.isin(atoms[:, literal.position], relation.codes) == is_in
    return known


def proved(
    rules: Sequence[Rule], rows: Sequence[np.ndarray], known: Sequence[Known], rounds: int
) -> list[Bool[np.ndarray, " _"]]:
    """Which ground rules have only body literals that are known, or proved within `rounds`; one array a rule.

    `rows` are numbers of atoms from 0, position by position; the same number is the same atom. An atom is proved in a
    round if it is in the consequent of a ground rule whose unknown body atoms were all proved in the rounds before; a
    denied literal that is not known is never proved.
    """
    proved = np.zeros(1 + max((int(part.max()) for part in rows if part.size), default=-1), bool)

    def rests(rule: Rule, part: np.ndarray, known_part: np.ndarray) -> np.ndarray:
        holds = np.ones(len(part), bool)
        for i, literal in enumerate(rule.body):
            holds &= known_part[:, i] | (proved[part[:, literal.position]] & literal.positive)
        return holds

    for _ in range(rounds):
        proved_now = [
            part[rests(rule, part, known_part)][:, list(rule.head_positions)].ravel()
            for rule, part, known_part in zip(rules, rows, known, strict=True)
        ]
        before = int(proved.sum())
        for part in proved_now:
            proved[part] = True
        if int(proved.sum()) == before:
            break  # later rounds prove nothing more
    return [rests(rule, part, known_part) for rule, part, known_part in zip(rules, rows, known, strict=True)]
