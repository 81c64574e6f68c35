"""Who decides: which atoms the rules tell something about, where their constants tell nothing."""

from jaxtyping import Bool
from torch import Tensor

from r2n.graph.factor_graph import FactorGraph


def supported(
    graph: FactorGraph, sources: Bool[Tensor, " atoms"], known: Bool[Tensor, " atoms"], steps: int
) -> Bool[Tensor, " atoms"]:
    """The atoms that ground rules connect, within `steps`, with a source, or with atoms that are all known.

    Each reasoning layer is a step: it leads from an atom to the others of its ground rules. A source is an open atom of
    constants that the training had, or an open fact. Closed atoms are none: that a border is there says nothing of its
    two sides. But a ground rule that misses one atom only supports that.
    """
    found = sources.clone()
    for _ in range(steps):
        before = found.clone()
        for rows in graph.neighbours:
            missing = ~known[rows]
            found[rows[missing & (missing.sum(dim=1, keepdim=True) == 1)]] = True
            found[rows[before[rows].any(dim=1)]] = True
        if bool((found == before).all()):
            break
    return found
