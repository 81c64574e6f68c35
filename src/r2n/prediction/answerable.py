"""A trained network, asked: which atoms the rules tell something about, where their constants tell nothing."""

from jaxtyping import Bool, Int64
from torch import Tensor, ones_like

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
            found[rows[missing & (_distinct(rows, missing) == 1)]] = True
            found[rows[before[rows].any(dim=1)]] = True
        if bool((found == before).all()):
            break
    return found


def _distinct(
    rows: Int64[Tensor, "rules positions"], which: Bool[Tensor, "rules positions"]
) -> Int64[Tensor, "rules 1"]:
    """How many different atoms each ground rule has among the marked positions; one may stand at several."""
    ordered, order = rows.sort(dim=1)
    is_first = ones_like(which)
    is_first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return (which.gather(1, order) & is_first).sum(dim=1, keepdim=True)
