"""The most probable world and marginal probabilities by belief propagation."""

from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import logit

from r2n.data.herbrand import Codes
from r2n.data.problem import Problem
from r2n.errors import ConfigError
from r2n.evaluation.report import Report, classify
from r2n.grounding.store import Store
from r2n.grounding.strategies import make_grounder
from r2n.model.model import Model
from r2n.network.belief_propagation import Clash, Method, find_clash, infer, log_beliefs
from r2n.network.factor_graph import TRUE, UNKNOWN, known_states, known_truths
from r2n.network.graph_sources import GroundedOnDemand
from r2n.options import Options

SURE = 1e-12  # a probability so near to 0 or 1 has a finite logit


@dataclass(frozen=True, eq=False)
class Marginals:
    """The probability of each atom asked for, in their order, and whether a ground rule reaches it.

    `truths` has 1 for what is known to be true, 0 for what is known to be false or closed, -1 for what is not known;
    `is_stated` marks what is known by a fact, not by a closed world. `clash`: rules that hold strictly, and that no
    world satisfies; the probabilities are then those of worlds that break as few of them as they can.
    """

    atoms: Codes
    probability: np.ndarray
    reached: np.ndarray
    truths: np.ndarray
    is_stated: np.ndarray
    clash: Clash | None = None

    def report(self, problem: Problem, split: str) -> Report | None:
        """How good the probabilities are on a split that was asked for; None where its labels are all true."""
        queries = problem.queries[split]
        if queries.truth.all():
            return None
        logits = logit(np.clip(self.probability, SURE, 1 - SURE))
        rows = np.searchsorted(self.atoms, queries.atoms)
        return classify(lambda _: logits[rows], queries, problem.knowledge.base, split=split)


def believe(
    problem: Problem,
    options: Options,
    asked: Codes,
    *,
    method: Method = "paper",
    iterations: int = 10,
    damping: float = 0.0,
    prior: float = 0.5,
    trained: Model | None = None,
) -> Marginals:
    """Ground the rules and iterate; unknown atoms start at `prior`, or at the probability by a trained network."""
    knowledge = problem.knowledge
    source = GroundedOnDemand(Store(knowledge, asks_closed=True), make_grounder(options.grounding))  # facts may clash
    graph = source.around(asked)
    states = known_states(knowledge.base, graph.atoms, problem.train)
    start = torch.full((len(graph.atoms),), prior, dtype=torch.float64)
    if trained is not None:
        ours, theirs = knowledge.language, trained.problem.knowledge.language
        names = [[predicate.name for predicate in language.predicates] for language in (ours, theirs)]
        is_same = ours.constants == theirs.constants and names[0] == names[1]
        if not is_same or not all(map(np.array_equal, ours.extensions, theirs.extensions)):
            hint = "give the run of a network that was trained on this problem"
            raise ConfigError("the run is of another problem: its constants, domains or predicates differ", hint=hint)
        logits = trained.scores(graph.atoms.numpy())
        start = torch.from_numpy(trained.probabilities(graph.atoms.numpy(), logits))
    start = torch.where(states == UNKNOWN, start, (states == TRUE).double())
    clash = find_clash(graph, states.numpy() - 1)
    beliefs = infer(graph, log_beliefs(start), method=method, iterations=iterations, damping=damping)
    rows = graph.rows(torch.from_numpy(np.array(asked, np.int64)))
    truths = known_truths(knowledge.base, np.array(asked, np.int64), problem.train)
    is_stated = np.isin(asked, problem.train.atoms)
    return Marginals(asked, beliefs[rows, 1].exp().numpy(), graph.in_rules[rows].numpy(), truths, is_stated, clash)
