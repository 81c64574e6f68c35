"""Predictions -> a trained network: which atoms are hidden in a step, so that their answers have to be found."""

import numpy as np
import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from r2n.knowledge.options import HidingOptions
from r2n.training.targets import Targets


def hidden_atoms(
    targets: Targets, options: HidingOptions, constants: int, *, generator: torch.Generator
) -> Bool[Tensor, " atoms"] | None:
    """The open atoms whose input is blanked in a step, or none at all; drawn on the CPU, for any device alike."""
    if not options.hiding:
        return None
    if options.hide_by == "atom":
        drawn = torch.rand(len(targets.labels), generator=generator) < options.hiding
        return drawn.to(targets.open_atoms.device) & targets.open_atoms
    by_constant = (torch.rand(constants, generator=generator) < options.hiding).to(targets.open_atoms.device)
    return by_constant[targets.first_constants] & targets.open_atoms


def hidden_by_code(
    codes: Int64[Tensor, " atoms"], targets: Targets, options: HidingOptions, *, generator: torch.Generator
) -> Bool[Tensor, " atoms"] | None:
    """The same, where one number is drawn for the step, and with it an atom's code tells whether it is hidden.

    An atom is then hidden or not wherever it stands, in any part of the step.
    """
    if not options.hiding:
        return None
    seed = int(torch.randint(2**62, (1,), generator=generator))
    drawn = torch.from_numpy(_uniform(codes.cpu().numpy(), seed) < options.hiding)
    return drawn.to(targets.open_atoms.device) & targets.open_atoms


def _uniform(codes: np.ndarray, seed: int) -> np.ndarray:
    """A number in [0, 1) for each code: the mixing of splitmix64 (Steele, Lea and Flood, 2014)."""
    mixed = codes.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(11)).astype(np.float64) / 2**53
