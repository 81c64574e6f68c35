"""Rules -> ground rules: the part of a grounding that given atoms can feel."""

import numpy as np

from r2n.grounding.ground_rules import Grounding, GroundRules
from r2n.knowledge.code_sets import are_among, distinct
from r2n.knowledge.herbrand import Codes


def reached_by(grounding: Grounding, atoms: Codes, steps: int | None = None) -> Grounding:
    """The ground rules within `steps` (None: any number) of the atoms: no other can change what they are told.

    One step leads from an atom to the ground rules it stands in, and on to all their atoms.
    """
    codes = grounding.atoms
    rows = [np.searchsorted(codes, part.atoms) for part in grounding.ground_rules]
    felt = are_among(codes, distinct(atoms))
    kept = [np.zeros(len(part), bool) for part in rows]
    done = 0
    while steps is None or done < steps:
        before = np.count_nonzero(felt)
        kept = [np.any(felt[part], axis=1) for part in rows]
        for part, keep in zip(rows, kept, strict=True):
            felt[part[keep]] = True
        done += 1
        if np.count_nonzero(felt) == before:
            break
    parts = zip(grounding.ground_rules, kept, strict=True)
    return Grounding(tuple(_restricted(part, keep) for part, keep in parts))


def _restricted(part: GroundRules, keep: np.ndarray) -> GroundRules:
    if keep.all():
        return part
    return GroundRules(part.rule, part.atoms[keep], part.estimate, part.seconds)


def reached_atoms(grounding: Grounding, atoms: Codes) -> np.ndarray:
    """Whether each of the atoms stands in any ground rule; bool (atoms,)."""
    return are_among(atoms, grounding.atoms)
