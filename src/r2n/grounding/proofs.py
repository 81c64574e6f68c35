"""Rules -> ground rules: which of them rest on evidence, by rounds of proof."""

import numpy as np

from r2n.grounding.ground_rules import distinct_codes
from r2n.knowledge.knowledge_base import KnowledgeBase
from r2n.logic.theory import Rule


def keep_proved(
    knowledge: KnowledgeBase, rules: tuple[Rule, ...], atoms: list[np.ndarray], rounds: int
) -> list[np.ndarray]:
    """The ground rules (codes, one array a rule) whose body literals are all known, or proved within `rounds`.

    An atom is proved in a round if it is in the consequent of a ground rule whose unknown body atoms were all
    proved in the rounds before; a denied literal that is not known is never proved.
    """
    codes = distinct_codes(atoms)
    rows = [np.searchsorted(codes, part) for part in atoms]
    known = [_known(knowledge, rule, part) for rule, part in zip(rules, atoms, strict=True)]
    proved = np.zeros(len(codes), bool)

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
        for part in proved_now:
            proved[part] = True
    return [
        part[rests(rule, row, known_part)]
        for rule, part, row, known_part in zip(rules, atoms, rows, known, strict=True)
    ]


def _known(knowledge: KnowledgeBase, rule: Rule, atoms: np.ndarray) -> np.ndarray:
    """Whether each body literal is known; bool (ground_rules, literals)."""
    evidence = knowledge.evidence
    known = np.zeros((len(atoms), len(rule.body)), bool)
    for i, literal in enumerate(rule.body):
        codes = atoms[:, literal.position]
        is_true = np.isin(codes, evidence.atoms[evidence.truth])
        if literal.positive:
            known[:, i] = is_true
        elif knowledge.theory.is_closed(rule, literal.position):
            known[:, i] = ~is_true
        else:
            known[:, i] = np.isin(codes, evidence.atoms[~evidence.truth])
    return known
