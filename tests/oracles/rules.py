"""What rules do, by plain loops: how often they hold, and what is counted of a clause."""

from collections.abc import Iterable, Sequence

import numpy as np

from r2n.data.knowledge_base import KnowledgeBase
from r2n.logic.formula import Atom
from r2n.logic.theory import Rule
from tests.oracles.formula import holds


def known_truth(knowledge: KnowledgeBase, code: int) -> bool | None:
    """By the evidence, else false where the world is closed."""
    stated = dict(zip(knowledge.evidence.atoms.tolist(), knowledge.evidence.truth.tolist(), strict=True))
    if code in stated:
        return bool(stated[code])
    index, arguments = knowledge.base.decode(np.array([code]))
    predicate = knowledge.language.predicates[int(index[0])]
    if predicate.closed:
        return False
    for part in predicate.closed_parts:
        members = [set(knowledge.language.members(domain).tolist()) for domain in part]
        if all(int(c) in own for c, own in zip(arguments[0], members, strict=False)):
            return False
    return None


def occurrence(
    rule: Rule, ground_rules: Iterable[Sequence[int]], knowledge: KnowledgeBase
) -> tuple[int, int, float | None]:
    """How many ground rules there are, how many of known atoms alone, and the share of these that hold."""
    number, known, hold = 0, 0, 0
    for codes in ground_rules:
        number += 1
        truths = [known_truth(knowledge, code) for code in codes]
        if all(value is not None for value in truths):
            known += 1
            if rule.formula is not None:
                world: dict[Atom, bool] = {a: bool(v) for a, v in zip(rule.atoms, truths, strict=True)}
                hold += holds(rule.formula, world)
    return number, known, hold / known if known and rule.formula is not None else None


Signed = tuple[int, bool]


def clause_counts(
    body: Sequence[Signed], head: Signed, known: list[list[int]], believed: list[list[bool]], says: list[list[bool]]
) -> tuple[int, float, float, int, float | None]:
    """Support, agreement, fidelity, and of the ground rules whose truths are known how many and how often it holds."""
    positions = len(known[0]) if known else 0
    labelled = [any(row[i] == 0 for row in known) for i in range(positions)]
    support = agree = said = judged = right = 0
    for row, held, found in zip(known, believed, says, strict=True):
        if all(held[i] == sign for i, sign in body):
            support += 1
            agree += held[head[0]] == head[1]
            said += found[head[0]] == head[1]
        closed = [0 if value < 0 and not labelled[i] else value for i, value in enumerate(row)]
        if all(closed[i] == int(sign) for i, sign in body) and closed[head[0]] >= 0:
            judged += 1
            right += closed[head[0]] == int(head[1])
    return support, agree / max(1, support), said / max(1, support), judged, right / judged if judged else None
