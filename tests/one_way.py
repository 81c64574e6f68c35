"""What the tests of the one way from an atom to its logit share: the strategies, runs, and what is equal."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from r2n.data.herbrand import HerbrandBase
from r2n.data.knowledge_base import KnowledgeBase, with_reciprocals
from r2n.data.problem import Problem
from r2n.grounding.backward import BackwardGrounder
from r2n.grounding.full import FullGrounder, KnownBodyGrounder
from r2n.grounding.ground_rules import Grounder
from r2n.model.run import Run, prepare_run
from r2n.model.training import train_in
from r2n.scoring import AtomLogits
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


def assert_rows_are_their_atoms(logits: AtomLogits, base: HerbrandBase, codes: np.ndarray) -> None:
    """The candidates of each position of these atoms have, as a row, the logits that they have as atoms."""
    index, arguments = base.decode(codes)
    for number, predicate in enumerate(base.language.predicates):
        given = arguments[index == number, : predicate.arity]
        for position, domain in enumerate(predicate.domains):
            members, found = base.language.members(domain), logits.rows(number, position, given)
            assert found.shape == (len(given), len(members))
            for row, constants in zip(found, given, strict=True):
                atoms = np.repeat(constants[None], len(row), axis=0)
                atoms[:, position] = members
                expected = logits.at_position(position)(base.encode(predicate, atoms))
                np.testing.assert_allclose(row, expected, **CLOSE)


def run_in(folder: Path, problem: Problem) -> Run:
    run = prepare_run(problem, problem.options, seed=0)
    for _ in train_in(folder, run):
        pass
    return run


def knowledge_in(problem: Problem) -> KnowledgeBase:
    """What the network was trained on."""
    return with_reciprocals(problem.knowledge) if problem.options.grounding.reciprocal else problem.knowledge
