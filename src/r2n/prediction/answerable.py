"""A trained network, asked: which atoms the rules tell something about, where their constants tell nothing."""

from jaxtyping import Bool, Int64
from torch import Tensor, ones_like

from r2n.errors import DataError, counted
from r2n.graph.factor_graph import FactorGraph
from r2n.knowledge.herbrand import Codes, HerbrandBase
from r2n.model.r2n import R2N


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


def no_answer(model: R2N, base: HerbrandBase, codes: Codes, *, does_without_vectors: bool) -> DataError:
    """Why the first of some atoms has no answer: a constant of it is new to the network."""
    assert model.trained_ids is not None
    arguments, ids = base.decode(codes[:1])[1][0], model.trained_ids.numpy()
    constant = next(base.language.constants[c] for c in arguments if c >= 0 and ids[c] < 0)
    more = f", nor can {counted(len(codes) - 1, 'other atom')}" if len(codes) > 1 else ""
    if not model.layers:
        why, hint = "the network has no reasoning layer", "train one with model.layers of 1 or more"
    elif not does_without_vectors:
        why = "the network was trained without hiding, so it never learned to do without a vector"
        hint = "train one with training.hiding above 0, or with model.evidence_input = only"
    else:
        why = "no ground rule connects the atom with anything that is known"
        hint = f"tell facts about '{constant}' that lead through the rules to what the training knew"
    return DataError(
        f"{base.names(codes[:1])[0]} cannot be answered{more}: '{constant}' is no constant of the training, and {why}",
        hint=hint,
    )
