"""What is known: which atoms are false unless they are stated."""

import numpy as np
from jaxtyping import Bool

from r2n.knowledge.herbrand import Codes, HerbrandBase


def closed_atoms(base: HerbrandBase, codes: Codes) -> Bool[np.ndarray, " atoms"]:
    """Whether each atom is under the closed-world assumption: of a closed predicate, or of a closed part of one."""
    predicates = base.language.predicates
    index, arguments = base.decode(codes)
    closed = np.array([predicate.closed for predicate in predicates], bool)[index]
    for i, predicate in enumerate(predicates):
        for part in predicate.closed_parts:
            inside = index == i
            for position, domain in enumerate(part):
                inside[inside] = base.place(domain, arguments[inside, position]) >= 0
            closed |= inside
    return closed
