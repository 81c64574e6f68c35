"""Predictions -> a trained network: L_sup on atoms and L_sem on ground rules (eqs. 6-7), each its own mean."""

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits


def supervised_loss(out: Float[Tensor, " atoms"], truth: Bool[Tensor, " atoms"]) -> Float[Tensor, ""]:
    """L_sup by binary cross-entropy, the mean over the atoms asked; zero where none is."""
    if not len(out):
        return out.sum()
    return binary_cross_entropy_with_logits(out, truth.to(out))


def softmax_loss(
    true: Float[Tensor, " rows"], corrupted: Float[Tensor, "rows candidates"], allowed: Bool[Tensor, "rows candidates"]
) -> Float[Tensor, ""]:
    """L_sup by the negative softmax: minus the log of each fact's share among itself and its corruptions."""
    if not len(true):
        return true.sum()
    candidates = corrupted.masked_fill(~allowed, -torch.inf)
    both = torch.cat([true.unsqueeze(1), candidates], dim=1)
    return (torch.logsumexp(both, dim=1) - true).mean()


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
