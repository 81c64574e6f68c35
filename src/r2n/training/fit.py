"""Predictions -> a trained network: the training loop, one record an epoch."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from time import perf_counter
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from r2n.errors import ConfigError, R2NError
from r2n.graph.factor_graph import FactorGraph
from r2n.knowledge.knowledge_base import Evidence
from r2n.model.r2n import R2N, Predictions
from r2n.training.batches import Step, steps_of
from r2n.training.losses import n3_penalty, semantic_loss, softmax_loss, supervised_loss
from r2n.training.regularisation import Regularisation, regularisers
from r2n.training.targets import Questions, ask, known_states
from r2n.training.whole_rows import WholeRows

Validate = Callable[[R2N], float]


@dataclass(frozen=True, slots=True)
class Epoch:
    """What one epoch was: its losses, the validation metric where it was measured, and its seconds."""

    number: int
    loss: float
    supervised: float
    semantic: float
    regularisation: float
    valid: float | None
    seconds: float


class DivergedError(R2NError):
    """The loss is no longer a finite number."""


class Trainer:
    """A network in training: yields an Epoch a step, and holds all that is needed to go on later.

    Each epoch is one step over the whole graph, or (`batches`) at most so many over parts of it that share nothing, in
    an order that is drawn anew. `hiding` is the share of open atoms whose input is blanked in a step while their labels
    are still asked, drawn atom by atom, or all atoms with the same first constant together
    (`hide_by="constant"`). With `validate` and `patience`, training stops when the metric (larger is better) has
    not risen for `patience` epochs, and the best weights are restored at the end. `regularisation` names the t-norm by
    which the explicit rules act on the outputs.
    """

    def __init__(
        self,
        model: R2N,
        graph: FactorGraph,
        evidence: Evidence,
        *,
        epochs: int = 300,
        learning_rate: float = 0.01,
        rule_learning_rate: float | None = None,
        schedule: Literal["constant", "cosine"] = "constant",
        semantic_weight: float = 0.1,
        regularisation: Regularisation = "off",
        regularisation_weight: float = 1.0,
        loss: Literal["bce", "softmax", "full-softmax"] = "bce",
        relation_weight: float = 0.0,
        corrupted_positions: Sequence[int] | None = None,
        ask_closed: bool = False,
        negatives: int | None = None,
        hiding: float = 0.3,
        hide_by: Literal["atom", "constant"] = "atom",
        weight_decay: float = 0.0,
        input_weight_decay: float = 0.0,
        n3: float = 0.0,
        clip: float | None = None,
        validate: Validate | None = None,
        validate_every: int = 10,
        patience: int | None = None,
        batches: int | None = None,
        seed: int = 0,
    ) -> None:
        """Everything is given here; nothing random happens before the first step."""
        if model.evidence_input != "off" and not hiding:
            raise ConfigError(
                "a network that reads evidence and hides none of it learns to copy it",
                hint="set training.hiding above 0",
            )
        if model.evidence_input != "off" and loss == "full-softmax":
            raise ConfigError(
                "full-softmax asks every fact, so that a network that reads evidence learns to copy it",
                hint="take loss = 'softmax' or 'bce', which ask hidden facts alone",
            )
        if batches is not None and loss != "bce":
            raise ConfigError(
                f"loss = '{loss}' compares atoms of the whole graph, so that it cannot be trained in batches",
                hint="take loss = 'bce', or leave training.batches out",
            )
        self.model, self.graph, self.evidence = model, graph, evidence
        self.rows: WholeRows | None = None
        if loss == "full-softmax":
            if len(graph.atoms) != model.base.size:
                raise ConfigError(
                    f"full-softmax needs all {model.base.size:,} atoms of the Herbrand base, the graph has"
                    f" {len(graph.atoms):,}",
                    hint="take loss = 'softmax' with training.negatives",
                )
            self.rows = WholeRows(model.base, evidence, positions=corrupted_positions, relation_weight=relation_weight)
        self.questions: Questions = ask(
            model.base,
            graph,
            evidence,
            positions=corrupted_positions if self.rows is None else (),
            ask_closed=ask_closed,
            negatives=negatives,
            seed=seed,
        )
        self.regularisation_weight = regularisation_weight
        self.epochs, self.schedule = epochs, schedule
        self.semantic_weight, self.loss = semantic_weight, loss
        self.hiding, self.hide_by, self.n3, self.clip = hiding, hide_by, n3, clip
        self.validate, self.validate_every, self.patience = validate, validate_every, patience
        rule_rate = learning_rate if rule_learning_rate is None else rule_learning_rate
        self.learning_rates = learning_rate, rule_rate
        self.optimizer = torch.optim.Adam(_parameter_groups(model, weight_decay, input_weight_decay))
        self.generator = torch.Generator().manual_seed(seed)
        self.epoch = 0
        self.best: float | None = None
        self.best_epoch = 0
        self.best_weights: dict[str, Tensor] = {}
        self.known = known_states(model.base, graph, evidence)
        self.steps = steps_of(Step(graph, self.questions, self.known), batches, whole_rules=regularisation != "off")
        self.regularisers = regularisers(self.steps, regularisation)

    def __iter__(self) -> Iterator[Epoch]:
        """Train to the end."""
        while not self.is_done:
            yield self.step()
        self.finish()

    @property
    def is_done(self) -> bool:
        """Whether all epochs are over, or patience is."""
        if self.epoch >= self.epochs:
            return True
        waited = self.epoch - self.best_epoch
        return self.patience is not None and self.best is not None and waited >= self.patience

    def step(self) -> Epoch:
        """One epoch."""
        start = perf_counter()
        self._set_learning_rate()
        self.model.train()
        order = torch.randperm(len(self.steps), generator=self.generator).tolist() if len(self.steps) > 1 else [0]
        losses = torch.stack([self._descend(i) for i in order])
        self.epoch += 1
        valid = self._validated()
        loss, supervised, semantic, regularisation = losses.mean(0).tolist()
        return Epoch(self.epoch, loss, supervised, semantic, regularisation, valid, perf_counter() - start)

    def _descend(self, number: int) -> Float[Tensor, " losses"]:
        """One step of the optimiser; the loss and its parts before it."""
        step = self.steps[number]
        hidden = self._hidden(step.questions)
        predictions = self.model(step.graph, hidden=hidden, known=step.known, rule_outputs=self.semantic_weight > 0)
        supervised = step.supervised * self._supervised(step.questions, predictions, hidden)
        semantic = step.semantic * self._semantic(step.questions, predictions)
        loss, fuzzy = supervised + self.semantic_weight * semantic, supervised.new_zeros(())
        if self.regularisers:
            fuzzy = self.regularisers[number].loss(predictions.atoms)
            loss = loss + self.regularisation_weight * fuzzy
        if self.n3:
            loss = loss + self.n3 * n3_penalty(self.model.constants.vectors)
        self.optimizer.zero_grad()
        loss.backward()
        parameters = [p for p in self.model.parameters() if p.grad is not None]
        norm = get_total_norm([p.grad for p in parameters if p.grad is not None])
        self._refuse_divergence(loss, norm)
        if self.clip is not None:
            clip_grads_with_norm_(parameters, self.clip, norm)
        self.optimizer.step()
        return torch.stack([part.detach() for part in (loss, supervised, semantic, fuzzy)])

    def finish(self) -> None:
        """Restore the best weights, where validation chose some."""
        if self.best_weights:
            self.model.load_state_dict(self.best_weights)
        self.model.eval()

    def _set_learning_rate(self) -> None:
        share = 0.5 * (1 + torch.cos(torch.tensor(torch.pi * self.epoch / max(1, self.epochs))).item())
        for group, rate in zip(self.optimizer.param_groups, self.learning_rates, strict=True):
            group["lr"] = rate * (share if self.schedule == "cosine" else 1.0)

    def _hidden(self, questions: Questions) -> Bool[Tensor, " atoms"] | None:
        """The atoms whose input is blanked in this step."""
        if not self.hiding:
            return None
        if self.hide_by == "atom":
            drawn = torch.rand(len(questions.labels), generator=self.generator) < self.hiding
        else:
            constants = len(self.model.base.language.constants)
            drawn = (torch.rand(constants, generator=self.generator) < self.hiding)[questions.first_constants]
        return drawn & questions.open_atoms

    def _supervised(self, questions: Questions, predictions: Predictions, hidden: Tensor | None) -> Float[Tensor, ""]:
        """L_sup; where evidence is an input, only hidden atoms are asked: the others could read their label."""
        out = predictions.atoms
        if self.rows is not None:
            return self.rows.loss(out)
        reads_labels = self.model.evidence_input != "off"
        if self.loss == "bce":
            asked = questions.asked
            if reads_labels and hidden is not None:
                asked = asked[hidden[asked]]
            return supervised_loss(out[asked], questions.labels[asked] == 1)
        inside = questions.facts >= 0
        allowed = questions.candidates >= 0
        if reads_labels and hidden is not None:
            inside = inside & hidden[questions.facts]
            allowed = allowed & hidden[questions.candidates]
        facts, candidates = questions.facts[inside], questions.candidates[inside].clamp(min=0)
        return softmax_loss(out[facts], out[candidates], allowed[inside])

    def _semantic(self, questions: Questions, predictions: Predictions) -> Float[Tensor, ""]:
        """L_sem over all rules together, on the ground rules whose atoms are all labelled."""
        if not self.semantic_weight or not predictions.rules:
            return predictions.atoms.new_zeros(())
        parts = zip(predictions.rules, questions.rules, strict=True)
        outs, truths = zip(*((out[known], truth) for out, (known, truth) in parts), strict=True)
        return semantic_loss(torch.cat(outs), torch.cat(truths))

    def _refuse_divergence(self, loss: Tensor, norm: Tensor) -> None:
        """Stop at a loss or a gradient that is not finite, before it reaches the weights."""
        if bool(torch.isfinite(loss)) and bool(torch.isfinite(norm)):
            return
        sizes = sorted(
            ((float(p.detach().abs().max()), name) for name, p in self.model.named_parameters() if p.numel()),
            reverse=True,
        )
        largest = ", ".join(f"{name} ({size:.3g})" for size, name in sizes[:3])
        what = f"gradient is {float(norm)}" if bool(torch.isfinite(loss)) else f"loss is {float(loss.detach())}"
        raise DivergedError(
            f"the {what} in epoch {self.epoch + 1}; the largest parameters are {largest}",
            hint="lower training.learning_rate, set training.clip, or choose another aggregation",
        )

    def _validated(self) -> float | None:
        """The validation metric, every so many epochs and at the last."""
        if self.validate is None or (self.epoch % self.validate_every and self.epoch < self.epochs):
            return None
        self.model.eval()
        with torch.no_grad():
            valid = self.validate(self.model)
        is_better = not isnan(valid) and (self.best is None or valid > self.best)
        if self.patience is not None and is_better:
            self.best, self.best_epoch = valid, self.epoch
            self.best_weights = {name: value.clone() for name, value in self.model.state_dict().items()}
        return valid


def _parameter_groups(model: R2N, weight_decay: float, input_weight_decay: float) -> list[dict[str, object]]:
    """All parameters but the input layer's, after these, each with a decay of its own."""
    of_input = {id(p) for part in (model.constants, model.atom_embedding) for p in part.parameters()}
    inputs = [p for p in model.parameters() if id(p) in of_input]
    others = [p for p in model.parameters() if id(p) not in of_input]
    decays = (inputs, input_weight_decay), (others, weight_decay)
    return [{"params": parameters, "weight_decay": decay} for parameters, decay in decays]


def fit(model: R2N, graph: FactorGraph, evidence: Evidence, **options: object) -> Iterator[Epoch]:
    """Train the network on the evidence, one record an epoch; the options are the Trainer's."""
    return iter(Trainer(model, graph, evidence, **options))  # pyright: ignore[reportArgumentType]
