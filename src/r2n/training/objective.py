"""Predictions -> a trained network: all that a step minimises, from L_sup to the penalty on vectors."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from r2n.knowledge.contradictions import refuse_copying
from r2n.knowledge.knowledge_base import Evidence
from r2n.knowledge.options import TrainingOptions
from r2n.model.r2n import R2N, Predictions
from r2n.training.batches import Step
from r2n.training.losses import n3_penalty, semantic_loss, softmax_loss, supervised_loss
from r2n.training.regularisation import T_NORMS, fuzzy_loss
from r2n.training.whole_rows import WholeRows


@dataclass(frozen=True, eq=False)
class Losses:
    """The loss of a step, and its parts L_sup, L_sem and that of the t-norm, before their weights."""

    total: Float[Tensor, ""]
    supervised: Float[Tensor, ""]
    semantic: Float[Tensor, ""]
    fuzzy: Float[Tensor, ""]


class Objective:
    """L_sup + semantic_weight L_sem + regularisation_weight L_t-norm + n3 N3 (eqs. 6, 7 and what goes beyond them)."""

    def __init__(self, model: R2N, evidence: Evidence, options: TrainingOptions) -> None:
        """Refuse what could only be learned by reading the answer."""
        refuse_copying(model.evidence_input, options)
        self.model, self.options, self.reads_evidence = model, options, model.evidence_input != "off"
        self.rows: WholeRows | None = None
        if options.loss == "full-softmax" and options.batch_size is None:
            self.rows = WholeRows(
                model.base, evidence, positions=options.corrupted_positions, relation_weight=options.relation_weight
            ).to(model.device)
        self.t_norm = None if options.regularisation == "off" else T_NORMS[options.regularisation]

    def losses(self, step: Step, predictions: Predictions, hidden: Bool[Tensor, " atoms"] | None) -> Losses:
        """The losses of the network's predictions on a step."""
        options, zero = self.options, predictions.atoms.new_zeros(())
        supervised = step.supervised * self._supervised(step, predictions, hidden)
        semantic = step.semantic * self._semantic(step, predictions)
        fuzzy = zero if self.t_norm is None else step.fuzzy * fuzzy_loss(step, predictions.atoms, self.t_norm)
        total = supervised + options.semantic_weight * semantic + options.regularisation_weight * fuzzy
        if options.n3:
            total = total + step.penalty * options.n3 * n3_penalty(self.model.constants.vectors)
        return Losses(total, supervised, semantic, fuzzy)

    def counted(self, step: Step, hidden: Bool[Tensor, " atoms"] | None) -> tuple[int, int, int]:
        """Over how many atoms or facts, known ground rules, and ground rules of a t-norm the means of a step go."""
        targets = step.targets
        asked = targets.asked if self.options.loss == "bce" else targets.facts
        reads = self.reads_evidence and not step.leaves_out and hidden is not None
        own = [None] * len(step.graph.rules) if step.own is None else step.own
        parts = zip(step.graph.rules, step.graph.neighbours, own, strict=True)
        explicit = sum(len(rows if some is None else some) for rule, rows, some in parts if rule.formula is not None)
        supervised = int(hidden[asked].sum()) if reads and hidden is not None else len(asked)
        return supervised, sum(len(known) for known, _ in targets.rules), explicit

    def _supervised(self, step: Step, predictions: Predictions, hidden: Tensor | None) -> Float[Tensor, ""]:
        """L_sup; where evidence is an input, only hidden atoms are asked: the others could read their label.

        In a step that leaves out what it asks, none can.
        """
        out, targets = predictions.atoms, step.targets
        reads = self.reads_evidence and not step.leaves_out
        if self.rows is not None:
            return self.rows.loss(out)
        if self.options.loss == "bce":
            counted = hidden[targets.asked] if reads and hidden is not None else None
            return supervised_loss(out[targets.asked], targets.labels[targets.asked] == 1, counted)
        negatives, allowed, counted = targets.negatives.clamp(min=0), targets.negatives >= 0, None
        if reads and hidden is not None:
            allowed, counted = allowed & hidden[negatives], hidden[targets.facts]
        return softmax_loss(out[targets.facts], out[negatives], allowed, counted)

    def _semantic(self, step: Step, predictions: Predictions) -> Float[Tensor, ""]:
        """L_sem over all rules together, on the ground rules whose atoms are all labelled."""
        if not self.options.semantic_weight or not predictions.rules:
            return predictions.atoms.new_zeros(())
        parts = zip(predictions.rules, step.targets.rules, strict=True)
        outs, truths = zip(*((out[known], truth) for out, (known, truth) in parts), strict=True)
        return semantic_loss(torch.cat(outs), torch.cat(truths))
