"""Ground rules -> tensors: what is known of each atom of a graph, as a network or an inference reads it."""

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from r2n.knowledge.closed_world import closed_atoms
from r2n.knowledge.herbrand import Codes, HerbrandBase
from r2n.knowledge.knowledge_base import Evidence

UNKNOWN, FALSE, TRUE = 0, 1, 2
"""The three states of an atom."""


def known_states(base: HerbrandBase, atoms: Int64[Tensor, " atoms"], evidence: Evidence) -> Int64[Tensor, " atoms"]:
    """UNKNOWN, FALSE or TRUE for each atom (codes): by the evidence, else FALSE where the world is closed."""
    return torch.from_numpy(known_truths(base, atoms.cpu().numpy(), evidence) + 1).to(atoms.device)


def known_truths(base: HerbrandBase, codes: Codes, evidence: Evidence) -> Int64[np.ndarray, " atoms"]:
    """1 true, 0 false (by the evidence, or by a closed world), -1 unknown, for each atom."""
    truths = np.full(len(codes), -1, np.int64)
    truths[closed_atoms(base, codes)] = 0
    place = np.searchsorted(evidence.atoms, codes)
    found = place < len(evidence.atoms)
    found[found] = evidence.atoms[place[found]] == codes[found]
    truths[found] = evidence.truth[place[found]]
    return truths
