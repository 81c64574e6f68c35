"""Who decides: a problem answered by its rules alone, by belief propagation from what is known."""

from dataclasses import dataclass

import numpy as np
import torch

from r2n.graph.factor_graph import FactorGraph
from r2n.grounding.reach import reached_by
from r2n.grounding.strategies import make_grounder
from r2n.knowledge.herbrand import Codes
from r2n.knowledge.problem import Problem
from r2n.knowledge.problem_file import Options
from r2n.model.inference import Method, infer, log_beliefs
from r2n.model.r2n import TRUE, UNKNOWN
from r2n.runs.run import Run
from r2n.training.targets import known_states


@dataclass(frozen=True, eq=False)
class Believed:
    """The probability of each atom asked for, in their order, and whether a ground rule reaches it."""

    atoms: Codes
    probability: np.ndarray
    reached: np.ndarray


def believe(
    problem: Problem,
    options: Options,
    asked: Codes,
    *,
    method: Method = "paper",
    iterations: int = 10,
    damping: float = 0.0,
    prior: float = 0.5,
    run: Run | None = None,
) -> Believed:
    """Ground the rules, start from the evidence, and iterate.

    What is not known starts at `prior`, or at the probability that a trained network gives it.
    """
    knowledge = problem.knowledge
    atoms = np.union1d(problem.atoms, asked)
    grounding = reached_by(make_grounder(options.grounding).ground(knowledge, atoms), atoms)
    graph = FactorGraph.from_grounding(grounding, atoms=atoms)
    states = known_states(knowledge.base, graph, problem.train)
    start = torch.full((len(graph.atoms),), prior, dtype=torch.float64)
    if run is not None:
        start = torch.sigmoid(torch.from_numpy(run.scores()(graph.atoms.numpy())))
    start = torch.where(states == UNKNOWN, start, (states == TRUE).double())
    beliefs = infer(graph, log_beliefs(start), method=method, iterations=iterations, damping=damping)
    rows = graph.rows(torch.from_numpy(np.array(asked, np.int64)))
    return Believed(asked, beliefs[rows, 1].exp().numpy(), np.isin(asked, grounding.atoms))
