"""What the tests of the one way from an atom to its logit share: the strategies, runs, and what is equal."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from r2n.data.knowledge_base import KnowledgeBase, with_reciprocals
from r2n.data.problem import Problem
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.full import FullGrounder
from r2n.grounding.ground_rules import Grounder
from r2n.grounding.known_body import KnownBodyGrounder
from r2n.model.run import Run, prepare_run
from r2n.model.training import train_in
from tests.oracles import grounding as oracle
from tests.oracles.atom_logit import GroundAlone

CLOSE: dict[str, Any] = {"rtol": 1e-6, "atol": 1e-6}


@dataclass(frozen=True)
class Strategy:
    """A grounder, the options that name it, and the same by plain loops around one atom."""

    grounder: Grounder
    options: tuple[str, ...]
    alone: GroundAlone


def backward(width: int, depth: int) -> Strategy:
    options = ("strategy=backward", f"width={width}", f"depth={depth}")
    return Strategy(
        BackwardGrounder(width, depth),
        tuple(f"grounding.{option}" for option in options),
        lambda world, atom: oracle.backward(world, [atom], width, depth),
    )


STRATEGIES = {
    "full": Strategy(FullGrounder(), ("grounding.strategy=full",), lambda world, _: oracle.full(world)),
    "known-body": Strategy(
        KnownBodyGrounder(), ("grounding.strategy=known-body",), lambda world, _: oracle.known_body(world)
    ),
    "backward(0,1)": backward(0, 1),
    "backward(1,2)": backward(1, 2),
}


def brier(logits: np.ndarray, truth: np.ndarray | bool = False) -> float:
    """The mean squared error of the probabilities: a number of a report that feels every logit."""
    return float(np.mean((expit(logits) - truth) ** 2))


def run_in(folder: Path, problem: Problem) -> Run:
    run = prepare_run(problem, problem.options, seed=0)
    for _ in train_in(folder, run):
        pass
    return run


def knowledge_in(problem: Problem) -> KnowledgeBase:
    """What the network was trained on."""
    return with_reciprocals(problem.knowledge) if problem.options.grounding.reciprocal else problem.knowledge
