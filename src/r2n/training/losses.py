"""Predictions -> a trained network: L_sup on atoms and L_sem on ground rules (eqs. 6-7), each its own mean."""

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits


def supervised_loss(
    out: Float[Tensor, " atoms"], truth: Bool[Tensor, " atoms"], counted: Bool[Tensor, " atoms"] | None = None
) -> Float[Tensor, ""]:
    """L_sup by binary cross-entropy, the mean over the atoms asked (and `counted`); zero where none is."""
    if not len(out):
        return out.sum()
    if counted is None:
        return binary_cross_entropy_with_logits(out, truth.to(out))
    return _mean(binary_cross_entropy_with_logits(out, truth.to(out), reduction="none"), counted)


def _mean(values: Float[Tensor, " n"], counted: Bool[Tensor, " n"]) -> Float[Tensor, ""]:
    """The mean of those that are counted, by weights: which these are is not looked at on the way."""
    weights = counted.to(values)
    return (values * weights).sum() / weights.sum().clamp(min=1)


def softmax_loss(
    true: Float[Tensor, " rows"],
    negatives: Float[Tensor, "rows negatives"],
    allowed: Bool[Tensor, "rows negatives"],
    counted: Bool[Tensor, " rows"] | None = None,
) -> Float[Tensor, ""]:
    """L_sup by the negative softmax: minus the log of each fact's share among itself and its negatives."""
    if not len(true):
        return true.sum()
    both = torch.cat([true.unsqueeze(1), negatives.masked_fill(~allowed, -torch.inf)], dim=1)
    shares = torch.logsumexp(both, dim=1) - true
    return shares.mean() if counted is None else _mean(shares, counted)


def semantic_loss(out: Float[Tensor, " ground_rules"], truth: Bool[Tensor, " ground_rules"]) -> Float[Tensor, ""]:
    """L_sem by binary cross-entropy, the mean over the ground rules whose atoms are all known."""
    return supervised_loss(out, truth)


def n3_penalty(vectors: Float[Tensor, "batch dim"]) -> Float[Tensor, ""]:
    """N3: the mean over vectors of the sum of cubed absolute components; zero where there is none."""
    if not len(vectors):
        return vectors.sum()
    return vectors.abs().pow(3).sum(-1).mean()


def known_ground_rules(
    rows: Int64[Tensor, "ground_rules positions"], labels: Int64[Tensor, " atoms"]
) -> Bool[Tensor, " ground_rules"]:
    """R_j^E: the ground rules whose atoms all have a label (1 true, 0 false, -1 unknown)."""
    return (labels[rows] >= 0).all(dim=1)
