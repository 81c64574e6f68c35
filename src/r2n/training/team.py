"""Predictions -> a trained network: one training by several processes, each with its part of every step.

All draw the same steps from the same random numbers. Each asks its part of a step, the gradients are added up, and each
takes the same step of the optimiser: the networks stay equal, and are those of one process up to rounding.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from r2n.errors import ConfigError
from r2n.network.r2n import R2N
from r2n.options import TrainingOptions
from r2n.training.batches import Step
from r2n.training.objective import Losses


@runtime_checkable
class Team(Protocol):
    """The processes of a training, as one of them sees them."""

    @property
    def rank(self) -> int:
        """Which of them this is, from 0; the first one alone writes."""
        ...

    @property
    def count(self) -> int:
        """How many there are."""
        ...

    def summed(self, values: Tensor) -> Tensor:
        """The sum over all of what each gives; all get it, and none before the last has given."""
        ...


@dataclass(frozen=True, slots=True)
class One:
    """A process that trains alone."""

    rank: int = 0
    count: int = 1

    def summed(self, values: Tensor) -> Tensor:
        """What it gives."""
        return values


ONE = One()


@dataclass(frozen=True, slots=True)
class NothingAsked:
    """The step of a process that has no part in it."""

    def losses(self, model: R2N, options: TrainingOptions) -> Losses:
        """Zero."""
        zero = torch.zeros((), device=model.device)
        return Losses(zero, zero, zero, zero)


def refuse_lonely_options(options: TrainingOptions) -> None:
    """Refuse what cannot be shared: steps over the whole graph."""
    if options.batch_size is None:
        raise ConfigError(
            "several processes share the batches of a training, and here a step asks everything",
            hint="set training.batch_size, or train with one: --devices 1",
        )


def weighed(step: Step, counts: Sequence[int], team: Team) -> Step:
    """The part of a step with its share of each mean, so that the parts' losses add up to that of the whole step.

    `counts`: over how many the means of L_sup, L_sem and the t-norm go.
    """
    if team.count == 1:
        return step
    own = torch.tensor(counts, dtype=torch.float64, device=step.layout.device)
    shares = (own / team.summed(own.clone()).clamp(min=1)).tolist()
    return replace(
        step,
        supervised=step.supervised * shares[0],
        semantic=step.semantic * shares[1],
        fuzzy=step.fuzzy * shares[2],
        penalty=step.penalty / team.count,
    )


def added_up(
    parameters: Iterable[nn.Parameter], losses: Float[Tensor, " losses"], team: Team
) -> Float[Tensor, " losses"]:
    """The losses of all, and in each parameter the sum of all gradients, where any process has one."""
    if team.count == 1:
        return losses
    learned = [parameter for parameter in parameters if parameter.requires_grad]
    has_one = torch.tensor([float(parameter.grad is not None) for parameter in learned], device=losses.device)
    touched = [parameter for parameter, sure in zip(learned, team.summed(has_one).tolist(), strict=True) if sure]
    gradients = [_dense(parameter) for parameter in touched]
    flat = team.summed(torch.cat([*(gradient.flatten() for gradient in gradients), losses.to(torch.float32)]))
    sizes = [gradient.numel() for gradient in gradients]
    for parameter, part in zip(touched, flat[: sum(sizes)].split(sizes), strict=True):
        parameter.grad = part.view_as(parameter).to(parameter.dtype)
    return flat[sum(sizes) :]


def _dense(parameter: nn.Parameter) -> Tensor:
    """The gradient of a parameter as others add to it; zero where it has none here."""
    if parameter.grad is None:
        return torch.zeros_like(parameter)
    return parameter.grad.to_dense() if parameter.grad.is_sparse else parameter.grad
