"""Predictions -> a run: all that a trainer holds, as tensors and numbers, and back into a trainer."""

from typing import Any

import torch
from torch import Tensor

from r2n.errors import CheckpointError
from r2n.runs.checkpoint import below
from r2n.training.fit import Trainer


def trainer_state(trainer: Trainer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """All that a trainer holds: weights, best weights, the optimiser's moments, the random states, the counters."""
    tensors = {f"model.{name}": value for name, value in trainer.model.state_dict().items()}
    tensors |= {f"best.{name}": value for name, value in trainer.best_weights.items()}
    for i, moments in trainer.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{i}.{name}": value for name, value in moments.items()}
    tensors["random.hiding"] = trainer.generator.get_state()
    tensors["random.global"] = torch.get_rng_state()
    state = {
        "epoch": trainer.epoch,
        "best": trainer.best,
        "best_epoch": trainer.best_epoch,
        "is_done": trainer.is_done,
    }
    return {name: value.clone() for name, value in tensors.items()}, state


def restore_trainer(trainer: Trainer, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    """Put a trainer, built with the same options, where another one stopped."""
    try:
        trainer.model.load_state_dict(below(tensors, "model"))
        trainer.best_weights = below(tensors, "best")
        optimizer = trainer.optimizer.state_dict()
        moments: dict[int, dict[str, Tensor]] = {}
        for name, value in below(tensors, "optimizer").items():
            i, _, moment = name.partition(".")
            moments.setdefault(int(i), {})[moment] = value
        trainer.optimizer.load_state_dict({**optimizer, "state": moments})
        trainer.generator.set_state(tensors["random.hiding"])
        torch.set_rng_state(tensors["random.global"])
        trainer.epoch, trainer.best, trainer.best_epoch = state["epoch"], state["best"], state["best_epoch"]
    except (KeyError, RuntimeError, ValueError) as error:
        message = str(error).splitlines()[0]
        raise CheckpointError(f"the checkpoint does not fit this network: {message}") from error
