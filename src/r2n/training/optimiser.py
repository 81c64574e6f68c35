"""Predictions -> a trained network: the optimiser, with a rate and a decay for each kind of parameter."""

from math import cos, pi

import torch

from r2n.knowledge.options import OptimisationOptions
from r2n.model.r2n import R2N


def make_optimizer(model: R2N, options: OptimisationOptions) -> torch.optim.Optimizer:
    """Adam, or Adagrad, for the input layer, all other parameters, and counted rules where there are any.

    Each has a decay of its own; counted rules have none, for a log weight of 0 is no smaller belief.
    """
    of_input = {id(p) for part in (model.constants, model.atom_embedding) for p in part.parameters()}
    counted = [] if model.counted is None else list(model.counted.parameters())
    apart = of_input | set(map(id, counted))
    inputs = [p for p in model.parameters() if id(p) in of_input]
    others = [p for p in model.parameters() if id(p) not in apart]
    decays = [(inputs, options.input_weight_decay), (others, options.weight_decay)]
    if counted:
        decays.append((counted, 0.0))
    made = torch.optim.Adam if options.optimiser == "adam" else torch.optim.Adagrad
    return made([{"params": parameters, "weight_decay": decay} for parameters, decay in decays])


def set_learning_rates(optimizer: torch.optim.Optimizer, options: OptimisationOptions, epoch: int) -> None:
    """The rates of an epoch (from 0), for the input layer, for the others, and for counted rules."""
    share = 0.5 * (1 + cos(pi * epoch / max(1, options.epochs))) if options.schedule == "cosine" else 1.0
    rule_rate = options.learning_rate if options.rule_learning_rate is None else options.rule_learning_rate
    counted_rate = rule_rate if options.counted_learning_rate is None else options.counted_learning_rate
    rates = (options.learning_rate, rule_rate, counted_rate)
    for group, rate in zip(optimizer.param_groups, rates, strict=False):  # the last, where rules are counted
        group["lr"] = rate * share
