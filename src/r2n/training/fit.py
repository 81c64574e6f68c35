"""`fit`: training as a generator of epochs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from math import cos, isnan, pi
from time import perf_counter
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

from r2n.components import optimisers
from r2n.data.knowledge_base import Evidence
from r2n.data.validation import check_batches
from r2n.errors import ConfigError, R2NError
from r2n.network.factor_graph import FactorGraph
from r2n.network.graph_sources import FullGraph, GraphSource
from r2n.network.r2n import R2N
from r2n.options import OptimisationOptions, TrainingOptions, chosen
from r2n.progress import Progress, no_progress
from r2n.training.batches import (
    SINGLE,
    AnyStep,
    Batches,
    Check,
    Losses,
    ProcessGroup,
    QueryBatches,
    Step,
    make_batches,
    masked_atoms,
    masked_by_code,
)
from r2n.training.objective import Objective
from r2n.training.paths import PathBatches
from r2n.training.rows import RowBatches, asks_rows


def batches_of(
    model: R2N,
    source: GraphSource,
    evidence: Evidence,
    options: TrainingOptions,
    *,
    seed: int = 0,
    check: Check | None = None,
    progress: Progress = no_progress,
) -> Batches:
    """The steps by the options: over the full graph, over its components, or over batches of queries."""
    check_batches(options)
    if source.paths is not None and model.paths is not None and not model.blends:
        return PathBatches(model, source.paths, evidence, options)
    if options.batch_size is None:
        return make_batches(model, source, evidence, options, seed=seed, check=check, progress=progress)
    if asks_rows(model, options):
        return RowBatches(model, evidence, options)
    progress("ground", 0, 0)
    batches = QueryBatches(model, source, evidence, options)
    if check is not None:
        check(batches.graph(next(batches.drawn(torch.Generator().manual_seed(seed)))))
    return batches


def check_shared_options(options: TrainingOptions) -> None:
    """Refuse steps over the full graph, which cannot be sharded."""
    if options.batch_size is None:
        raise ConfigError(
            "several processes share the batches of a training, and here a step asks everything",
            hint="set training.batch_size, or train with one: --devices 1",
        )


def weighed(step: Step, counts: Sequence[int], group: ProcessGroup) -> Step:
    """The shard of a step with its part of each mean, so that the shards' losses add up to that of the full step.

    `counts`: over how many the means of L_sup, L_sem and the t-norm go.
    """
    if group.count == 1:
        return step
    own = torch.tensor(counts, dtype=torch.float64, device=step.batch.device)
    shares = (own / group.summed(own.clone()).clamp(min=1)).tolist()
    weights = tuple(weight * share for weight, share in zip(step.weights, shares, strict=True))
    return replace(step, weights=weights, penalty=step.penalty / group.count)


def all_reduce(
    parameters: Iterable[nn.Parameter], losses: Float[Tensor, " losses"], group: ProcessGroup
) -> Float[Tensor, " losses"]:
    """The losses of all processes, and in each parameter the sum of all gradients, if any process has one."""
    if group.count == 1:
        return losses
    learned = [parameter for parameter in parameters if parameter.requires_grad]
    has_one = torch.tensor([float(parameter.grad is not None) for parameter in learned], device=losses.device)
    touched = [parameter for parameter, sure in zip(learned, group.summed(has_one).tolist(), strict=True) if sure]
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in touched]
    gradients = [gradient.to_dense() if gradient.is_sparse else gradient for gradient in gradients]
    flat = group.summed(torch.cat([*(gradient.flatten() for gradient in gradients), losses.to(torch.float32)]))
    sizes = [gradient.numel() for gradient in gradients]
    for parameter, part in zip(touched, flat[: sum(sizes)].split(sizes), strict=True):
        parameter.grad = part.view_as(parameter).to(parameter.dtype)
    return flat[sum(sizes) :]


def make_optimizer(
    model: R2N, options: OptimisationOptions, wanted: Callable[[str], bool] = bool
) -> torch.optim.Optimizer:
    """The optimiser of the options, for the input layer, all other parameters, and counted rules if there are any.

    Counted rules do not decay, for a log weight of 0 is no weaker rule. `wanted` says which parameters, by name.
    """
    groups: list[dict[str, Any]] = [
        {"params": [], "weight_decay": decay} for decay in (options.input_weight_decay, options.weight_decay, 0.0)
    ]
    numbers = {"constants": 0, "atom_embedding": 0, "counted": 2}
    for name, parameter in ((name, part) for name, part in model.named_parameters() if wanted(name)):
        groups[numbers.get(name.partition(".")[0], 1)]["params"].append(parameter)
    return optimisers[options.optimiser].load()(groups if groups[2]["params"] else groups[:2])


def set_learning_rates(
    optimizer: torch.optim.Optimizer, options: OptimisationOptions, epoch: int, epochs: int | None = None, step: int = 0
) -> None:
    """The rates of an epoch (from 0) of `epochs`, for each group of the optimiser; warm-up goes by `step`."""
    share, factor = epoch / max(1, options.epochs if epochs is None else epochs), 1.0
    if options.schedule == "cosine":
        factor = 0.5 * (1 + cos(pi * share))
    elif options.schedule == "linear":
        factor = max(LAST_RATE, 1 - share) * (min(1.0, (step + 1) / WARM_UP) if epoch == 0 else 1.0)
    rule_rate = options.learning_rate if options.rule_learning_rate is None else options.rule_learning_rate
    counted_rate = rule_rate if options.counted_learning_rate is None else options.counted_learning_rate
    rates = (options.learning_rate, rule_rate, counted_rate)
    for group, rate in zip(optimizer.param_groups, rates, strict=False):  # the last, where rules are counted
        group["lr"] = rate * factor


WARM_UP = 50  # steps
LAST_RATE = 0.05  # of the learning rate, at the end of the linear schedule
MEASURED_EPOCHS = 2  # that tell how many there are in the minutes


@contextmanager
def quick_products() -> Iterator[None]:
    """Matrix products in the quickest way of the device, which may round factors to half precision."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


Validate = Callable[[R2N], float]
Finalize = Callable[[R2N], None]


@dataclass(frozen=True, slots=True)
class Epoch:
    """The losses of one epoch (`rules`: of counted rules), the validation metric if it was measured, and seconds."""

    number: int
    loss: float
    supervised: float
    semantic: float
    regularisation: float
    valid: float | None
    seconds: float
    rules: float = 0.0


class DivergedError(R2NError):
    """The loss is no longer a finite number."""


class Trainer:
    """A network in training: yields an Epoch a step, and holds all that is needed to resume.

    `validate` gives a metric (larger is better); with `options.patience` it decides when to stop and which weights to
    restore at the end. `before` is a trainer of other parts of the network, which goes first.
    """

    def __init__(
        self,
        model: R2N,
        batches: Batches,
        evidence: Evidence,
        options: TrainingOptions,
        *,
        rule_batches: Batches | None = None,
        validate: Validate | None = None,
        finalize: Finalize | None = None,
        before: "Trainer | None" = None,
        seed: int = 0,
    ) -> None:
        """Nothing random happens before the first step.

        `rule_batches` train counted rules, `finalize` makes the last choices once all is trained.
        """
        self.model, self.batches, self.options, self.validate = model, batches, options, validate
        self.rule_batches, self.finalize, self.before = rule_batches, finalize, before
        self.group: ProcessGroup = SINGLE
        self.objective = Objective(model, evidence, options)
        along_paths = isinstance(batches, PathBatches)
        wanted = (lambda name: name.startswith("paths.") is along_paths) if model.blends else bool
        self.optimizer = make_optimizer(model, options, wanted)
        self.parameters = [part for group in self.optimizer.param_groups for part in group["params"]]
        self.generator = torch.Generator().manual_seed(seed)
        self.epoch = 0
        self.seconds = 0.0  # of all steps and validations
        self.planned: int | None = None
        self.best: float | None = None
        self.best_epoch = 0
        self.best_weights: dict[str, Tensor] = {}

    def join(self, group: ProcessGroup) -> None:
        """Train in a process group from now on, or alone again; all processes must hold the same trainer."""
        if group.count > 1:
            check_shared_options(self.options)
            if isinstance(self.batches, PathBatches):
                raise ConfigError("a training along paths has one process", hint="train with --devices 1")
        self.group = group
        if self.before is not None:
            self.before.join(group)
        if isinstance(self.batches, QueryBatches | RowBatches):
            self.batches.group = group

    @classmethod
    def from_source(
        cls,
        model: R2N,
        source: GraphSource | FactorGraph,
        evidence: Evidence,
        options: TrainingOptions | None = None,
        *,
        validate: Validate | None = None,
        seed: int = 0,
        **changes: object,
    ) -> "Trainer":
        """From a source, or a graph that holds the evidence and its negatives; `changes` are keys of [training]."""
        wanted = chosen(TrainingOptions, options, changes)
        graphs = FullGraph(source) if isinstance(source, FactorGraph) else source
        batches = batches_of(model, graphs, evidence, wanted, seed=seed)
        return cls(model, batches, evidence, wanted, validate=validate, seed=seed)

    def __iter__(self) -> Iterator[Epoch]:
        while not self.is_done:
            yield self.step()
        self.finish()

    @property
    def active(self) -> "Trainer":
        """The trainer whose turn it is: the one before, until it is done."""
        return self if self.before is None or self.before.is_done else self.before

    @property
    def epochs(self) -> int:
        """The most epochs: by the options, or as many as are planned for the minutes, after those of `before`."""
        if self.before is None:
            return self._own_epochs
        return self.before.epoch + self._own_epochs if self.active is self else self.before.epochs

    @property
    def _own_epochs(self) -> int:
        return self.options.epochs if self.planned is None else min(self.options.epochs, self.planned)

    @property
    def epochs_done(self) -> int:
        """The epochs so far, with those of `before`."""
        return self.epoch + (0 if self.before is None else self.before.epoch)

    @property
    def is_done(self) -> bool:
        """Whether all epochs are over, or the minutes, or patience."""
        if self.active is not self:
            return False
        if self.epoch >= self._own_epochs or self.is_out_of_time:
            return True
        waited, patience = self.epoch - self.best_epoch, self.options.patience
        return patience is not None and self.best is not None and waited >= patience

    @property
    def is_out_of_time(self) -> bool:
        """Whether the minutes are over."""
        return self._is_over(self.seconds)

    def _is_over(self, seconds: float) -> bool:
        is_planned = self.options.schedule == "linear"  # in epochs that take about as long
        return self.options.minutes is not None and not is_planned and seconds >= 60 * self.options.minutes

    def _spend(self, seconds: float) -> None:
        """Count time; processes of a group count the same, so that all stop together."""
        spent = torch.tensor(seconds, dtype=torch.float64, device=self.model.device)
        self.seconds += float(self.group.summed(spent)) / self.group.count if self.group.count > 1 else seconds

    def _steps(self, start: float) -> Iterator[AnyStep]:
        """The steps of an epoch, until the minutes are over; a group makes them all, for its processes share each."""
        for number, step in enumerate(self.batches.epoch(self.generator)):
            set_learning_rates(self.optimizer, self.options, self.epoch, self._own_epochs, number)
            yield step
            if self.group.count == 1 and self._is_over(self.seconds + perf_counter() - start):
                return

    def _plan(self) -> None:
        """How many epochs fit in the minutes: found early and kept in the checkpoint, so that a resumed run agrees."""
        if self.options.schedule == "linear" and self.options.minutes is not None and self.epoch <= MEASURED_EPOCHS:
            left = 60 * self.options.minutes - (0.0 if self.before is None else self.before.seconds)
            self.planned = max(self.epoch, round(left * self.epoch / self.seconds))

    @property
    def keeps_best(self) -> bool:
        """Whether validation chooses the weights."""
        return self.options.patience is not None or self.planned is not None

    def step(self) -> Epoch:
        """One epoch."""
        if self.before is not None and self.active is self.before:
            epoch = self.before.step()
            if self.before.is_done:
                self.before.finish()
                self.before.optimizer.zero_grad()
            return epoch
        start = perf_counter()
        self.model.train()
        is_quick = isinstance(self.batches, RowBatches) and self.group.count == 1  # the setting is one of the process
        with quick_products() if is_quick else nullcontext():
            losses = torch.stack([self._descend(step) for step in self._steps(start)])
        rules = 0.0
        if self.rule_batches is not None and self.epoch < self.options.rule_epochs:
            each = [float(self._descend(step, is_shared=False)[0]) for step in self.rule_batches.epoch(self.generator)]
            rules = sum(each) / max(1, len(each))
        self.epoch += 1
        self._spend((trained := perf_counter()) - start)
        self._plan()
        valid = self.validated()
        if valid is not None:
            self._spend(perf_counter() - trained)
        if self.is_done:  # after the last step no loss would show it; weights that validation chose are those that stay
            staying = self.best_weights or dict(self.model.named_parameters())
            if not all(bool(torch.isfinite(weight.detach()).all()) for weight in staying.values()):
                raise self._diverged(f"a weight is not finite after epoch {self.epoch}")
            if self.finalize is not None:
                self.finish()
                with torch.no_grad():
                    self.finalize(self.model)
                self.best_weights = self._weights() if self.best_weights else {}
        loss, supervised, semantic, fuzzy = losses.mean(0).tolist()
        return Epoch(self.epochs_done, loss, supervised, semantic, fuzzy, valid, perf_counter() - start, rules)

    def _weights(self) -> dict[str, Tensor]:
        return {name: value.clone() for name, value in self.model.state_dict().items()}

    def _descend(self, step: AnyStep, *, is_shared: bool = True) -> Float[Tensor, " losses"]:
        """One step of the optimiser, by all processes alike if it is not shared; the loss and its parts before it."""
        losses = self._losses(step)
        self.optimizer.zero_grad()
        count = 1 if is_shared else self.group.count
        if losses.total.requires_grad:
            (losses.total if count == 1 else losses.total / count).backward()
        parts = torch.stack(losses).detach() / count
        parts = all_reduce(self.parameters, parts, self.group)
        gradients = []  # of sparse ones the rows that were touched; to be changed in place
        for parameter in self.parameters:
            if parameter.grad is not None and parameter.grad.is_sparse:
                parameter.grad = parameter.grad.coalesce()
                gradients.append(parameter.grad.values())
            elif parameter.grad is not None:
                gradients.append(parameter.grad)
        norm = get_total_norm(gradients)
        if not bool(torch.isfinite(parts[0])):  # before it reaches the weights
            raise self._diverged(f"the loss is {float(parts[0])} in epoch {self.epoch + 1}")
        if not bool(torch.isfinite(norm)):
            raise self._diverged(f"the gradient is {float(norm)} in epoch {self.epoch + 1}")
        if self.options.clip is not None:
            factor = (self.options.clip / (norm + 1e-6)).clamp(max=1.0)
            for gradient in gradients:
                gradient.mul_(factor)
        with torch.sparse.check_sparse_tensor_invariants(enable=False):  # else torch warns
            self.optimizer.step()
        return parts

    def _losses(self, step: AnyStep) -> Losses:
        if not isinstance(step, Step):
            return step.losses(self.model, self.options)
        if isinstance(self.batches, QueryBatches) and self.options.hide_by == "atom":
            codes = step.batch.graph.atoms
            hidden = masked_by_code(codes, step.targets, self.options, generator=self.generator)
        else:
            constants = len(self.model.base.language.constants)
            hidden = masked_atoms(step.targets, self.options, constants, generator=self.generator)
        step = weighed(step, self.objective.counted(step, hidden), self.group)
        wanted = self.options.semantic_weight > 0
        predictions = self.model(step.batch, hidden=hidden, known=step.known, rule_outputs=wanted)
        return self.objective.losses(step, predictions, hidden)

    def finish(self) -> None:
        """Restore the best weights, if validation chose some."""
        if self.best_weights:
            self.model.load_state_dict(self.best_weights)
        self.model.eval()

    def _diverged(self, what: str) -> DivergedError:
        sizes = sorted(
            ((float(p.detach().abs().max()), name) for name, p in self.model.named_parameters() if p.numel()),
            reverse=True,
        )
        largest = ", ".join(f"{name} ({size:.3g})" for size, name in sizes[:3])
        return DivergedError(
            f"{what}; the largest parameters are {largest}",
            hint="lower training.learning_rate, set training.clip, or choose another aggregation",
        )

    def validated(self) -> float | None:
        """The validation metric, every `validate_every` epochs and at the last; None if it is not defined."""
        is_last = self.epoch >= self._own_epochs or self.is_out_of_time
        if self.validate is None or (self.epoch % self.options.validate_every and not is_last):
            return None
        self.model.eval()
        with torch.no_grad():
            valid = self.validate(self.model)
        if isnan(valid):
            return None
        if self.keeps_best and (self.best is None or valid > self.best):
            self.best, self.best_epoch, self.best_weights = valid, self.epoch, self._weights()
        return valid


def fit(
    model: R2N,
    source: GraphSource | FactorGraph,
    evidence: Evidence,
    options: TrainingOptions | None = None,
    *,
    validate: Validate | None = None,
    seed: int = 0,
    **changes: object,
) -> Iterator[Epoch]:
    """Train the network on the evidence, one record an epoch; `changes` are keys of [training]: `epochs=50`."""
    return iter(Trainer.from_source(model, source, evidence, options, validate=validate, seed=seed, **changes))
