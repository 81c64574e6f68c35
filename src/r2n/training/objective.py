"""The objective of a step: supervised, semantic and regularisation terms."""

from collections.abc import Callable
from copy import copy

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid

from r2n.components import losses, t_norms
from r2n.data.herbrand import HerbrandBase
from r2n.data.knowledge_base import Evidence
from r2n.data.validation import check_has_explicit_rules, check_has_facts, check_no_copying
from r2n.network.mean_field import TNorm, Truths, fuzzy_truth
from r2n.network.r2n import R2N, Predictions
from r2n.options import TrainingOptions
from r2n.training.batches import Losses, Step, loss_counts
from r2n.training.negatives import asked_positions, labelled_shares


def product(left: Truths, right: Truths) -> Truths:
    """T(a, b) = a b."""
    return left * right


def goedel(left: Truths, right: Truths) -> Truths:
    """T(a, b) = min(a, b)."""
    return torch.minimum(left, right)


def lukasiewicz(left: Truths, right: Truths) -> Truths:
    """T(a, b) = max(0, a + b - 1)."""
    return (left + right - 1).clamp(min=0)


def fuzzy_loss(step: Step, out: Float[Tensor, " atoms"], t_norm: TNorm) -> Float[Tensor, ""]:
    """The mean over the step's ground rules of explicit rules of 1 - their fuzzy truth on the outputs; zero for none.

    An atom under the closed-world assumption enters with its truth, all others with sigmoid(out(a)).
    """
    check_has_explicit_rules(step.graph.rules)
    targets = step.targets
    closed_truth = ((targets.labels == 1) & ~targets.open_atoms).to(out)
    truths = torch.where(targets.open_atoms, torch.sigmoid(out), closed_truth)
    counted = step.graph.neighbours
    if step.own is not None:
        counted = [rows[own] for rows, own in zip(counted, step.own, strict=True)]
    found = [
        fuzzy_truth(rule.formula, truths.index_select(0, rows.flatten()).view(rows.shape), t_norm)
        for rule, rows in zip(step.graph.rules, counted, strict=True)
        if rule.formula is not None
    ]
    unmet = 1 - torch.cat(found)
    return unmet.mean() if len(unmet) else unmet.sum()


def binary_cross_entropy(
    out: Float[Tensor, " atoms"], truth: Bool[Tensor, " atoms"], counted: Bool[Tensor, " atoms"] | None = None
) -> Float[Tensor, ""]:
    """L_sup by binary cross-entropy, the mean over the atoms asked (and `counted`); zero for none."""
    if not len(out):
        return out.sum()
    if counted is None:
        return binary_cross_entropy_with_logits(out, truth.to(out))
    return _mean(binary_cross_entropy_with_logits(out, truth.to(out), reduction="none"), counted)


def _mean(values: Float[Tensor, " n"], counted: Bool[Tensor, " n"]) -> Float[Tensor, ""]:
    """The mean of those that are counted, by weights."""
    weights = counted.to(values)
    return (values * weights).sum() / weights.sum().clamp(min=1)


def labelled_logits(logits: Float[Tensor, " n"], shares: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """The logit that an atom is labelled true, if this share of the true ones is: of share * sigmoid(logit)."""
    is_all = shares == 1
    found = torch.log(shares) + logsigmoid(logits) - torch.log1p(-shares * torch.sigmoid(logits).masked_fill(is_all, 0))
    return torch.where(is_all, logits, found)


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
    losses = torch.logsumexp(both, dim=1) - true
    return losses.mean() if counted is None else _mean(losses, counted)


def n3_penalty(vectors: Float[Tensor, "batch dim"]) -> Float[Tensor, ""]:
    """N3: the mean over vectors of the sum of cubed absolute components; zero for none."""
    return vectors.abs().pow(3).sum(-1).mean() if len(vectors) else vectors.sum()


class BaseSoftmax:
    """L_sup by the softmax over all candidates of each fact's queries, from the logits of the full Herbrand base.

    The loss is the mean over facts and positions of minus the log of the fact's probability among the candidates; with
    `relation_weight`, a fact is also compared with the other predicates of its constants, as a mean of its own.
    """

    def __init__(self, base: HerbrandBase, evidence: Evidence, options: TrainingOptions) -> None:
        """The positions to ask for are `corrupted_positions` (all by default; negative ones count from the end)."""
        check_has_facts(evidence)
        self.base, self.relation_weight = base, options.relation_weight
        index, arguments = base.decode(evidence.facts)
        groups: dict[tuple[object, ...], list[int]] = {}
        for i, predicate in enumerate(base.language.predicates):
            groups.setdefault((predicate.domains, predicate.reciprocal_of is None), []).append(i)
        self.groups: list[tuple[list[int], list[int], tuple[Tensor, ...]]] = []
        for predicates in groups.values():
            which = np.isin(index, predicates)
            if not which.any():
                continue
            domains = base.language.predicates[predicates[0]].domains
            asked = asked_positions(options.corrupted_positions, len(domains))
            indices = [base.index_in(domain, arguments[which, i]) for i, domain in enumerate(domains)]
            facts = tuple(torch.from_numpy(np.array(x)) for x in (np.searchsorted(predicates, index[which]), *indices))
            self.groups.append((predicates, asked, facts))

    def to(self, device: torch.device) -> "BaseSoftmax":
        """The same on another device."""
        moved = copy(self)
        moved.groups = [(*group[:2], tuple(part.to(device) for part in group[2])) for group in self.groups]
        return moved

    def __call__(self, out: Float[Tensor, " atoms"]) -> Float[Tensor, ""]:
        """The loss of the logits of all atoms of the base."""
        rows, relations = [], []
        for predicates, asked, facts in self.groups:
            starts = [int(self.base.offsets[i]) for i in predicates]
            size = int(self.base.offsets[predicates[0] + 1]) - starts[0]
            if predicates == list(range(predicates[0], predicates[-1] + 1)):
                grid = out[starts[0] : starts[0] + size * len(predicates)]
            else:
                grid = torch.stack([out[start : start + size] for start in starts])
            grid = grid.view(len(predicates), *self.base.shapes[predicates[0]])
            true = grid[facts]
            for position in asked:
                others = [part for axis, part in enumerate(facts) if axis != position + 1]
                rows.append(torch.logsumexp(grid, dim=position + 1)[tuple(others)] - true)
            if self.relation_weight:
                relations.append(torch.logsumexp(grid, dim=0)[facts[1:]] - true)
        loss = torch.cat(rows).mean()
        return loss + self.relation_weight * torch.cat(relations).mean() if relations else loss


class Objective:
    """L_sup + semantic_weight L_sem + regularisation_weight L_t-norm + n3 N3 (eqs. 6, 7 and what goes beyond them)."""

    def __init__(self, model: R2N, evidence: Evidence, options: TrainingOptions) -> None:
        """Refuse what could only be learned by reading the answer."""
        check_no_copying(model.evidence_input, options)
        self.model, self.options, self.reads_evidence = model, options, model.evidence_input != "off"
        loss = losses[options.loss].load()
        if options.asks_base and options.batch_size is None:  # steps over candidates have losses of their own
            loss = loss(model.base, evidence, options).to(model.device)
        elif not options.asks_base and isinstance(loss, type):
            loss = loss()
        self.loss: Callable[..., Tensor] = loss
        self.t_norm = None if options.regularisation == "off" else t_norms[options.regularisation].load()
        self.shares: Tensor | None = None
        if options.prior is not None:
            shares = labelled_shares(model.base, evidence, options.prior)
            self.shares = torch.from_numpy(shares).float().to(model.device)

    def losses(self, step: Step, predictions: Predictions, hidden: Bool[Tensor, " atoms"] | None) -> Losses:
        """The losses of the network's predictions on a step."""
        options, zero = self.options, predictions.atoms.new_zeros(())
        supervised = step.weights[0] * self._supervised(step, predictions, hidden)
        semantic = zero
        if options.semantic_weight and predictions.rules:  # over all rules together, where all atoms are labelled
            parts = zip(predictions.rules, step.targets.rules, strict=True)
            outs, truths = zip(*((out[known], truth) for out, (known, truth) in parts), strict=True)
            semantic = step.weights[1] * binary_cross_entropy(torch.cat(outs), torch.cat(truths))
        fuzzy = zero if self.t_norm is None else step.weights[2] * fuzzy_loss(step, predictions.atoms, self.t_norm)
        total = supervised + options.semantic_weight * semantic + options.regularisation_weight * fuzzy
        if options.n3:
            total = total + step.penalty * options.n3 * n3_penalty(self.model.constants.vectors)
        return Losses(total, supervised, semantic, fuzzy)

    def counted(self, step: Step, hidden: Bool[Tensor, " atoms"] | None) -> tuple[int, int, int]:
        """Over how many atoms or facts, known ground rules, and ground rules of a t-norm the means of a step go."""
        asked = step.targets.facts if self.options.compares_facts else step.targets.asked
        reads = self.reads_evidence and not step.leaves_out and hidden is not None
        return loss_counts(step, int(hidden[asked].sum()) if reads and hidden is not None else len(asked))

    def _supervised(self, step: Step, predictions: Predictions, hidden: Tensor | None) -> Float[Tensor, ""]:
        """L_sup; if evidence is an input, only masked atoms count, unless queries are left out: others read labels."""
        out, targets = predictions.atoms, step.targets
        reads = self.reads_evidence and not step.leaves_out
        if self.options.asks_base:
            return self.loss(out)
        if not self.options.compares_facts:
            counted = hidden[targets.asked] if reads and hidden is not None else None
            logits = out[targets.asked]
            if self.shares is not None:
                logits = labelled_logits(logits, self.shares[step.batch.predicates[targets.asked]])
            return self.loss(logits, targets.labels[targets.asked] == 1, counted)
        negatives, allowed, counted = targets.negatives.clamp(min=0), targets.negatives >= 0, None
        if reads and hidden is not None:
            allowed, counted = allowed & hidden[negatives], hidden[targets.facts]
        return self.loss(out[targets.facts], out[negatives], allowed, counted)
